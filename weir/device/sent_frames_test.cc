#include <weir/device/internal/sent_frames.h>

#include <gtest/gtest.h>

namespace weir::device_internal {
namespace {

TEST(SentFrames, FindsPacketsInAnyOrder) {
  std::array<Packet, 8> packets{};
  SentFrames sent(8);
  for (std::uint64_t round = 0; round < 5; ++round) {  // round the ring, too
    for (std::size_t i = 0; i < 6; ++i) {
      sent.add(i * 4096 + 256, &packets[i]);
    }
    EXPECT_EQ(sent.size(), 6U);
    EXPECT_EQ(sent.room(), 2U);
    for (const std::size_t i : {0U, 1U, 5U, 3U, 2U, 4U}) {
      EXPECT_EQ(sent.take(i * 4096 + 256), &packets[i]);
    }
    EXPECT_EQ(sent.size(), 0U);
  }
}

TEST(SentFrames, WhatIsNotThereIsNull) {
  Packet packet{};
  SentFrames sent(4);
  EXPECT_EQ(sent.take(0), nullptr);
  sent.add(64, &packet);
  EXPECT_EQ(sent.take(128), nullptr);
  EXPECT_EQ(sent.take(64), &packet);
  EXPECT_EQ(sent.take(64), nullptr);
}

TEST(SentFrames, OneAddressMayBeUnderWaySeveralTimes) {
  std::array<Packet, 2> packets{};
  SentFrames sent(4);
  sent.add(64, &packets[0]);
  sent.add(64, &packets[1]);
  EXPECT_NE(sent.take(64), sent.take(64));
}

TEST(SentFrames, GivesBackAllThatIsLeft) {
  std::array<Packet, 3> packets{};
  SentFrames sent(4);
  for (std::size_t i = 0; i < 3; ++i) {
    sent.add(i, &packets[i]);
  }
  EXPECT_EQ(sent.take(1), &packets[1]);
  EXPECT_EQ(sent.take_any(), &packets[0]);
  EXPECT_EQ(sent.take_any(), &packets[2]);
  EXPECT_EQ(sent.take_any(), nullptr);
}

}  // namespace
}  // namespace weir::device_internal
