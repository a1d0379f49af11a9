#pragma once
// From bytes to a Key. Never reads past what the frame says it holds, whatever the headers say.

#include <weir/packet/key.h>
#include <weir/packet/packet.h>

namespace weir {

/// Fills all of `key` but `ingress` and `stage`, and the packet's layout and offsets. Reads the first
/// Packet::head() bytes only: a chained frame with shorter first segment must be pulled up before
/// (see `needs_pull_up`). A packet that came out of a tunnel keeps its tunnel's VNI in the key.
void parse(Packet& packet, Key& key);

/// Whether headers may lie beyond the first segment.
inline bool needs_pull_up(const Packet& packet) {
  return packet.segment < Packet::header_bytes && packet.segment < packet.length;
}

/// Bytes of the L3 packet: what must fit a link's MTU. For IP what its header says; otherwise what follows the
/// Ethernet header and tags. Of a packet that awaits segmentation, the size of one segment. The packet is parsed.
std::uint32_t l3_length(const Packet& packet);

/// Bytes of the frame. Of a packet that awaits segmentation, those of one segment's. The packet is parsed.
std::uint32_t frame_length(const Packet& packet);

}  // namespace weir
