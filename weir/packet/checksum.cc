#include <weir/packet/checksum.h>

#include <algorithm>
#include <array>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace weir::checksum {

std::uint16_t sum_scalar(std::span<const std::uint8_t> bytes, std::uint16_t initial) {
  std::uint64_t sum = initial;
  std::size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) {
    sum += load_big<std::uint16_t>(&bytes[i]);
  }
  if (i < bytes.size()) {
    sum += std::uint32_t{bytes[i]} << 8U;
  }
  return fold(sum);
}

#if defined(__AVX2__)

std::uint16_t sum(std::span<const std::uint8_t> bytes, std::uint16_t initial) {
  if (bytes.size() < 64) {
    return sum_scalar(bytes, initial);
  }
  // Sums little-endian words in 32-bit lanes; the sum's bytes are swapped at the end (RFC 1071, section 2B). A lane
  // overflows after 65,536 additions of two words, far beyond any frame: chunks keep it so for any length.
  std::uint64_t total = 0;
  const __m256i low_words = _mm256_set1_epi32(0xffff);
  std::size_t i = 0;
  while (i + 32 <= bytes.size()) {
    __m256i lanes = _mm256_setzero_si256();
    const std::size_t stop = std::min(bytes.size(), i + 32 * std::size_t{16'384});
    for (; i + 32 <= stop; i += 32) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&bytes[i]));
      lanes = _mm256_add_epi32(lanes, _mm256_and_si256(words, low_words));
      lanes = _mm256_add_epi32(lanes, _mm256_srli_epi32(words, 16));
    }
    alignas(32) std::array<std::uint32_t, 8> parts{};
    _mm256_store_si256(reinterpret_cast<__m256i*>(parts.data()), lanes);
    for (const std::uint32_t part : parts) {
      total += part;
    }
  }
  const std::uint16_t swapped = std::byteswap(fold(total));
  return sum_scalar(bytes.subspan(i), fold(std::uint64_t{swapped} + initial));
}

#else

std::uint16_t sum(std::span<const std::uint8_t> bytes, std::uint16_t initial) { return sum_scalar(bytes, initial); }

#endif

std::uint16_t update(std::uint16_t checksum, std::span<const std::uint8_t> before,
                     std::span<const std::uint8_t> after) {
  std::uint64_t sum = static_cast<std::uint16_t>(~checksum);
  for (std::size_t i = 0; i + 1 < before.size(); i += 2) {
    sum += static_cast<std::uint16_t>(~load_big<std::uint16_t>(&before[i]));
    sum += load_big<std::uint16_t>(&after[i]);
  }
  return static_cast<std::uint16_t>(~fold(sum));
}

namespace {

// The CRC register after `bytes`, without the inversions at both ends.
std::uint32_t advance_crc32c(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
#if defined(__SSE4_2__)
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, &bytes[i], 8);
    crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
  }
  for (; i < bytes.size(); ++i) {
    crc = _mm_crc32_u8(crc, bytes[i]);
  }
#else
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ (0x82f63b78U & (0U - (crc & 1U)));
    }
  }
#endif
  return crc;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t crc) { return ~advance_crc32c(~crc, bytes); }

std::uint32_t update_crc32c(std::uint32_t crc, std::uint32_t before, std::uint32_t after, std::size_t following) {
  // The CRC is linear: the difference of two messages, run through from a zero register, is the CRCs' difference.
  std::array<std::uint8_t, 4> difference{};
  store_big<std::uint32_t>(difference.data(), before ^ after);
  static constexpr std::array<std::uint8_t, 256> zeros{};
  std::uint32_t delta = advance_crc32c(0, difference);
  while (following > 0) {
    const std::size_t part = std::min(following, zeros.size());
    delta = advance_crc32c(delta, std::span(zeros).first(part));
    following -= part;
  }
  return crc ^ delta;
}

}  // namespace weir::checksum
