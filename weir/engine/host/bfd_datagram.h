#pragma once
// BFD control packets in UDP over IPv4 and IPv6, between neighbours (RFC 5881).

#include <expected>

#include <weir/engine/host/bfd_packet.h>
#include <weir/flow/drop_reason.h>
#include <weir/packet/address.h>
#include <weir/packet/frame_pool.h>

namespace weir {

inline constexpr std::uint16_t bfd_port = 3784;
/// Sessions send from ports of their own, from here to 65535 (section 4).
inline constexpr std::uint16_t bfd_first_source_port = 49152;

/// Whether the packet, which is parsed, is UDP and no fragment, is to that port.
bool is_bfd(const Packet& packet);

/// What it says, or why it is dropped. Its IPv4 header's checksum is right; it may leave the UDP checksum to be
/// finished.
std::expected<BfdPacket, ReasonId> read_bfd_datagram(Packet& packet);

struct BfdEnds {
  MacAddress src_mac;
  MacAddress dst_mac;
  IpAddress src;
  IpAddress dst;  ///< of the same family
  std::uint16_t src_port;
};

/// A frame; nullptr if frames ran out.
Packet* make_bfd_datagram(PacketCache& frames, const BfdPacket& packet, const BfdEnds& ends);

}  // namespace weir
