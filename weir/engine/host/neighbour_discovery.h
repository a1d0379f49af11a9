#pragma once
// Neighbour solicitations and advertisements as data: read and written (RFC 4861, sections 4.3 and 4.4).

#include <optional>

#include <weir/packet/address.h>
#include <weir/packet/frame_pool.h>

namespace weir {

struct NeighbourMessage {
  bool advertisement = false;
  Ipv6Address src;  ///< all zeros: the sender looks whether its address is taken (RFC 4862, section 5.4)
  Ipv6Address dst;
  Ipv6Address target;
  // Of an advertisement.
  bool router = false;
  bool solicited = false;
  bool override = false;
  std::optional<MacAddress> link_address;  ///< of the sender in a solicitation, of the target in an advertisement
};

/// Whether the packet, which is parsed, is one of the two by its ICMPv6 type.
bool is_neighbour_message(const Packet& packet);

/// What it says, or nothing if it is not valid (RFC 4861, sections 7.1.1 and 7.1.2): hop limit, checksum, code,
/// lengths, addresses and options; nor
/// if it has extension headers (RFC 6980).
std::optional<NeighbourMessage> read_neighbour_message(const Packet& packet);

/// A frame from `from` to `to`; nullptr if frames ran out.
Packet* make_neighbour_message(PacketCache& frames, const NeighbourMessage& message, const MacAddress& from,
                               const MacAddress& to);

/// The group that hears solicitations for `address` (RFC 4291, section 2.7.1), and the Ethernet address of an IPv6
/// group (RFC 2464, section 7).
Ipv6Address solicited_node(const Ipv6Address& address);
MacAddress ethernet_group(const Ipv6Address& group);

}  // namespace weir
