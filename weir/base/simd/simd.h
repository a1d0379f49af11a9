#pragma once
// All that is written for vector units. Each function has a scalar twin in `simd::scalar`, which is used where the
// compiler targets a processor without them, and with which simd_test.cc compares it.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace weir::simd {

/// Blocks are this long, in bytes.
inline constexpr std::size_t block = 32;

namespace scalar {

inline unsigned first_equal(const std::array<std::uint32_t, 8>& in, std::uint32_t wanted) {
  for (unsigned i = 0; i < in.size(); ++i) {
    if (in[i] == wanted) {
      return i;
    }
  }
  return in.size();
}

inline std::uint64_t sum_words(std::span<const std::uint8_t> blocks) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < blocks.size(); i += 2) {
    sum += std::uint32_t{blocks[i]} | std::uint32_t{blocks[i + 1]} << 8U;
  }
  return sum;
}

inline void copy_blocks(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  std::memcpy(to, from, (bytes + block - 1) / block * block);
}

inline std::uint32_t crc32c(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ (0x82f63b78U & (0U - (crc & 1U)));
    }
  }
  return crc;
}

/// Two blocks held by value.
class Line {
 public:
  Line() = default;
  explicit Line(const std::uint8_t* from) { std::memcpy(bytes_.data(), from, bytes_.size()); }
  void store(std::uint8_t* to) const { std::memcpy(to, bytes_.data(), bytes_.size()); }

 private:
  std::array<std::uint8_t, 2 * block> bytes_{};
};

}  // namespace scalar

#if defined(__AVX2__)

/// Index of the first number equal to `wanted`, or 8. The array is 32-byte aligned.
inline unsigned first_equal(const std::array<std::uint32_t, 8>& in, std::uint32_t wanted) {
  const __m256i there = _mm256_load_si256(reinterpret_cast<const __m256i*>(in.data()));
  const __m256i equal = _mm256_cmpeq_epi32(_mm256_set1_epi32(static_cast<int>(wanted)), there);
  const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
  return mask == 0 ? 8U : static_cast<unsigned>(std::countr_zero(mask));
}

/// The sum of the 16-bit little-endian words of whole blocks, up to 2^47 bytes of them.
inline std::uint64_t sum_words(std::span<const std::uint8_t> blocks) {
  // A lane of 32 bits overflows after 65,536 additions of a word.
  constexpr std::size_t bytes_at_once = block * 16'384;
  const __m256i low_words = _mm256_set1_epi32(0xffff);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < blocks.size();) {
    __m256i lanes = _mm256_setzero_si256();
    const std::size_t left = blocks.size() - i;
    const std::size_t stop = i + (left < bytes_at_once ? left : bytes_at_once);
    for (; i < stop; i += block) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&blocks[i]));
      lanes = _mm256_add_epi32(lanes, _mm256_and_si256(words, low_words));
      lanes = _mm256_add_epi32(lanes, _mm256_srli_epi32(words, 16));
    }
    alignas(block) std::array<std::uint32_t, 8> parts{};
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts.data()), lanes);
    for (const std::uint32_t part : parts) {
      sum += part;
    }
  }
  return sum;
}

/// Copies `bytes` rounded up to whole blocks: both sides have room for that.
inline void copy_blocks(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += block) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
}

/// The CRC-32C register (RFC 9260, appendix A) after `bytes`, without the inversions at both ends.
inline std::uint32_t crc32c(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[i], 8);
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
  }
  for (; i < bytes.size(); ++i) {
    crc = _mm_crc32_u8(crc, bytes[i]);
  }
  return crc;
}

/// Two blocks held by value, in registers.
class Line {
 public:
  Line() = default;
  explicit Line(const std::uint8_t* from)
      : low_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))),
        high_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + block))) {}
  void store(std::uint8_t* to) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), low_);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + block), high_);
  }

 private:
  __m256i low_{};
  __m256i high_{};
};

#else

using scalar::copy_blocks;
using scalar::crc32c;
using scalar::first_equal;
using scalar::Line;
using scalar::sum_words;

#endif

}  // namespace weir::simd
