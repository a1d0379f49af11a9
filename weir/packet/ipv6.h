#pragma once
// IPv6 (RFC 8200).

#include <weir/packet/ipv4.h>

namespace weir {

struct Ipv6Header {
  Big32 version_class_label;  ///< version (4 bits), traffic class (8), flow label (20)
  Big16 payload_length;       ///< extension headers and payload, bytes
  std::uint8_t next_header;
  std::uint8_t hop_limit;
  Ipv6Address src;
  Ipv6Address dst;

  [[nodiscard]] unsigned version() const { return version_class_label >> 28U; }
  [[nodiscard]] std::uint8_t traffic_class() const { return static_cast<std::uint8_t>(version_class_label >> 20U); }
};
static_assert(sizeof(Ipv6Header) == 40);

namespace ipv6_extension {
inline constexpr std::uint8_t hop_by_hop = 0;
inline constexpr std::uint8_t routing = 43;
inline constexpr std::uint8_t fragment = 44;
inline constexpr std::uint8_t authentication = 51;  ///< RFC 4302: its length counts 4-byte units, less 2
inline constexpr std::uint8_t destination = 60;
}  // namespace ipv6_extension

struct Ipv6Fragment {
  std::uint8_t next_header;
  std::uint8_t reserved;
  Big16 offset;  ///< offset in units of 8 bytes (13 bits), reserved (2), more (1)
  Big32 id;
};
static_assert(sizeof(Ipv6Fragment) == 8);

}  // namespace weir
