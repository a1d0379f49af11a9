#include <weir/packet/icmp_error.h>

#include <algorithm>

#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>

namespace weir {

namespace {

bool unspecified(const IpAddress& address) {
  return std::ranges::all_of(address.bytes, [](std::uint8_t byte) { return byte == 0; });
}

bool broadcast(const IpAddress& address) {
  return !address.v6 &&
         std::all_of(address.bytes.begin(), address.bytes.begin() + 4, [](std::uint8_t byte) { return byte == 0xff; });
}

}  // namespace

bool names_a_host(const IpAddress& address) {
  if (unspecified(address) || address.multicast()) {
    return false;
  }
  if (address.v6) {
    return address != IpAddress(Ipv6Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}});
  }
  return address.bytes[0] != 127 && address.bytes[0] < 240;
}

namespace {

// Whether an error message may answer the packet.
bool may_answer(const Packet& packet, const IpAddress& src, const IpAddress& dst) {
  // What ends inside its L4 header could be an error message itself.
  if (packet.layout.later_fragment() || packet.layout.verdict() == ParseVerdict::truncated_l4 || !names_a_host(src) ||
      dst.multicast() || broadcast(dst) || (packet.data[0] & 1U) != 0) {
    return false;
  }
  const std::uint8_t type = packet.data[packet.l4];
  if (packet.layout.l4() == L4::icmp) {
    return type == icmp_type::echo || type == icmp_type::echo_reply || (type >= 13 && type <= 18);
  }
  return packet.layout.l4() != L4::icmpv6 || (type >= 128 && type != icmpv6_type::redirect);
}

// Copies the first `bytes` of the L3 packet, which may span segments.
void copy_l3(const Packet& packet, std::uint8_t* to, unsigned bytes) {
  unsigned skip = packet.l3;
  for (const Packet* segment = &packet; segment != nullptr && bytes > 0; segment = segment->next) {
    const unsigned part = std::min<unsigned>(segment->segment - skip, bytes);
    std::memcpy(to, segment->data + skip, part);
    to += part;
    bytes -= part;
    skip = 0;
  }
}

}  // namespace

Packet* make_icmp_error(PacketCache& frames, const Packet& packet, const IcmpErrorKind& kind, const IpAddress& source) {
  const bool v6 = packet.layout.l3() == L3::ipv6;
  const std::uint8_t* l3 = packet.data + packet.l3;
  IpAddress src;
  IpAddress dst;
  src.v6 = dst.v6 = v6;
  std::memcpy(src.bytes.data(), l3 + (v6 ? 8 : 12), v6 ? 16 : 4);
  std::memcpy(dst.bytes.data(), l3 + (v6 ? 24 : 16), v6 ? 16 : 4);
  if (source.v6 != v6 || !may_answer(packet, src, dst)) {
    return nullptr;
  }
  const unsigned ip_bytes = v6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header);
  const unsigned most = v6 ? 1280 : 576;
  const unsigned original = v6 ? ip_bytes + load_big<std::uint16_t>(l3 + 4) : load_big<std::uint16_t>(l3 + 2);
  const unsigned quoted = std::min(original, most - ip_bytes - static_cast<unsigned>(sizeof(IcmpHeader)));
  Packet* message = frames.allocate();
  if (message == nullptr) {
    return nullptr;
  }
  message->ingress = packet.ingress;
  message->timestamp = packet.timestamp;
  message->vlan = packet.vlan;
  message->offload.flags = packet.offload.flags & Offload::has_vlan;
  message->length = packet.l3 + ip_bytes + sizeof(IcmpHeader) + quoted;
  message->segment = static_cast<std::uint16_t>(message->length);

  std::uint8_t* at = message->data;
  std::memcpy(at, packet.data + 6, 6);
  std::memcpy(at + 6, packet.data, 6);
  std::memcpy(at + 12, packet.data + 12, packet.l3 - 12U);
  at += packet.l3;

  std::uint8_t* icmp = at + ip_bytes;
  std::memset(at, 0, ip_bytes + sizeof(IcmpHeader));
  auto& header = *reinterpret_cast<IcmpHeader*>(icmp);
  header.type = kind.type;
  header.code = kind.code;
  store_big<std::uint32_t>(icmp + 4, kind.mtu);
  copy_l3(packet, icmp + sizeof(IcmpHeader), quoted);
  const std::span<const std::uint8_t> body(icmp, sizeof(IcmpHeader) + quoted);
  if (v6) {
    auto& ip = *reinterpret_cast<Ipv6Header*>(at);
    ip.version_class_label = 6U << 28U;
    ip.payload_length = static_cast<std::uint16_t>(body.size());
    ip.next_header = ip_protocol::icmpv6;
    ip.hop_limit = 255;
    ip.src = source.to_v6();
    ip.dst = src.to_v6();
    std::uint64_t pseudo = checksum::sum({at + 8, 32});
    pseudo += body.size() + ip_protocol::icmpv6;
    header.checksum = static_cast<std::uint16_t>(~checksum::sum(body, checksum::fold(pseudo)));
  } else {
    auto& ip = *reinterpret_cast<Ipv4Header*>(at);
    ip.version_length = 0x45;
    ip.tos = 0xc0;  // RFC 1812, section 4.3.2.5: network control
    ip.total_length = static_cast<std::uint16_t>(ip_bytes + body.size());
    ip.ttl = 64;
    ip.protocol = ip_protocol::icmp;
    ip.src = source.to_v4();
    ip.dst = src.to_v4();
    ip.checksum = static_cast<std::uint16_t>(~checksum::sum({at, ip_bytes}));
    header.checksum = static_cast<std::uint16_t>(~checksum::sum(body));
  }
  return message;
}

}  // namespace weir
