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

std::optional<Vni> network_of(const Packet& packet, const SwitchTables& tables) {
  if (packet.tunnel != 0) {
    const auto vtep = tables.tunnels.find(packet.vni);
    return vtep ? std::optional(vtep->vni) : std::nullopt;
  }
  AttachKey key{PortId{packet.ingress}};
  if ((packet.offload.flags & Offload::has_vlan) != 0) {
    key.vlan = packet.vlan & 0xfffU;
  } else if (packet.layout.tags() != 0) {
    key.vlan = load_big<std::uint16_t>(packet.data + 14) & 0xfffU;
  }
  const auto attached = tables.attachments.find(key);
  return attached ? std::optional(attached->vni) : std::nullopt;
}

/// What a message is about.
struct Subject {
  IpAddress target;
  bool question = false;
  std::optional<MacAddress> claimed{};  ///< who is said to have the target
};

std::optional<Subject> subject_of(const Packet& packet) {
  if (packet.layout.l3() == L3::arp) {
    const auto message = read_arp(packet);
    return message ? std::optional(Subject{message->target, !message->reply && message->sender != message->target})
                   : std::nullopt;
  }
  if (!is_neighbour_message(packet)) {
    return std::nullopt;
  }
  const auto message = read_neighbour_message(packet);
  if (!message) {
    return std::nullopt;
  }
  return Subject{message->target, !message->advertisement,
                 message->advertisement ? message->link_address : std::nullopt};
}

bool answer_arp(Packet& packet, const MacAddress& mac) {
  const auto message = read_arp(packet);
  if (message->sender == Ipv4Address{} || packet.segment < packet.l3 + arp_bytes || mac == message->sender_mac) {
    return false;
  }
  std::uint8_t* arp = packet.data + packet.l3;
  store_big<std::uint16_t>(arp + arp_operation, 2);
  std::memcpy(arp + arp_target, arp + arp_sender, 10);
  std::memcpy(arp + arp_sender, mac.bytes.data(), 6);
  std::memcpy(arp + arp_sender + 6, message->target.bytes.data(), 4);
  turn_frame(packet, mac);
  return true;
}

bool answer_solicitation(Packet& packet, const MacAddress& mac) {
  const auto message = read_neighbour_message(packet);
  if (message->src == Ipv6Address{} || !message->link_address || mac == *message->link_address ||
      packet.l4 != packet.l3 + sizeof(Ipv6Header) ||
      load_big<std::uint16_t>(packet.data + packet.l3 + 4) != advertisement_bytes ||
      packet.segment < packet.l4 + advertisement_bytes) {
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
  std::memcpy(icmp + 26, mac.bytes.data(), 6);
  turn_frame(packet, mac);
  store_big<std::uint16_t>(icmp + 2, static_cast<std::uint16_t>(~icmp_sum(packet)));
  return true;
}

}  // namespace

void AnswerStage::process(Batch& batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    process(batch, i);
  }
}

void AnswerStage::process(Batch& batch, std::size_t i) {
  static constexpr DropReason address_fixed{"address_fixed",
                                            "says that it has an IP address that is another station's"};
  Packet& packet = batch[i];
  batch.send(i, unanswered);
  const auto vni = network_of(packet, tables_);
  const auto subject = vni ? subject_of(packet) : std::nullopt;
  const auto binding = subject ? tables_.bindings.find({*vni, subject->target}) : std::nullopt;
  if (!binding) {
    return;
  }
  if (subject->claimed && binding->configured && *subject->claimed != binding->mac) {
    return batch.drop(i, address_fixed);
  }
  if (!subject->question) {
    return;
  }
  if (binding->gateway) {
    return batch.send(i, about_gateway);
  }
  if (answers_for(packet, *vni, *binding) &&
      (packet.layout.l3() == L3::arp ? answer_arp(packet, binding->mac) : answer_solicitation(packet, binding->mac))) {
    batch.send(i, answered);
  }
}

// Not for hosts that can hear the question themselves, nor for those that have been silent for long.
bool AnswerStage::answers_for(const Packet& packet, Vni vni, const Binding& binding) const {
  const auto network = tables_.networks.find(vni);
  if (packet.tunnel != 0 || (packet.data[0] & 1U) == 0 || !network || (!network->suppress && !binding.configured)) {
    return false;
  }
  const auto place = tables_.macs.find({vni, binding.mac});
  return place ? place->port != PortId{packet.ingress} : binding.configured;
}

}  // namespace weir::vswitch_internal
