#include <weir/base/random.h>

#include <algorithm>
#include <array>
#include <numeric>

#include <gtest/gtest.h>

namespace weir {
namespace {

// The published sequence of SplitMix64: seeds must mean the same on every machine and in every release.
TEST(Random, GivesThePublishedSequence) {
  Random random(1'234'567);
  EXPECT_EQ(random(), 6457827717110365317U);
  EXPECT_EQ(random(), 3203168211198807973U);
  EXPECT_EQ(random(), 9817491932198370423U);
  EXPECT_EQ(random(), 4593380528125082431U);
  EXPECT_EQ(random(), 16408922859458223821U);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Random random(1);
  for (const std::uint32_t limit : {1U, 2U, 7U, 100U}) {
    std::array<unsigned, 100> seen{};
    for (int i = 0; i < 10'000; ++i) {
      const std::uint32_t number = random.below(limit);
      ASSERT_LT(number, limit);
      ++seen[number];
    }
    for (std::uint32_t number = 0; number < limit; ++number) {
      EXPECT_GT(seen[number], 10'000 / limit / 3) << number << " of " << limit;
    }
  }
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_LT(random.below(~0U), ~0U);
  }
}

TEST(Random, OneInN) {
  Random random(2);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(random.one_in(1));
    hits += random.one_in(10) ? 1 : 0;
  }
  EXPECT_NEAR(hits, 10'000, 500);
}

TEST(Random, DrivesStandardAlgorithms) {
  std::array<int, 100> numbers;
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto sorted = numbers;
  Random random(3);
  std::shuffle(numbers.begin(), numbers.end(), random);
  EXPECT_NE(numbers, sorted);
  EXPECT_TRUE(std::is_permutation(numbers.begin(), numbers.end(), sorted.begin()));
}

}  // namespace
}  // namespace weir
