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

// A packet's cost is no whole number of nanoseconds: 64 bytes at 100 Gbit/s take 5.12 ns.
TEST(Meter, KeepsAHighRate) {
  Meter meter("m", 12'500'000'000, 1'000'000, true);
  std::uint64_t passed = 0;
  // Offered: twice the rate, for ten milliseconds.
  for (std::uint64_t i = 0; i < 3'906'250; ++i) {
    passed += meter.conforms(64, second + i * 256 / 100) ? 64 : 0;
  }
  EXPECT_NEAR(static_cast<double>(passed), 125e6 + 1e6, 125e6 * 0.005);
}

TEST(Meter, TakesAnyRateAndBurst) {
  Meter slow("m", 1, ~std::uint64_t{0}, true);
  EXPECT_TRUE(slow.conforms(65'535, second));
  Meter fast("m", ~std::uint64_t{0}, 1, false);
  EXPECT_TRUE(fast.conforms(1, second));
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
