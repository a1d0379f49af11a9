#pragma once
// ICMP and ICMPv6 error messages about a packet.

#include <weir/packet/address.h>
#include <weir/packet/frame_pool.h>

namespace weir {

/// Type, code and the second half of the header's last word (the MTU, for "too big"; otherwise 0).
struct IcmpErrorKind {
  std::uint8_t type;
  std::uint8_t code;
  std::uint32_t mtu;
};

/// Whether the address is that of one host which is not this one: neither a group, nor unspecified, nor a loopback's.
bool names_a_host(const IpAddress& address);

/// A message from `source` to the sender of `packet`, to leave by the port the packet came in by: its Ethernet
/// addresses are the packet's, swapped, and so are its tags. Quotes as much of the packet as RFC 792, RFC 1812
/// (576 bytes in all) or RFC 4443 (1,280) allow. The packet is parsed and is IP of `source`'s family.
/// nullptr if no message may be sent about it (RFC 1122, section 3.2.2; RFC 4443, section 2.4(e): errors, later
/// fragments, packets to a group or from what is no host's address, packets that end inside their L4 header), or if
/// frames ran out.
Packet* make_icmp_error(PacketCache& frames, const Packet& packet, const IcmpErrorKind& kind, const IpAddress& source);

}  // namespace weir
