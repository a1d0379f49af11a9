#include <weir/packet/checksum.h>

#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir::checksum {
namespace {

// The definition (RFC 1071, section 1), with a carry brought around at every step.
std::uint16_t plain_sum(std::span<const std::uint8_t> bytes, std::uint16_t initial = 0) {
  std::uint32_t sum = initial;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? bytes[i] * 256U : bytes[i];
    if (sum > 0xffff) {
      sum = sum - 0x10000 + 1;
    }
  }
  return static_cast<std::uint16_t>(sum);
}

// The definition of CRC32c (RFC 9260, appendix A), bit by bit.
std::uint32_t plain_crc32c(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool feedback = ((crc ^ (byte >> bit)) & 1U) != 0;
      crc = (crc >> 1U) ^ (feedback ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

std::vector<std::uint8_t> random_bytes(Random& random, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

TEST(Checksum, KnownSums) {
  // RFC 1071, section 3.
  const std::uint8_t example[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(sum(example), 0xddf2);
  EXPECT_EQ(sum({}), 0);
  EXPECT_EQ(sum({}, 7), 7);
  const std::uint8_t odd[] = {0x12};
  EXPECT_EQ(sum(odd), 0x1200);
  const std::uint8_t carried[] = {0xff, 0xff, 0x00, 0x01};
  EXPECT_EQ(sum(carried), 1);
}

TEST(Checksum, VectorEqualsScalarAtEveryLengthAndAlignment) {
  Random random(3);
  for (std::size_t length = 0; length <= 2100; ++length) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, length % 64}) {
      // Exactly so many bytes, so that a read beyond them is found.
      const auto block = std::make_unique<std::uint8_t[]>(length + shift);
      for (std::size_t i = 0; i < length + shift; ++i) {
        block[i] = static_cast<std::uint8_t>(random());
      }
      const std::span<const std::uint8_t> bytes(block.get() + shift, length);
      const auto initial = static_cast<std::uint16_t>(random());
      const std::uint16_t expected = plain_sum(bytes, initial);
      ASSERT_EQ(sum_scalar(bytes, initial), expected) << length << " at " << shift;
      ASSERT_EQ(sum(bytes, initial), expected) << length << " at " << shift;
    }
  }
}

TEST(Checksum, ExtremeBytes) {
  for (const std::size_t length : {1U, 2U, 63U, 64U, 65U, 127U, 128U, 1500U, 65'535U}) {
    const std::vector<std::uint8_t> zeros(length, 0);
    const std::vector<std::uint8_t> ones(length, 0xff);
    EXPECT_EQ(sum(zeros), 0) << length;
    EXPECT_EQ(sum(ones), plain_sum(ones)) << length;
    EXPECT_EQ(sum_scalar(ones), plain_sum(ones)) << length;
    EXPECT_EQ(sum(ones, 0xffff), plain_sum(ones, 0xffff)) << length;
  }
}

TEST(Checksum, VeryLong) {
  for (const std::size_t extra : {0U, 1U, 31U, 33U}) {
    const std::vector<std::uint8_t> ones((std::size_t{1} << 20U) + extra, 0xff);
    EXPECT_EQ(sum(ones), plain_sum(ones));
    Random random(4);
    const auto bytes = random_bytes(random, ones.size());
    EXPECT_EQ(sum(bytes), plain_sum(bytes));
    EXPECT_EQ(sum_scalar(bytes), plain_sum(bytes));
  }
}

// The checksums ~0x0000 and ~0xffff say the same; which of them it is, only matters where everything is zero.
TEST(Checksum, UpdateEqualsRecomputation) {
  Random random(5);
  for (int i = 0; i < 200'000; ++i) {
    auto bytes = random_bytes(random, 2 + 2 * random.below(20));
    const std::uint16_t edges[] = {0x0000, 0xffff, 0x0001, 0xfffe, static_cast<std::uint16_t>(random())};
    if (random.one_in(2)) {
      for (std::size_t j = 0; j < bytes.size(); j += 2) {
        store_big<std::uint16_t>(&bytes[j], edges[random.below(5)]);
      }
    }
    const auto checksum = static_cast<std::uint16_t>(~sum(bytes));
    const std::size_t at = 2 * random.below(static_cast<std::uint32_t>(bytes.size() / 2));
    const auto before = load_big<std::uint16_t>(&bytes[at]);
    const std::uint16_t after = edges[random.below(5)];
    store_big<std::uint16_t>(&bytes[at], after);
    const std::uint16_t total = sum(bytes);
    const std::uint16_t updated = update(checksum, before, after);
    if (total != 0) {
      ASSERT_EQ(updated, static_cast<std::uint16_t>(~total)) << before << " to " << after;
    } else {
      ASSERT_TRUE(updated == 0 || updated == 0xffff) << updated;
    }
  }
}

TEST(Checksum, UpdateOfSpansEqualsRecomputation) {
  Random random(6);
  for (int i = 0; i < 50'000; ++i) {
    auto bytes = random_bytes(random, 64);
    const auto checksum = static_cast<std::uint16_t>(~sum(bytes));
    const std::size_t length = 2 * random.below(17);
    const std::size_t at = 2 * random.below(static_cast<std::uint32_t>((bytes.size() - length) / 2));
    const std::vector<std::uint8_t> before(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                           bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    const auto after = random_bytes(random, length);
    std::copy(after.begin(), after.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    ASSERT_EQ(update(checksum, before, after), static_cast<std::uint16_t>(~sum(bytes)));
  }
}

TEST(Checksum, AWrongChecksumStaysWrong) {
  const std::uint8_t before[] = {0x12, 0x34, 0x56, 0x78};
  const std::uint8_t after[] = {0xab, 0xcd, 0x00, 0x01};
  const auto right = static_cast<std::uint16_t>(~sum(before));
  const std::uint16_t updated = update(static_cast<std::uint16_t>(right + 1), before, after);
  EXPECT_NE(updated, static_cast<std::uint16_t>(~sum(after)));
}

TEST(Crc32c, KnownValues) {
  const auto of = [](std::string_view text) {
    return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of("123456789"), 0xe3069283U);
  EXPECT_EQ(of(""), 0U);
  EXPECT_EQ(of("a"), 0xc1d04330U);
  // RFC 3720, appendix B.4.
  EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32, 0)), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::vector<std::uint8_t>(32, 0xff)), 0x62a8ab43U);
}

TEST(Crc32c, EqualsItsDefinitionAndContinues) {
  Random random(7);
  for (std::size_t length = 0; length < 300; ++length) {
    const auto bytes = random_bytes(random, length);
    const std::uint32_t whole = crc32c(bytes);
    ASSERT_EQ(whole, plain_crc32c(bytes)) << length;
    const std::size_t cut = length == 0 ? 0 : random.below(static_cast<std::uint32_t>(length));
    ASSERT_EQ(crc32c(std::span(bytes).subspan(cut), crc32c(std::span(bytes).first(cut))), whole);
  }
}

TEST(Crc32c, UpdateEqualsRecomputation) {
  Random random(8);
  for (int i = 0; i < 5'000; ++i) {
    auto bytes = random_bytes(random, 4 + random.below(2000));
    const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size() - 3));
    const std::uint32_t crc = crc32c(bytes);
    const auto before = load_big<std::uint32_t>(&bytes[at]);
    const auto after = static_cast<std::uint32_t>(random());
    store_big<std::uint32_t>(&bytes[at], after);
    const std::size_t following = bytes.size() - at - 4;
    ASSERT_EQ(update_crc32c(crc, before, after, following), crc32c(bytes)) << following;
    ASSERT_NE(update_crc32c(crc ^ 1U, before, after, following), crc32c(bytes));
  }
}

TEST(Crc32c, UpdateFarFromTheEnd) {
  Random random(9);
  auto bytes = random_bytes(random, std::size_t{1} << 20U);
  const std::uint32_t crc = crc32c(bytes);
  const auto before = load_big<std::uint32_t>(bytes.data());
  store_big<std::uint32_t>(bytes.data(), 1);
  EXPECT_EQ(update_crc32c(crc, before, 1, bytes.size() - 4), crc32c(bytes));
}

}  // namespace
}  // namespace weir::checksum
