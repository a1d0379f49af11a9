#pragma once
// Changes to the headers of a parsed packet, each with what follows from it: checksums, offsets.

#include <algorithm>

#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/frame_pool.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/parse.h>
#include <weir/packet/sctp.h>
#include <weir/packet/tcp.h>
#include <weir/packet/transport.h>
#include <weir/packet/udp.h>

namespace weir::edit {

/// Rewrites `bytes` bytes (even, at an even offset) at `at` in the L3 header or the ports and brings the transport
/// checksum along. `pseudo`: they are part of its pseudo-header; otherwise of the transport header itself.
inline void transport_checksum(Packet& packet, std::span<const std::uint8_t> before,
                               std::span<const std::uint8_t> after, bool pseudo) {
  if (packet.layout.later_fragment()) [[unlikely]] {
    return;  // it is in the first
  }
  std::uint8_t* field = nullptr;
  switch (packet.layout.l4()) {
    case L4::tcp:
      field = packet.data + packet.l4 + offsetof(TcpHeader, checksum);
      break;
    case L4::udp:
      field = packet.data + packet.l4 + offsetof(UdpHeader, checksum);
      break;
    case L4::icmp:
      if (pseudo) {
        return;  // it has none
      }
      field = packet.data + packet.l4 + 2;
      break;
    case L4::icmpv6:
      field = packet.data + packet.l4 + 2;
      break;
    default:
      return;
  }
  const auto value = load_big<std::uint16_t>(field);
  if ((packet.offload.flags & Offload::needs_checksum) != 0 &&
      packet.data + packet.offload.checksum_start + packet.offload.checksum_offset == field) {
    // The field holds the sum of the pseudo-header, not inverted; the rest will be summed by whoever sends the frame.
    if (pseudo) {
      store_big<std::uint16_t>(
          field, static_cast<std::uint16_t>(~checksum::update(static_cast<std::uint16_t>(~value), before, after)));
    }
    return;
  }
  if (packet.layout.l4() == L4::udp && value == 0) {
    return;  // none was computed
  }
  std::uint16_t updated = checksum::update(value, before, after);
  if (packet.layout.l4() == L4::udp && updated == 0) {
    updated = 0xffff;
  }
  store_big<std::uint16_t>(field, updated);
}

/// One byte of the IPv4 header, at an even (`high`) or odd offset, changes a 16-bit word of its checksum.
inline void set_ipv4_byte(Ipv4Header& ip, unsigned offset, std::uint8_t value) {
  auto* word = reinterpret_cast<std::uint8_t*>(&ip) + (offset & ~1U);
  const auto before = load_big<std::uint16_t>(word);
  reinterpret_cast<std::uint8_t*>(&ip)[offset] = value;
  ip.checksum = checksum::update(ip.checksum, before, load_big<std::uint16_t>(word));
}

/// IPv4 or IPv6 address; `which`: 0 source, 1 destination.
inline void set_address(Packet& packet, unsigned which, const std::uint8_t* address) {
  const bool v6 = packet.layout.l3() == L3::ipv6;
  const unsigned size = v6 ? 16 : 4;
  std::uint8_t* at = packet.data + packet.l3 + (v6 ? 8 : 12) + which * size;
  const std::span<const std::uint8_t> before(at, size);
  const std::span<const std::uint8_t> after(address, size);
  if (!v6) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(packet.data + packet.l3);
    ip.checksum = checksum::update(ip.checksum, before, after);
  }
  transport_checksum(packet, before, after, true);
  std::memcpy(at, address, size);
}

/// TCP, UDP or SCTP port; `which`: 0 source, 1 destination. Not for fragments of SCTP.
inline void set_port(Packet& packet, unsigned which, const std::uint8_t* port) {
  if (packet.layout.later_fragment()) [[unlikely]] {
    (which == 0 ? packet.offload.checksum_start : packet.offload.checksum_offset) = load_big<std::uint16_t>(port);
    return;
  }
  std::uint8_t* l4 = packet.data + packet.l4;
  std::uint8_t* at = l4 + 2 * which;
  if (packet.layout.l4() == L4::sctp) {
    const auto before = load_big<std::uint32_t>(l4);
    std::memcpy(at, port, 2);
    const unsigned length = packet.l3 + l3_length(packet) - packet.l4;
    std::uint8_t* field = l4 + offsetof(SctpHeader, checksum);
    const std::uint32_t crc = std::byteswap(load_big<std::uint32_t>(field));
    store_big<std::uint32_t>(
        field, std::byteswap(checksum::update_crc32c(crc, before, load_big<std::uint32_t>(l4), length - 4)));
    return;
  }
  transport_checksum(packet, {at, 2}, {port, 2}, false);
  std::memcpy(at, port, 2);
}

/// Bytes 4 and 5 of ICMP and ICMPv6: the identifier of an echo.
inline void set_icmp_id(Packet& packet, const std::uint8_t* id) {
  if (packet.layout.later_fragment()) [[unlikely]] {
    packet.offload.checksum_offset = load_big<std::uint16_t>(id);
    return;
  }
  std::uint8_t* at = packet.data + packet.l4 + 4;
  transport_checksum(packet, {at, 2}, {id, 2}, false);
  std::memcpy(at, id, 2);
}

/// The packet that an ICMP error quotes.
void translate_quoted(Packet& packet, const QuotedTranslation& translation);

/// Bits `mask` of the TOS or traffic class.
inline void set_tos(Packet& packet, std::uint8_t value, std::uint8_t mask) {
  std::uint8_t* l3 = packet.data + packet.l3;
  if (packet.layout.l3() == L3::ipv4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    set_ipv4_byte(ip, 1, static_cast<std::uint8_t>((ip.tos & ~mask) | (value & mask)));
  } else {
    auto& ip = *reinterpret_cast<Ipv6Header*>(l3);
    const auto tos = static_cast<std::uint8_t>((ip.traffic_class() & ~mask) | (value & mask));
    ip.version_class_label = (ip.version_class_label & 0xf00fffffU) | std::uint32_t{tos} << 20U;
  }
}

inline std::uint8_t tos(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  return packet.layout.l3() == L3::ipv4 ? reinterpret_cast<const Ipv4Header*>(l3)->tos
                                        : reinterpret_cast<const Ipv6Header*>(l3)->traffic_class();
}

inline void set_ttl(Packet& packet, std::uint8_t ttl) {
  std::uint8_t* l3 = packet.data + packet.l3;
  if (packet.layout.l3() == L3::ipv4) {
    set_ipv4_byte(*reinterpret_cast<Ipv4Header*>(l3), offsetof(Ipv4Header, ttl), ttl);
  } else {
    reinterpret_cast<Ipv6Header*>(l3)->hop_limit = ttl;
  }
}

inline void decrement_ttl(Packet& packet) {
  std::uint8_t* l3 = packet.data + packet.l3;
  if (packet.layout.l3() == L3::ipv4) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    --ip.ttl;
    // RFC 1624, equation 3, for a word that became 0x0100 less.
    const std::uint32_t sum = static_cast<std::uint16_t>(~ip.checksum) + 0xfeffU;
    ip.checksum = static_cast<std::uint16_t>(~((sum & 0xffffU) + (sum >> 16U)));
  } else {
    --reinterpret_cast<Ipv6Header*>(l3)->hop_limit;
  }
}

/// A tag in front of those there are; false without headroom. Offsets follow.
bool push_vlan(PacketCache& frames, Packet& packet, std::uint16_t control);

/// Takes the outer tag.
void pop_vlan(Packet& packet);

/// Leaves the packet's segmentation and checksum to be done behind `bytes` bytes of tunnel headers, over IPv6 or IPv4,
/// that were pushed in front of it (RFC 7348). The other way round for `exit_tunnel`; false if it was not so.
void enter_tunnel(Offload& offload, unsigned bytes, bool v6);
bool exit_tunnel(Offload& offload, unsigned bytes);

/// Computes the checksum that the packet's offload state leaves to the device, and clears the state.
void finish_checksum(Packet& packet);

}  // namespace weir::edit
