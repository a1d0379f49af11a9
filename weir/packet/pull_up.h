#pragma once

#include <algorithm>

#include <weir/packet/frame_pool.h>
#include <weir/packet/parse.h>

namespace weir {

/// Parses a packet whose headers may lie beyond its first segment; they do not afterwards.
inline void pull_up_and_parse(PacketCache& frames, Packet& packet, Key& key) {
  if (needs_pull_up(packet)) [[unlikely]] {
    frames.pull_up(packet, std::min(packet.length, Packet::header_bytes));
  }
  parse(packet, key);
}

}  // namespace weir
