#include <weir/base/hash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::uint64_t seed = 0x1234'5678'9abc'def1U;

enum class Color : std::uint8_t { red, green };
struct One {
  std::uint32_t a;
};
struct Two {
  std::uint8_t a;
  std::uint64_t b;  // seven bytes of padding before it
};
struct Three {
  std::array<std::uint8_t, 6> a;
  std::uint16_t b;
  Color c;
};
struct Four {
  int a, b, c, d;
};
struct Five {
  int a, b, c, d, e;
};
struct Six {
  int a, b, c, d, e;
  Two f;
};
class Custom {
 public:
  explicit Custom(int value) : value_(value) {}
  [[nodiscard]] std::uint64_t hash(std::uint64_t start) const { return hash_value(value_ % 10, start); }

 private:
  int value_;
};

TEST(MultiplyFold, FoldsBothHalves) {
  EXPECT_EQ(multiply_fold(3, 5), 15U);
  EXPECT_EQ(multiply_fold(std::uint64_t{1} << 63U, 2), 1U);
  EXPECT_EQ(multiply_fold(~std::uint64_t{0}, ~std::uint64_t{0}), ~std::uint64_t{0});  // (2^64-2) ^ 1
}

TEST(HashValue, EqualValuesAreEqualAndTheSeedMatters) {
  EXPECT_EQ(hash_value(7, seed), hash_value(7, seed));
  EXPECT_NE(hash_value(7, seed), hash_value(8, seed));
  EXPECT_NE(hash_value(7, seed), hash_value(7, seed + 1));
  EXPECT_NE(hash_value(Color::red, seed), hash_value(Color::green, seed));
}

TEST(HashValue, EveryMemberCounts) {
  const auto differ = [](const auto& a, const auto& b) { return hash_value(a, seed) != hash_value(b, seed); };
  EXPECT_TRUE(differ(One{1}, One{2}));
  EXPECT_TRUE(differ(Two{1, 1}, Two{2, 1}));
  EXPECT_TRUE(differ(Two{1, 1}, Two{1, 2}));
  EXPECT_TRUE(differ(Two{1, 2}, Two{2, 1}));
  const Three three{{1, 2, 3, 4, 5, 6}, 7, Color::red};
  EXPECT_TRUE(differ(three, Three{{1, 2, 3, 4, 5, 0}, 7, Color::red}));
  EXPECT_TRUE(differ(three, Three{{1, 2, 3, 4, 5, 6}, 8, Color::red}));
  EXPECT_TRUE(differ(three, Three{{1, 2, 3, 4, 5, 6}, 7, Color::green}));
  for (int member = 0; member < 6; ++member) {
    std::array<int, 6> values{};
    values[member] = 1;
    const auto& [a, b, c, d, e, f] = values;
    if (member < 4) {
      EXPECT_TRUE(differ(Four{}, Four{a, b, c, d})) << member;
    }
    if (member < 5) {
      EXPECT_TRUE(differ(Five{}, Five{a, b, c, d, e})) << member;
    }
    EXPECT_TRUE(differ(Six{}, Six{a, b, c, d, e, {0, static_cast<std::uint64_t>(f)}})) << member;
  }
}

TEST(HashValue, RangesAndOwnHashes) {
  EXPECT_EQ(hash_value(std::vector{1, 2}, seed), hash_value(std::array{1, 2}, seed));
  EXPECT_NE(hash_value(std::vector{1, 2}, seed), hash_value(std::vector{2, 1}, seed));
  EXPECT_NE(hash_value(std::vector{1}, seed), hash_value(std::vector{1, 0}, seed));
  EXPECT_EQ(hash_value(Custom(13), seed), hash_value(Custom(3), seed));
  EXPECT_NE(hash_value(Custom(13), seed), hash_value(Custom(4), seed));
}

TEST(HashValue, NeverReadsPadding) {
  std::set<std::uint64_t> hashes;
  for (const int filling : {0x00, 0x55, 0xff}) {
    alignas(Two) std::array<std::byte, sizeof(Two)> memory;
    std::memset(memory.data(), filling, memory.size());
    Two* const value = new (memory.data()) Two;
    value->a = 1;
    value->b = 2;
    hashes.insert(hash_value(*value, seed));
  }
  EXPECT_EQ(hashes.size(), 1U);
}

// Tables index by the low bits, caches tag by the high ones: both must spread for keys that count up.
TEST(HashValue, SpreadsConsecutiveKeys) {
  constexpr std::uint32_t keys = 65'536;
  std::vector<unsigned> low(1'024);
  std::vector<unsigned> high(1'024);
  std::set<std::uint64_t> all;
  for (std::uint32_t key = 0; key < keys; ++key) {
    const std::uint64_t hash = hash_value(Two{6, 0x0a00'0000U + key}, seed);
    ++low[hash % low.size()];
    ++high[hash >> 54U];
    all.insert(hash);
  }
  EXPECT_EQ(all.size(), keys);
  EXPECT_LT(*std::ranges::max_element(low), 64U * 2);
  EXPECT_LT(*std::ranges::max_element(high), 64U * 2);
}

}  // namespace
}  // namespace weir
