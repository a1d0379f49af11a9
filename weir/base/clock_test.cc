#include <weir/base/clock.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, GoesForwardWithTheWorld) {
  const SystemClock clock;
  EXPECT_TRUE(clock.runs());
  const Nanoseconds before = clock.now();
  std::this_thread::sleep_for(2ms);
  EXPECT_GE(clock.now(), before + nanoseconds(2ms));
}

TEST(ManualClock, StandsStillUntilMoved) {
  ManualClock clock(100);
  EXPECT_FALSE(clock.runs());
  EXPECT_EQ(clock.now(), 100U);
  clock.advance(nanoseconds(1us));
  EXPECT_EQ(clock.now(), 1'100U);
  clock.set(2'000);
  EXPECT_EQ(clock.now(), 2'000U);
}

TEST(ManualClock, NeverGoesBack) {
  ManualClock clock(1'000);
  clock.set(999);
  EXPECT_EQ(clock.now(), 1'000U);
}

TEST(ManualClock, TheLatestOfConcurrentSetsWins) {
  ManualClock clock;
  std::thread other([&] {
    for (Nanoseconds time = 1; time <= 10'000; time += 2) {
      clock.set(time);
    }
  });
  for (Nanoseconds time = 0; time <= 10'000; time += 2) {
    clock.set(time);
  }
  other.join();
  EXPECT_EQ(clock.now(), 10'000U);
}

}  // namespace
}  // namespace weir
