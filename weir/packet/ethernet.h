#pragma once
// Ethernet II (IEEE 802.3, clause 3) and VLAN tags (IEEE 802.1Q, clause 9).

#include <weir/packet/address.h>

namespace weir {

namespace ethertype {
inline constexpr std::uint16_t ipv4 = 0x0800;
inline constexpr std::uint16_t arp = 0x0806;
inline constexpr std::uint16_t vlan = 0x8100;          ///< customer tag
inline constexpr std::uint16_t service_vlan = 0x88a8;  ///< service tag, 802.1ad
inline constexpr std::uint16_t ipv6 = 0x86dd;
}  // namespace ethertype

struct EthernetHeader {
  MacAddress dst;
  MacAddress src;
  Big16 type;
};
static_assert(sizeof(EthernetHeader) == 14);

/// What stands between the source address and the next EtherType: the tag's own type came before it.
struct VlanTag {
  Big16 control;  ///< priority (3 bits), drop eligible (1), identifier (12)
  Big16 type;     ///< EtherType of what follows
};
static_assert(sizeof(VlanTag) == 4);

}  // namespace weir
