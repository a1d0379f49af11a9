#include <weir/service/vswitch/answer_stage.h>

#include <algorithm>
#include <cstring>

#include <weir/engine/host/arp.h>
#include <weir/engine/host/checksums.h>
#include <weir/engine/host/neighbour_discovery.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv6.h>

namespace weir::vswitch_internal {

namespace {

// Of an ARP packet for Ethernet and IPv4 (RFC 826).
constexpr std::size_t arp_operation = 6;
constexpr std::size_t arp_sender = 8;
constexpr std::size_t arp_target = 18;
constexpr std::size_t arp_bytes = 28;

// Of a neighbour advertisement (RFC 4861, section 4.4) with one option.
constexpr std::size_t advertisement_bytes = 32;

void turn_frame(Packet& packet, const MacAddress& from) {
  std::memcpy(packet.data, packet.data + 6, 6);
  std::memcpy(packet.data + 6, from.bytes.data(), 6);
}

const MacAddress* find(const Bindings& bindings, Vni vni, const IpAddress& address) {
  const auto place = bindings.macs.find({vni, address});
  return place == bindings.macs.end() ? nullptr : &place->second;
}

bool answer_arp(Packet& packet, const Bindings& bindings, Vni vni) {
  const auto message = read_arp(packet);
  if (!message || message->reply || message->sender == Ipv4Address{} || message->sender == message->target ||
      packet.segment < packet.l3 + arp_bytes) {
    return false;
  }
  const MacAddress* mac = find(bindings, vni, message->target);
  if (mac == nullptr || *mac == message->sender_mac) {
    return false;
  }
  std::uint8_t* arp = packet.data + packet.l3;
  store_big<std::uint16_t>(arp + arp_operation, 2);
  std::memcpy(arp + arp_target, arp + arp_sender, 10);
  std::memcpy(arp + arp_sender, mac->bytes.data(), 6);
  std::memcpy(arp + arp_sender + 6, message->target.bytes.data(), 4);
  turn_frame(packet, *mac);
  return true;
}

bool answer_solicitation(Packet& packet, const Bindings& bindings, Vni vni) {
  const auto message = read_neighbour_message(packet);
  if (!message || message->advertisement || message->src == Ipv6Address{} || !message->link_address ||
      packet.l4 != packet.l3 + sizeof(Ipv6Header) ||
      load_big<std::uint16_t>(packet.data + packet.l3 + 4) != advertisement_bytes ||
      packet.segment < packet.l4 + advertisement_bytes) {
    return false;
  }
  const MacAddress* mac = find(bindings, vni, message->target);
  if (mac == nullptr || *mac == *message->link_address) {
    return false;
  }
  auto& ip = *reinterpret_cast<Ipv6Header*>(packet.data + packet.l3);
  ip.src = message->target;
  ip.dst = message->src;
  std::uint8_t* icmp = packet.data + packet.l4;
  icmp[0] = icmpv6_type::neighbour_advertisement;
  std::memset(icmp + 1, 0, 7);
  icmp[4] = 0x60;  // solicited, override
  icmp[24] = 2;    // option: the target's Ethernet address
  icmp[25] = 1;
  std::memcpy(icmp + 26, mac->bytes.data(), 6);
  turn_frame(packet, *mac);
  store_big<std::uint16_t>(icmp + 2, static_cast<std::uint16_t>(~icmp_sum(packet)));
  return true;
}

}  // namespace

void AnswerStage::process(Batch& batch) {
  const Bindings& bindings = bindings_.read();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Packet& packet = batch[i];
    AttachKey key{PortId{packet.ingress}};
    if (packet.layout.tags() != 0) {
      key.vlan = load_big<std::uint16_t>(packet.data + 14) & 0xfffU;
    }
    const auto vni = bindings.attachments.find(key);
    const bool answered =
        vni != bindings.attachments.end() &&
        (packet.layout.l3() == L3::arp ? answer_arp(packet, bindings, vni->second)
                                       : packet.layout.l4() == L4::icmpv6 && is_neighbour_message(packet) &&
                                             answer_solicitation(packet, bindings, vni->second));
    batch.send(i, answered ? 0 : 1);
  }
}

}  // namespace weir::vswitch_internal
