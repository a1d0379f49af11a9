#pragma once
// UDP (RFC 768).

#include <weir/packet/bytes.h>

namespace weir {

struct UdpHeader {
  Big16 src_port;
  Big16 dst_port;
  Big16 length;    ///< header and payload, bytes
  Big16 checksum;  ///< 0: none was computed
};
static_assert(sizeof(UdpHeader) == 8);

}  // namespace weir
