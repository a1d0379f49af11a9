// Invariant I7: every vector path agrees with its scalar twin.
#include <weir/base/simd/simd.h>

#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

std::vector<std::uint8_t> random_bytes(Random& random, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

TEST(Simd, FirstEqual) {
  Random random(1);
  alignas(simd::block) std::array<std::uint32_t, 8> in{};
  for (int i = 0; i < 100'000; ++i) {
    for (auto& number : in) {
      number = random.below(10) | (random.below(2) << 31U);
    }
    const std::uint32_t wanted = random.below(10) | (random.below(2) << 31U);
    ASSERT_EQ(simd::first_equal(in, wanted), simd::scalar::first_equal(in, wanted)) << "round " << i;
  }
}

TEST(Simd, SumWords) {
  Random random(2);
  for (std::size_t blocks = 0; blocks < 300; ++blocks) {
    const auto bytes = random_bytes(random, blocks * simd::block);
    ASSERT_EQ(simd::sum_words(bytes), simd::scalar::sum_words(bytes)) << blocks << " blocks";
  }
}

TEST(Simd, SumWordsDoesNotOverflow) {
  const std::vector<std::uint8_t> bytes(simd::block * 40'000, 0xff);
  EXPECT_EQ(simd::sum_words(bytes), std::uint64_t{0xffff} * bytes.size() / 2);
  EXPECT_EQ(simd::scalar::sum_words(bytes), std::uint64_t{0xffff} * bytes.size() / 2);
}

TEST(Simd, CopyBlocks) {
  Random random(3);
  const auto from = random_bytes(random, 1024);
  for (std::size_t size = 0; size <= from.size(); ++size) {
    std::vector<std::uint8_t> vector(from.size() + simd::block, 0xaa);
    std::vector<std::uint8_t> scalar(vector);
    simd::copy_blocks(vector.data(), from.data(), size);
    simd::scalar::copy_blocks(scalar.data(), from.data(), size);
    ASSERT_EQ(vector, scalar) << size << " bytes";
    ASSERT_TRUE(std::equal(vector.begin(), vector.begin() + static_cast<std::ptrdiff_t>(size), from.begin()));
  }
}

TEST(Simd, Crc32c) {
  Random random(5);
  const auto bytes = random_bytes(random, 300);
  for (std::size_t size = 0; size <= 200; ++size) {
    const auto part = std::span(bytes).subspan(size % 9, size);
    const auto register_before = static_cast<std::uint32_t>(random());
    ASSERT_EQ(simd::crc32c(register_before, part), simd::scalar::crc32c(register_before, part)) << size << " bytes";
  }
}

TEST(Simd, Line) {
  Random random(4);
  const auto from = random_bytes(random, 2 * simd::block);
  std::vector<std::uint8_t> vector(from.size() + 2, 0xaa);
  std::vector<std::uint8_t> scalar(vector);
  simd::Line(from.data()).store(vector.data() + 1);
  simd::scalar::Line(from.data()).store(scalar.data() + 1);
  EXPECT_EQ(vector, scalar);
  EXPECT_TRUE(std::equal(from.begin(), from.end(), vector.begin() + 1));
}

}  // namespace
}  // namespace weir
