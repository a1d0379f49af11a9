#pragma once
// ICMPv6 (RFC 4443). Its checksum covers the pseudo-header, unlike ICMP's.

#include <weir/packet/bytes.h>

namespace weir {

struct Icmpv6Header {
  std::uint8_t type;  ///< errors are below 128
  std::uint8_t code;
  Big16 checksum;
  Big16 id;        ///< of an echo; the upper half of the MTU in "packet too big"
  Big16 sequence;  ///< of an echo; the lower half of the MTU in "packet too big"
};
static_assert(sizeof(Icmpv6Header) == 8);

namespace icmpv6_type {
inline constexpr std::uint8_t unreachable = 1;
inline constexpr std::uint8_t packet_too_big = 2;
inline constexpr std::uint8_t time_exceeded = 3;
inline constexpr std::uint8_t echo = 128;
inline constexpr std::uint8_t echo_reply = 129;
inline constexpr std::uint8_t neighbour_solicitation = 135;
inline constexpr std::uint8_t neighbour_advertisement = 136;
inline constexpr std::uint8_t redirect = 137;
}  // namespace icmpv6_type

}  // namespace weir
