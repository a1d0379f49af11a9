#pragma once
// ICMP (RFC 792). ICMPv6's first eight bytes have the same shape: icmpv6.h.

#include <weir/packet/bytes.h>

namespace weir {

struct IcmpHeader {
  std::uint8_t type;
  std::uint8_t code;
  Big16 checksum;
  Big16 id;        ///< of an echo; other types put other things here
  Big16 sequence;  ///< of an echo; the next hop's MTU in "fragmentation needed" (RFC 1191)
};
static_assert(sizeof(IcmpHeader) == 8);

namespace icmp_type {
inline constexpr std::uint8_t echo_reply = 0;
inline constexpr std::uint8_t unreachable = 3;
inline constexpr std::uint8_t source_quench = 4;
inline constexpr std::uint8_t redirect = 5;
inline constexpr std::uint8_t echo = 8;
inline constexpr std::uint8_t time_exceeded = 11;
inline constexpr std::uint8_t parameter_problem = 12;
}  // namespace icmp_type

}  // namespace weir
