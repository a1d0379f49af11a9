#pragma once

#include <cstdint>

#include <weir/packet/address.h>

namespace weir {

/// What `flow.encapsulate` puts around a packet (RFC 7348). The outer source port is computed from the packet's flow
/// hash (49152 to 65535), the outer ECN from the packet's (RFC 6040), lengths and the IPv4 header checksum as usual;
/// the UDP checksum is zero, as RFC 7348 and, for IPv6, RFC 6935 have it.
struct Vxlan {
  std::uint32_t vni = 0;  ///< 24 bits
  IpAddress src;          ///< both addresses of the same family
  IpAddress dst;
  MacAddress eth_src;
  MacAddress eth_dst;
  std::uint16_t dst_port = 4789;
  std::uint8_t ttl = 64;
  std::uint8_t dscp = 0;  ///< 6 bits

  bool operator==(const Vxlan&) const = default;
};

/// What `flow.translate` rewrites; what is absent stays.
struct Nat {
  bool set_src = false, set_dst = false, set_src_port = false, set_dst_port = false;
  IpAddress src, dst;  ///< of the packet's own family
  std::uint16_t src_port = 0, dst_port = 0;
};

}  // namespace weir
