#pragma once
// IPv4 (RFC 791).

#include <weir/packet/address.h>

namespace weir {

namespace ip_protocol {
inline constexpr std::uint8_t icmp = 1;
inline constexpr std::uint8_t tcp = 6;
inline constexpr std::uint8_t udp = 17;
inline constexpr std::uint8_t icmpv6 = 58;
inline constexpr std::uint8_t sctp = 132;

/// Whether its header begins with two ports (of those that Weir looks into).
constexpr bool has_ports(std::uint8_t protocol) { return protocol == tcp || protocol == udp || protocol == sctp; }
}  // namespace ip_protocol

struct Ipv4Header {
  static constexpr std::uint16_t more_fragments = 0x2000;
  static constexpr std::uint16_t dont_fragment = 0x4000;
  static constexpr std::uint16_t offset_mask = 0x1fff;  ///< in units of 8 bytes

  std::uint8_t version_length;  ///< version (4 bits), header length in units of 4 bytes (4)
  std::uint8_t tos;             ///< DSCP (6 bits), ECN (2)
  Big16 total_length;           ///< header and payload, bytes
  Big16 id;
  Big16 fragment;  ///< flags (3 bits), offset (13)
  std::uint8_t ttl;
  std::uint8_t protocol;
  Big16 checksum;
  Ipv4Address src;
  Ipv4Address dst;

  [[nodiscard]] unsigned version() const { return version_length >> 4U; }
  [[nodiscard]] unsigned header_length() const { return (version_length & 0x0fU) * 4U; }
};
static_assert(sizeof(Ipv4Header) == 20);

}  // namespace weir
