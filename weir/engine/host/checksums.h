#pragma once
// Sums over parts of a packet.

#include <weir/packet/packet.h>

namespace weir {

/// The ones' complement sum of `bytes` bytes of the packet, from offset `from` on, which may span segments.
std::uint16_t sum_of(const Packet& packet, unsigned from, unsigned bytes);

/// Whether the IPv4 header's is right. The packet is parsed and is IPv4.
bool ipv4_checksum_right(const Packet& packet);
/// The sum over an ICMP or ICMPv6 message, whole and not fragmented, with the latter's pseudo-header: 0xffff if its
/// checksum is right. The packet is parsed.
std::uint16_t icmp_sum(const Packet& packet);

/// Bytes of the L3 packet from its header on, as that says. The packet is parsed and is IP.
unsigned ip_bytes(const Packet& packet);

}  // namespace weir
