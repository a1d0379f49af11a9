#include <weir/base/published.h>

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Published, GivesTheLatestVersion) {
  Epochs epochs;
  const EpochScope scope(epochs);
  Published<std::string> published(epochs, "first");
  EXPECT_EQ(published.read(), "first");
  published.publish("second");
  EXPECT_EQ(published.read(), "second");
}

TEST(Published, AReferenceLivesUntilTheNextQuiescentState) {
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  reader.online();
  const auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = token;
  Published<std::shared_ptr<int>> published(epochs, token);
  const std::shared_ptr<int>& held = published.read();
  published.publish(nullptr);
  published.publish(std::make_shared<int>(2));
  EXPECT_EQ(*held, 1);
  EXPECT_EQ(watch.use_count(), 2) << "the old version still exists";
  reader.quiescent();
  epochs.reclaim();
  EXPECT_EQ(watch.use_count(), 1);
  EXPECT_EQ(*published.read(), 2);
  epochs.remove(reader);
}

TEST(Published, MayEndBeforeWhatItRetired) {
  const auto token = std::make_shared<int>(1);
  {
    Epochs epochs;
    Epochs::Reader& reader = epochs.add();
    reader.online();
    {
      Published<std::shared_ptr<int>> published(epochs, token);
      published.publish(token);
      EXPECT_EQ(token.use_count(), 3);
    }
    EXPECT_EQ(token.use_count(), 2);
    epochs.remove(reader);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Published, WritersMayRace) {
  Epochs epochs;
  const auto token = std::make_shared<int>(0);
  {
    Published<std::shared_ptr<int>> published(epochs, token);
    const auto write = [&] {
      for (int i = 0; i < 1'000; ++i) {
        published.publish(token);
      }
    };
    std::thread other(write);
    write();
    other.join();
    EXPECT_EQ(epochs.reclaim(), 0U);
    EXPECT_EQ(token.use_count(), 2) << "every version but the last is gone";
  }
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace weir
