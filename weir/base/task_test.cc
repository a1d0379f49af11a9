#include <weir/base/task.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/clock.h>
#include <weir/base/error.h>
#include <weir/base/loop.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

class TaskTest : public ::testing::Test {
 protected:
  void poll(int turns = 4) {
    for (int i = 0; i < turns; ++i) {
      loop_->poll_once();
    }
  }
  ManualClock clock_;
  std::unique_ptr<Loop> loop_ = Loop::create(clock_).value();
};

Task<int> answer() { co_return 42; }
Task<std::unique_ptr<int>> boxed(int value) { co_return std::make_unique<int>(value); }
Task<Result<int>> fallible(bool fail) {
  if (fail) {
    co_return error("no luck");
  }
  co_return 1;
}
Task<> nothing() { co_return; }
Task<int> failing() {
  throw std::runtime_error("broken");
  co_return 0;
}

TEST_F(TaskTest, GivesResults) {
  std::string log;
  loop_->spawn([](std::string& to) -> Task<> {
    to += std::to_string(co_await answer());
    const std::unique_ptr<int> box = co_await boxed(7);
    to += std::to_string(*box);
    const Result<int> good = co_await fallible(false);
    const Result<int> bad = co_await fallible(true);
    to += std::to_string(*good) + bad.error().message;
    co_await nothing();
    to += ".";
  }(log));
  EXPECT_EQ(log, "") << "spawned, not yet polled";
  poll();
  EXPECT_EQ(log, "4271no luck.");
}

TEST_F(TaskTest, IsLazy) {
  bool started = false;
  const auto start = [](bool& flag) -> Task<> {
    flag = true;
    co_return;
  };
  {
    const Task<> unused = start(started);
  }
  EXPECT_FALSE(started);
  loop_->spawn([](Task<> /*never awaited*/, Task<> second, bool& flag) -> Task<> {
    EXPECT_FALSE(flag);
    co_await std::move(second);
    EXPECT_TRUE(flag);
  }(start(started), start(started), started));
  poll();
  EXPECT_TRUE(started);
}

TEST_F(TaskTest, AssignmentReplacesAndDestroys) {
  const auto token = std::make_shared<int>(1);
  const auto hold = [](std::shared_ptr<int>) -> Task<> { co_return; };
  Task<> task = hold(token);
  EXPECT_EQ(token.use_count(), 2);
  task = nothing();
  EXPECT_EQ(token.use_count(), 1);
}

TEST_F(TaskTest, ExceptionsReachTheAwaiter) {
  std::string caught;
  loop_->spawn([](Loop& loop, std::string& to) -> Task<> {
    const auto between = [](Loop& on) -> Task<int> {
      co_await on.sleep(1ms);
      co_return co_await failing();
    };
    try {
      co_await between(loop);
    } catch (const std::runtime_error& e) {
      to = e.what();
    }
  }(*loop_, caught));
  poll();
  clock_.advance(nanoseconds(1ms));
  poll();
  EXPECT_EQ(caught, "broken");
}

using TaskDeathTest = TaskTest;

TEST_F(TaskDeathTest, ExceptionsOutOfASpawnedTaskEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // other tests may have left threads (a sanitizer's, too)
  EXPECT_DEATH(
      {
        loop_->spawn([]() -> Task<> { co_await failing(); }());
        poll();
      },
      "broken");
}

struct Note {
  std::vector<int>& to;
  int name;
  ~Note() { to.push_back(name); }
};

Task<> nested(Loop& loop, std::vector<int>& log, int depth) {
  const Note note{log, depth};
  if (depth < 3) {
    co_await nested(loop, log, depth + 1);
  } else {
    co_await loop.sleep(1h);
  }
  ADD_FAILURE() << "a cancelled task went on";
}

TEST_F(TaskTest, CancellingDestroysInnermostFirst) {
  std::vector<int> log;
  SpawnedTask task = loop_->spawn_scoped(nested(*loop_, log, 1));
  poll();
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(log.empty());
  task.cancel();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(log, (std::vector{3, 2, 1}));
  clock_.advance(nanoseconds(2h));
  poll();
}

TEST_F(TaskTest, CancelledBeforeItStartsNeverStarts) {
  std::vector<int> log;
  {
    const SpawnedTask task = loop_->spawn_scoped(nested(*loop_, log, 1));
  }
  poll();
  EXPECT_TRUE(log.empty());
}

TEST_F(TaskTest, HandlesMoveAndSeeTheEnd) {
  std::vector<int> log;
  SpawnedTask first = loop_->spawn_scoped(nested(*loop_, log, 3));
  SpawnedTask second = loop_->spawn_scoped(nothing());
  SpawnedTask moved = std::move(first);
  EXPECT_TRUE(first.done());  // NOLINT: what is left is defined
  poll();
  EXPECT_FALSE(moved.done());
  EXPECT_TRUE(second.done());
  moved = std::move(second);
  EXPECT_EQ(log, (std::vector{3})) << "assigning cancels what the handle held";
}

TEST_F(TaskTest, MayCancelItself) {
  std::vector<int> log;
  std::unique_ptr<SpawnedTask> handle;
  handle = std::make_unique<SpawnedTask>(
      loop_->spawn_scoped([](Loop& loop, std::unique_ptr<SpawnedTask>& own, std::vector<int>& to) -> Task<> {
        const Note note{to, 1};
        own.reset();
        to.push_back(0);  // runs on until it waits
        co_await loop.sleep(0ns);
        to.push_back(2);
      }(*loop_, handle, log)));
  poll();
  EXPECT_EQ(log, (std::vector{0, 1}));
}

TEST_F(TaskTest, MayCancelAnotherAndOwnItself) {
  std::vector<int> log;
  SpawnedTask other = loop_->spawn_scoped(nested(*loop_, log, 3));
  // This one holds the handle to itself in a variable; destroying it must not cancel it twice.
  SpawnedTask self;
  SpawnedTask* const passed = &self;
  self = loop_->spawn_scoped([](Loop& loop, SpawnedTask* own, SpawnedTask& victim) -> Task<> {
    const SpawnedTask mine = std::move(*own);
    victim.cancel();
    co_await loop.sleep(1h);
  }(*loop_, passed, other));
  poll();
  EXPECT_EQ(log, (std::vector{3}));
  loop_.reset();
}

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_NO_TAIL_CALLS
#endif
#endif
#else
#define WEIR_NO_TAIL_CALLS
#endif

TEST_F(TaskTest, ALongChainOfImmediateTasksDoesNotUseUpTheStack) {
#ifdef WEIR_NO_TAIL_CALLS
  constexpr int count = 1'000;
#else
  constexpr int count = 2'000'000;
#endif
  int sum = 0;
  loop_->spawn([](int& to) -> Task<> {
    const auto one = []() -> Task<int> { co_return 1; };
    for (int i = 0; i < count; ++i) {
      to += co_await one();
    }
  }(sum));
  poll();
  EXPECT_EQ(sum, count);
}

}  // namespace
}  // namespace weir
