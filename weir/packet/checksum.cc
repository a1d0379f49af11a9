#include <weir/packet/checksum.h>

#include <algorithm>
#include <array>

#include <weir/base/simd/simd.h>

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

std::uint16_t sum(std::span<const std::uint8_t> bytes, std::uint16_t initial) {
  if (bytes.size() < 2 * simd::block) {
    return sum_scalar(bytes, initial);
  }
  // Little-endian words may be added if the sum's bytes are swapped at the end (RFC 1071, section 2(B)).
  const std::size_t whole = bytes.size() / simd::block * simd::block;
  const std::uint16_t swapped = std::byteswap(fold(simd::sum_words(bytes.first(whole))));
  return sum_scalar(bytes.subspan(whole), fold(std::uint64_t{swapped} + initial));
}

std::uint16_t update(std::uint16_t checksum, std::span<const std::uint8_t> before,
                     std::span<const std::uint8_t> after) {
  std::uint64_t sum = static_cast<std::uint16_t>(~checksum);
  for (std::size_t i = 0; i + 1 < before.size(); i += 2) {
    sum += static_cast<std::uint16_t>(~load_big<std::uint16_t>(&before[i]));
    sum += load_big<std::uint16_t>(&after[i]);
  }
  return static_cast<std::uint16_t>(~fold(sum));
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t crc) { return ~simd::crc32c(~crc, bytes); }

std::uint32_t update_crc32c(std::uint32_t crc, std::uint32_t before, std::uint32_t after, std::size_t following) {
  // The CRC is linear: the difference of two messages, run through from a zero register, is the CRCs' difference.
  std::array<std::uint8_t, 4> difference{};
  store_big<std::uint32_t>(difference.data(), before ^ after);
  static constexpr std::array<std::uint8_t, 256> zeros{};
  std::uint32_t delta = simd::crc32c(0, difference);
  while (following > 0) {
    const std::size_t part = std::min(following, zeros.size());
    delta = simd::crc32c(delta, std::span(zeros).first(part));
    following -= part;
  }
  return crc ^ delta;
}

}  // namespace weir::checksum
