#pragma once
// Segmentation in software, for devices that do not segment (virtio 1.2, section 5.1.6.2).

#include <vector>

#include <weir/packet/frame_pool.h>

namespace weir {

/// Offload::gso_type, as virtio has it.
namespace gso {
inline constexpr std::uint8_t none = 0;
inline constexpr std::uint8_t tcp4 = 1;
inline constexpr std::uint8_t tcp6 = 4;
inline constexpr std::uint8_t udp = 5;     ///< UDP datagrams of gso_size bytes (USO)
inline constexpr std::uint8_t ecn = 0x80;  ///< a bit beside tcp4 or tcp6: CWR is for the first segment only
/// Bits beside the others: the packet was put into VXLAN over IPv4 or IPv6 since; segments are cut from what is inside.
inline constexpr std::uint8_t tunnel4 = 0x20;
inline constexpr std::uint8_t tunnel6 = 0x40;
inline constexpr std::uint8_t tunnel = tunnel4 | tunnel6;
}  // namespace gso

enum class Segmented : std::uint8_t {
  done,
  no_frames,     ///< the pool ran out
  not_possible,  ///< the offload state does not fit the headers
};

/// Appends to `out` the packets that `packet`, which has a gso_size, stands for, in order, each with a whole frame of
/// its own and its checksum left to the device (Offload::needs_checksum). Then frees `packet`. Where it returns
/// anything but `done`, nothing has changed but the packet's parse.
Segmented segment(PacketCache& frames, Packet& packet, std::vector<Packet*>& out);

}  // namespace weir
