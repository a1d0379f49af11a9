#pragma once
// Checksums as their definitions read, a word or a bit at a time.

#include <cstdint>
#include <span>

namespace weir::reference {

/// The sum of two words in ones' complement.
std::uint16_t add(std::uint16_t a, std::uint16_t b);

/// The ones' complement sum of all words (RFC 1071); an odd last byte is the upper half of one.
std::uint16_t sum(std::span<const std::uint8_t> bytes);

/// A checksum after what it covers has changed, word for word (RFC 1624, equation 3). One that was wrong stays wrong.
/// Both spans have the same even size.
std::uint16_t updated(std::uint16_t checksum, std::span<const std::uint8_t> before,
                      std::span<const std::uint8_t> after);

/// CRC32c (RFC 9260, appendix A).
std::uint32_t crc32c(std::span<const std::uint8_t> bytes);

}  // namespace weir::reference
