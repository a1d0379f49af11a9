#include <weir/flow/predicate.h>

#include <bit>
#include <functional>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

constexpr std::uint64_t seed = 77;

unsigned proof_bits(const Tested& tested) {
  unsigned bits = 0;
  for (const std::uint8_t byte : tested.proof.bytes) {
    bits += static_cast<unsigned>(std::popcount(byte));
  }
  return bits;
}

FieldValue random_value(Random& random, unsigned bytes, bool v6) {
  FieldValue value;
  value.v6 = v6;
  for (unsigned i = 0; i < bytes; ++i) {
    value.bytes[i] = random.one_in(4) ? 0 : static_cast<std::uint8_t>(random());
  }
  return value;
}

// Whoever agrees with `value` on the proof gets its answer.
template <class Predicate>
void expect_sound(Random& random, const Predicate& predicate, const FieldValue& value, unsigned bytes,
                  const std::function<bool(const FieldValue&)>& plain) {
  const Tested tested = predicate.test(value, bytes);
  ASSERT_EQ(tested.holds, plain(value));
  for (int other = 0; other < 20; ++other) {
    FieldValue agreeing = value;
    for (unsigned i = 0; i < bytes; ++i) {
      const auto noise = static_cast<std::uint8_t>(random.one_in(3) ? 0 : random());
      agreeing.bytes[i] = static_cast<std::uint8_t>((value.bytes[i] & tested.proof.bytes[i]) |
                                                    (noise & ~tested.proof.bytes[i] & 0xffU));
    }
    ASSERT_EQ(plain(agreeing), tested.holds);
    ASSERT_EQ(predicate.test(agreeing, bytes).holds, tested.holds);
  }
}

std::uint64_t number_of(const FieldValue& value, unsigned bytes) {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    number = number * 256 + value.bytes[i];
  }
  return number;
}

TEST(Below, ProofIsSound) {
  Random random(seed);
  for (int round = 0; round < 30'000; ++round) {
    const unsigned bytes = 1 + random.below(3);
    const FieldValue value = random_value(random, bytes, false);
    const std::uint64_t number = number_of(value, bytes);
    const std::uint64_t limits[] = {
        0, 1, number, number + 1, number - 1, std::uint64_t{1} << 8U * bytes, random(), random.below(1U << 16U)};
    const std::uint64_t limit = limits[random.below(8)];
    expect_sound(random, below(limit), value, bytes, [&](const FieldValue& v) { return number_of(v, bytes) < limit; });
  }
}

TEST(Below, RevealsLittle) {
  const auto bits = [](std::uint16_t value, std::uint64_t limit) {
    return proof_bits(below(limit).test(to_field(value), 2));
  };
  EXPECT_EQ(bits(80, 1'024), 6U);
  EXPECT_EQ(bits(40'000, 1'024), 1U);
  EXPECT_EQ(bits(1'024, 1'024), 6U);
  EXPECT_EQ(bits(80, 0), 0U) << "nothing is below 0";
  EXPECT_EQ(bits(80, 65'536), 0U) << "all is below the end";
  EXPECT_EQ(bits(80, 81), 16U);
}

TEST(Below, EveryValueOfAByte) {
  for (unsigned limit = 0; limit <= 256; ++limit) {
    for (unsigned value = 0; value < 256; ++value) {
      const Tested tested = below(limit).test(to_field(static_cast<std::uint8_t>(value)), 1);
      ASSERT_EQ(tested.holds, value < limit);
      for (unsigned other = 0; other < 256; ++other) {
        if (((other ^ value) & tested.proof.bytes[0]) == 0) {
          ASSERT_EQ(other < limit, tested.holds) << value << ' ' << other << ' ' << limit;
        }
      }
    }
  }
}

TEST(Equals, ProofIsSound) {
  Random random(seed + 1);
  for (int round = 0; round < 30'000; ++round) {
    static constexpr unsigned sizes[] = {1, 2, 3, 4, 6, 16};
    const unsigned bytes = sizes[random.below(6)];
    const bool v6 = bytes == 16;
    const FieldValue value = random_value(random, bytes, v6);
    FieldValue wanted = random.one_in(2) ? value : random_value(random, bytes, v6);
    if (random.one_in(3)) {
      const std::uint32_t bit = random.below(8 * bytes);
      wanted.bytes[bit / 8] = static_cast<std::uint8_t>(wanted.bytes[bit / 8] ^ (1U << bit % 8));
    }
    expect_sound(random, Equals{wanted}, value, bytes, [&](const FieldValue& v) { return v == wanted; });
    const Tested tested = Equals{wanted}.test(value, bytes);
    EXPECT_EQ(proof_bits(tested), tested.holds ? 8 * bytes : 1) << "one bit is enough to tell two values apart";
  }
}

TEST(Equals, FamiliesAreToldApartByTheLayout) {
  const Tested tested = Equals(equals(*IpAddress::parse("::"))).test(to_field(*IpAddress::parse("0.0.0.0")), 4);
  EXPECT_FALSE(tested.holds);
  EXPECT_EQ(proof_bits(tested), 0U);
}

TEST(Multicast, ProofIsSound) {
  Random random(seed + 2);
  for (int round = 0; round < 30'000; ++round) {
    static constexpr unsigned sizes[] = {4, 6, 16};
    const unsigned bytes = sizes[random.below(3)];
    FieldValue value = random_value(random, bytes, bytes == 16);
    static constexpr std::uint8_t firsts[] = {0xff, 0xfe, 0xe0, 0xef, 0xf0, 0xdf, 0x01, 0x02};
    if (random.one_in(2)) {
      value.bytes[0] = firsts[random.below(8)];
    }
    expect_sound(random, multicast(), value, bytes, [bytes](const FieldValue& v) {
      if (bytes == 6) {
        return v.bytes[0] % 2 == 1;
      }
      return from_field<IpAddress>(v).multicast();
    });
  }
}

TEST(Inside, ProofIsSound) {
  Random random(seed + 3);
  for (int round = 0; round < 30'000; ++round) {
    const bool v6 = random.one_in(2);
    const unsigned bytes = v6 ? 16 : 4;
    const FieldValue value = random_value(random, bytes, v6);
    IpAddress near = from_field<IpAddress>(value);
    if (random.one_in(2)) {
      const std::uint32_t bit = random.below(8 * bytes);
      near.bytes[bit / 8] = static_cast<std::uint8_t>(near.bytes[bit / 8] ^ (0x80U >> bit % 8));
    }
    const IpPrefix prefix(near, random.below(8 * bytes + 1));
    expect_sound(random, inside(prefix), value, bytes,
                 [&](const FieldValue& v) { return prefix.contains(from_field<IpAddress>(v)); });
  }
}

TEST(Inside, RevealsUpToTheFirstDifference) {
  const auto bits = [](const char* address, const char* prefix) {
    return proof_bits(inside(*IpPrefix::parse(prefix)).test(to_field(*IpAddress::parse(address)), 4));
  };
  EXPECT_EQ(bits("10.1.2.3", "10.0.0.0/8"), 8U);
  EXPECT_EQ(bits("138.1.2.3", "10.0.0.0/8"), 1U);
  EXPECT_EQ(bits("11.1.2.3", "10.0.0.0/8"), 8U);
  EXPECT_EQ(bits("10.1.2.3", "0.0.0.0/0"), 0U);
  EXPECT_EQ(bits("10.1.2.3", "2001:db8::/32"), 0U);
}

}  // namespace
}  // namespace weir
