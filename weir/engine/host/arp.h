#pragma once
// ARP messages as data: read and written (RFC 826; probes and announcements: RFC 5227).

#include <optional>

#include <weir/packet/arp.h>
#include <weir/packet/frame_pool.h>

namespace weir {

struct ArpMessage {
  bool reply = false;
  MacAddress sender_mac;
  Ipv4Address sender;  ///< all zeros: a probe, which says nothing about its sender
  MacAddress target_mac;
  Ipv4Address target;
};

/// What an ARP packet says; nothing if it is neither request nor reply, or its sender's Ethernet address is no single
/// station's. The packet is parsed and is ARP.
std::optional<ArpMessage> read_arp(const Packet& packet);

/// A frame of 60 bytes from the message's sender to `to`; nullptr if frames ran out.
Packet* make_arp(PacketCache& frames, const ArpMessage& message, const MacAddress& to);

}  // namespace weir
