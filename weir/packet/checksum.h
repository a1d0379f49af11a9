#pragma once
// The Internet checksum (RFC 1071), whole and incremental (RFC 1624), and SCTP's CRC32c (RFC 9260, appendix A).

#include <cstdint>
#include <span>

#include <weir/packet/bytes.h>

namespace weir::checksum {

/// Folds a sum of 16-bit words to 16 bits. Two folds: the first may carry.
inline std::uint16_t fold(std::uint64_t sum) {
  sum = (sum & 0xffffffffU) + (sum >> 32U);
  sum = (sum & 0xffffffffU) + (sum >> 32U);
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = (sum & 0xffffU) + (sum >> 16U);
  return static_cast<std::uint16_t>(sum);
}

/// The ones' complement sum of the 16-bit big-endian words of `bytes`, not inverted, added to `initial`.
/// An odd last byte counts as the upper half of a word. Picks the vector path where it pays.
std::uint16_t sum(std::span<const std::uint8_t> bytes, std::uint16_t initial = 0);

/// The scalar twin of `sum`: the plain definition, for tests and for machines without vectors.
std::uint16_t sum_scalar(std::span<const std::uint8_t> bytes, std::uint16_t initial = 0);

/// The checksum field (big-endian value) after a 16-bit word changed from `before` to `after` (RFC 1624, equation 3).
inline std::uint16_t update(std::uint16_t checksum, std::uint16_t before, std::uint16_t after) {
  const std::uint64_t sum =
      static_cast<std::uint16_t>(~checksum) + std::uint64_t{static_cast<std::uint16_t>(~before)} + after;
  return static_cast<std::uint16_t>(~fold(sum));
}

/// The same for `before.size()` bytes, an even number, at an even offset; both spans have the same size.
std::uint16_t update(std::uint16_t checksum, std::span<const std::uint8_t> before, std::span<const std::uint8_t> after);

/// CRC32c of `bytes`, continuing from `crc` (0 to begin).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t crc = 0);

/// The CRC32c of a message after four of its bytes changed from `before` to `after`, with `following` bytes behind
/// them. A wrong CRC stays wrong.
std::uint32_t update_crc32c(std::uint32_t crc, std::uint32_t before, std::uint32_t after, std::size_t following);

}  // namespace weir::checksum
