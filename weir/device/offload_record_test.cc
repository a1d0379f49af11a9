#include <weir/device/offload_record.h>

#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <weir/base/descriptor.h>
#include <weir/device/internal/testing.h>

namespace weir {
namespace {

using device_testing::Bytes;
using device_testing::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

OffloadRecord example() {
  return {.place = {.namespace_device = 4, .namespace_inode = 1, .index = 7},  // no namespace has this number
          .via = InterfacePlace{.namespace_device = 4, .namespace_inode = 2, .index = 3},
          .mac = MacAddress::parse("02:00:00:00:00:07").value(),
          .name = "vb0",
          .before = {{"tx-checksum-ip-generic", true}, {"rx-gro", false}}};
}

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

TEST(OffloadRecord, IsReadAsItWasWritten) {
  const auto read = OffloadRecord::parse(example().to_text());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, example());
}

TEST(OffloadRecord, WhatIsNotWholeIsAnError) {
  const std::string text = example().to_text();
  for (std::size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(OffloadRecord::parse(text.substr(0, length))) << length;
  }
  EXPECT_THAT(OffloadRecord::parse("#!/bin/sh\n").error().message, HasSubstr("no record"));
  EXPECT_THAT(OffloadRecord::parse("weir offloads 1\ninterface x\nend\n").error().message, HasSubstr("interface"));
}

TEST(OffloadRecord, WhatHasGoneNeedsNoUndoing) {
  const auto restored = restore(example());
  ASSERT_TRUE(restored);
  EXPECT_FALSE(*restored);
}

TEST(UndoLeftOffloads, RemovesRecordsOfWhatHasGone) {
  const TemporaryFolder folder;
  (void)folder.write("gone", bytes_of(example().to_text()));
  (void)folder.write("unfinished", bytes_of("weir offl"));
  EXPECT_THAT(left_offloads(folder.file("")),
              UnorderedElementsAre(HasSubstr("vb0 were left changed"), HasSubstr("was left unfinished")));
  const UndoneOffloads undone = undo_left_offloads(folder.file(""));
  EXPECT_THAT(undone.done, ElementsAre(HasSubstr("vb0, whose offload settings were left changed")));
  EXPECT_THAT(undone.failed, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
  EXPECT_THAT(left_offloads(folder.file("")), IsEmpty());
}

TEST(UndoLeftOffloads, LeavesTheRecordsOfTheLivingAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.write("alive", bytes_of(example().to_text()));
  Descriptor owner(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(owner.get(), LOCK_EX), 0);
  EXPECT_THAT(left_offloads(folder.file("")), IsEmpty());
  EXPECT_THAT(undo_left_offloads(folder.file("")).done, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(path));
  owner.reset();
  undo_left_offloads(folder.file(""));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(UndoLeftOffloads, WithoutAFolderThereIsNothingToDo) {
  EXPECT_THAT(undo_left_offloads("/nowhere/at/all").done, IsEmpty());
  EXPECT_THAT(left_offloads("/nowhere/at/all"), IsEmpty());
}

}  // namespace
}  // namespace weir
