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

}  // namespace weir
