#include <weir/flow/meter.h>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Nanoseconds second = 1'000'000'000;

TEST(Meter, PassesABurstThenTheRate) {
  Meter meter("m", 1'000, 10, false);  // one packet each millisecond
  const Nanoseconds start = 5 * second;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(meter.conforms(1'500, start)) << i;
  }
  EXPECT_FALSE(meter.conforms(1'500, start));
  EXPECT_FALSE(meter.conforms(1'500, start + 999'999));
  EXPECT_TRUE(meter.conforms(1'500, start + 1'000'000));
  EXPECT_FALSE(meter.conforms(1'500, start + 1'000'000));
  // Idle for long, it does not save up more than the burst.
  int passed = 0;
  while (meter.conforms(1'500, start + 60 * second)) {
    ++passed;
  }
  EXPECT_EQ(passed, 10);
}

TEST(Meter, CountsBytes) {
  Meter meter("m", 1'000'000, 3'000, true);  // a microsecond a byte
  EXPECT_TRUE(meter.conforms(1'500, second));
  EXPECT_TRUE(meter.conforms(1'500, second));
  EXPECT_FALSE(meter.conforms(1, second));
  EXPECT_TRUE(meter.conforms(100, second + 100'000));
  EXPECT_FALSE(meter.conforms(3'001, 100 * second)) << "more than the burst never passes";
  EXPECT_TRUE(meter.conforms(3'000, 100 * second)) << "and is not charged";
}

TEST(Meter, KeepsTheRateOverTime) {
  Meter meter("m", 10'000, 5, false);
  int passed = 0;
  // Offered: four times the rate, for ten seconds.
  for (Nanoseconds now = second; now < 11 * second; now += 25'000) {
    passed += meter.conforms(64, now) ? 1 : 0;
  }
  EXPECT_NEAR(passed, 100'000, 10);
}

TEST(Meter, WorksAtTimeZero) {
  Meter meter("m", 10, 1, false);
  EXPECT_TRUE(meter.conforms(1, 0));
  EXPECT_FALSE(meter.conforms(1, 0));
  EXPECT_TRUE(meter.conforms(1, second / 10));
}

TEST(Meter, ThreadsShareOneBurst) {
  Meter meter("m", 1, 1'000, false);
  std::vector<int> passed(4);
  std::vector<std::thread> threads;
  for (int& mine : passed) {
    threads.emplace_back([&meter, &mine] {
      for (int i = 0; i < 2'000; ++i) {
        mine += meter.conforms(1, second) ? 1 : 0;
      }
    });
  }
  int total = 0;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    total += passed[i];
  }
  EXPECT_EQ(total, 1'000);
}

}  // namespace
}  // namespace weir
