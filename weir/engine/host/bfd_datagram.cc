#include <weir/engine/host/bfd_datagram.h>

#include <cstring>

#include <weir/engine/host/checksums.h>
#include <weir/packet/checksum.h>
#include <weir/packet/edit.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/udp.h>

namespace weir {

namespace {

constexpr std::uint8_t neighbours_ttl = 255;  // a router in between would have taken one off (RFC 5082)
constexpr std::uint8_t network_control = 0xc0;
constexpr std::size_t udp_bytes = sizeof(UdpHeader) + BfdPacket::bytes;

const UdpHeader& udp_of(const Packet& packet) { return *reinterpret_cast<const UdpHeader*>(packet.data + packet.l4); }

std::uint8_t ttl_of(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  return packet.layout.l3() == L3::ipv6 ? reinterpret_cast<const Ipv6Header*>(l3)->hop_limit
                                        : reinterpret_cast<const Ipv4Header*>(l3)->ttl;
}

// Over the addresses, the length and the protocol.
std::uint64_t pseudo_sum(const std::uint8_t* addresses, unsigned address_bytes, unsigned length) {
  return std::uint64_t{checksum::sum({addresses, address_bytes})} + length + ip_protocol::udp;
}

bool udp_checksum_right(const Packet& packet, unsigned length) {
  const bool v6 = packet.layout.l3() == L3::ipv6;
  if (udp_of(packet).checksum == 0) {
    return !v6;  // none was made
  }
  const std::uint8_t* l3 = packet.data + packet.l3;
  const std::uint64_t sum = v6 ? pseudo_sum(l3 + offsetof(Ipv6Header, src), 2 * sizeof(Ipv6Address), length)
                               : pseudo_sum(l3 + offsetof(Ipv4Header, src), 2 * sizeof(Ipv4Address), length);
  return checksum::fold(sum + sum_of(packet, packet.l4, length)) == 0xffff;
}

// Returns where UDP begins.
std::uint8_t* write_ip(std::uint8_t* at, const BfdEnds& ends) {
  if (ends.src.v6) {
    auto& ip = *reinterpret_cast<Ipv6Header*>(at);
    ip.version_class_label = 6U << 28U | std::uint32_t{network_control} << 20U;
    ip.payload_length = static_cast<std::uint16_t>(udp_bytes);
    ip.next_header = ip_protocol::udp;
    ip.hop_limit = neighbours_ttl;
    ip.src = ends.src.to_v6();
    ip.dst = ends.dst.to_v6();
    return at + sizeof ip;
  }
  auto& ip = *reinterpret_cast<Ipv4Header*>(at);
  ip.version_length = 0x45;
  ip.tos = network_control;
  ip.total_length = static_cast<std::uint16_t>(sizeof ip + udp_bytes);
  ip.fragment = Ipv4Header::dont_fragment;
  ip.ttl = neighbours_ttl;
  ip.protocol = ip_protocol::udp;
  ip.src = ends.src.to_v4();
  ip.dst = ends.dst.to_v4();
  ip.checksum = static_cast<std::uint16_t>(~checksum::fold(checksum::sum({at, sizeof ip})));
  return at + sizeof ip;
}

}  // namespace

bool is_bfd(const Packet& packet) {
  return packet.layout.l4() == L4::udp && !packet.layout.fragment() && udp_of(packet).dst_port == bfd_port;
}

std::expected<BfdPacket, ReasonId> read_bfd_datagram(Packet& packet) {
  if (ttl_of(packet) != neighbours_ttl) {
    return std::unexpected(drop::bfd_not_adjacent);
  }
  const unsigned length = udp_of(packet).length;
  // Headers are in one piece.
  if (length < udp_bytes || packet.l4 + length > packet.l3 + ip_bytes(packet) || packet.l4 + length > packet.length ||
      packet.l4 + udp_bytes > packet.segment || packet.offload.gso_size != 0 || udp_of(packet).src_port == 0) {
    return std::unexpected(drop::bfd_malformed);
  }
  edit::finish_checksum(packet);
  if (!udp_checksum_right(packet, length)) {
    return std::unexpected(drop::host_bad_checksum);
  }
  const unsigned payload = std::min<unsigned>(length, packet.segment - packet.l4) - sizeof(UdpHeader);
  const auto read = read_bfd({packet.data + packet.l4 + sizeof(UdpHeader), payload});
  if (!read) {
    return std::unexpected(read.error() == BfdFault::authenticated ? drop::bfd_authenticated : drop::bfd_malformed);
  }
  return *read;
}

Packet* make_bfd_datagram(PacketCache& frames, const BfdPacket& packet, const BfdEnds& ends) {
  Packet* made = frames.allocate();
  if (made == nullptr) {
    return nullptr;
  }
  made->length = static_cast<std::uint32_t>(sizeof(EthernetHeader) +
                                            (ends.src.v6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header)) + udp_bytes);
  made->segment = static_cast<std::uint16_t>(made->length);
  std::memset(made->data, 0, made->length);
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(made->data);
  ethernet.dst = ends.dst_mac;
  ethernet.src = ends.src_mac;
  ethernet.type = ends.src.v6 ? ethertype::ipv6 : ethertype::ipv4;
  std::uint8_t* const at = write_ip(made->data + sizeof(EthernetHeader), ends);
  auto& udp = *reinterpret_cast<UdpHeader*>(at);
  udp.src_port = ends.src_port;
  udp.dst_port = bfd_port;
  udp.length = static_cast<std::uint16_t>(udp_bytes);
  const auto bytes = write_bfd(packet);
  std::memcpy(at + sizeof udp, bytes.data(), bytes.size());
  // The addresses stand right before UDP.
  const unsigned addresses = ends.src.bits() / 8 * 2;
  const auto sum = static_cast<std::uint16_t>(
      ~checksum::fold(pseudo_sum(at - addresses, addresses, udp_bytes) + checksum::sum({at, udp_bytes})));
  udp.checksum = sum != 0 ? sum : std::uint16_t{0xffff};  // 0 would say that there is none
  return made;
}

}  // namespace weir
