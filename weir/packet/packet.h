#pragma once
// A packet: one cache line of metadata, and the bytes it points to.

#include <atomic>
#include <cstdint>
#include <span>

#include <weir/packet/layout.h>

namespace weir {

/// Offload state as virtio_net_hdr has it (virtio 1.2, section 5.1.6): what the sender left for the device to do.
struct Offload {
  static constexpr std::uint8_t needs_checksum = 1;  ///< the checksum at start + offset covers only the pseudo-header
  static constexpr std::uint8_t data_valid = 2;      ///< a device has verified the checksum
  static constexpr std::uint8_t has_vlan = 4;        ///< `Packet::vlan` is the outer tag; it is not in the bytes
  /// Weir's own, never a device's: a later fragment whose first one was seen. checksum_start and checksum_offset hold
  /// what that has in the Key as source and destination port.
  static constexpr std::uint8_t has_ports = 8;

  std::uint8_t flags;
  std::uint8_t gso_type;  ///< 0: not segmented
  std::uint16_t header_length;
  std::uint16_t gso_size;         ///< payload bytes per segment
  std::uint16_t checksum_start;   ///< from the start of the frame
  std::uint16_t checksum_offset;  ///< from checksum_start
};
static_assert(sizeof(Offload) == 10);

/// The metadata line of a frame. A frame longer than one buffer is a chain: the first packet of the chain stands for
/// all of it, its headers contiguous in the first segment. Owned by whoever holds the pointer; given back through a
/// PacketCache.
struct alignas(64) Packet {
  /// Headers lie in the first so many bytes; bytes beyond twice that may be shared with a copy of the packet.
  static constexpr unsigned header_bytes = 256;

  std::uint8_t* data;                     ///< first byte of this segment
  Packet* next;                           ///< next segment of the same frame
  std::uint64_t timestamp;                ///< when it was received, on the node's clock
  std::uint32_t length;                   ///< bytes of the frame, all segments
  std::uint16_t segment;                  ///< bytes in this segment
  std::uint16_t ingress;                  ///< number of the port it came in by
  std::uint32_t owner;                    ///< 1 + index of the frame whose buffer `data` lies in; 0: its own
  std::uint32_t vni;                      ///< of the tunnel it came out of (Layout::tunnel_bit)
  std::atomic<std::uint16_t> references;  ///< this frame's buffer has so many users
  Layout layout;                          ///< as the last parse found it
  std::uint16_t payload;                  ///< offset of what follows the last parsed header
  std::uint8_t l3;                        ///< offset of the L3 header
  std::uint8_t l4;                        ///< offset of the L4 header
  std::uint8_t stage;                     ///< where in the graph it goes on
  std::uint8_t tunnel : 1;                ///< 1 if it came out of a tunnel
  std::uint8_t waits : 7;                 ///< times that it waited for a neighbour's Ethernet address
  std::uint16_t vlan;                     ///< offloaded tag, if Offload::has_vlan
  Offload offload;
  std::uint16_t egress;  ///< on the delivery side of a port: its number and Key::delivery_bit; 0: not

  [[nodiscard]] std::span<std::uint8_t> bytes() { return {data, segment}; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {data, segment}; }
  /// The part of the first segment that the parser may read.
  [[nodiscard]] unsigned head() const { return segment < header_bytes ? segment : header_bytes; }
};
static_assert(sizeof(Packet) <= 64);

}  // namespace weir
