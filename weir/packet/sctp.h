#pragma once
// SCTP's common header (RFC 9260, section 3.1).

#include <weir/packet/bytes.h>

namespace weir {

struct SctpHeader {
  Big16 src_port;
  Big16 dst_port;
  Big32 verification_tag;
  std::uint8_t checksum[4];  ///< CRC32c of the whole SCTP packet, least significant byte first
};
static_assert(sizeof(SctpHeader) == 12);

/// Types of the chunks that open and close an association (RFC 9260, section 3.2).
namespace sctp_chunk {
inline constexpr std::uint8_t init = 1;
inline constexpr std::uint8_t init_ack = 2;
inline constexpr std::uint8_t abort = 6;
inline constexpr std::uint8_t shutdown = 7;
inline constexpr std::uint8_t shutdown_ack = 8;
inline constexpr std::uint8_t cookie_echo = 10;
inline constexpr std::uint8_t cookie_ack = 11;
inline constexpr std::uint8_t shutdown_complete = 14;

/// Whether a packet that begins with such a chunk may open or close an association.
constexpr bool opens_or_closes(std::uint8_t type) {
  constexpr std::uint32_t all = 1U << init | 1U << init_ack | 1U << abort | 1U << shutdown | 1U << shutdown_ack |
                                1U << cookie_echo | 1U << cookie_ack | 1U << shutdown_complete;
  return type < 32 && (all >> type & 1U) != 0;
}
}  // namespace sctp_chunk

}  // namespace weir
