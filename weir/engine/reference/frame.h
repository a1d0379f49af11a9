#pragma once
// A packet as the reference engine has it: its bytes in one piece, and what travels beside them.

#include <cstdint>
#include <vector>

#include <weir/packet/frame_pool.h>

namespace weir::reference {

/// Plain data; copying it copies the packet.
struct Frame {
  std::vector<std::uint8_t> bytes;
  std::uint64_t timestamp = 0;
  std::uint16_t ingress = 0;
  std::uint16_t egress = 0;  ///< as in Packet
  std::uint8_t stage = 0;
  std::uint8_t waits = 0;  ///< times that it waited for a neighbour
  bool tunnel = false;     ///< came out of the tunnel `vni`
  std::uint32_t vni = 0;
  std::uint16_t vlan = 0;
  Offload offload{};

  [[nodiscard]] std::uint32_t length() const { return static_cast<std::uint32_t>(bytes.size()); }
};

/// The whole chain.
Frame read(const Packet& packet);

/// A packet that holds `frame`, parsed; nullptr when frames ran out. Each time with the pool's whole headroom, so that
/// it never runs out here (drop::no_headroom is the core engine's alone).
Packet* write(const Frame& frame, PacketCache& frames);

}  // namespace weir::reference
