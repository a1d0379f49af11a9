#include <weir/engine/host/host.h>

#include <algorithm>

#include <weir/engine/host/bfd_datagram.h>
#include <weir/engine/host/checksums.h>
#include <weir/engine/host/echo.h>
#include <weir/engine/host/emit.h>
#include <weir/engine/reject.h>
#include <weir/packet/edit.h>
#include <weir/packet/icmp_error.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/pull_up.h>

namespace weir {

namespace {

constexpr Ipv6Address all_nodes{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

IpAddress source(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  return packet.layout.l3() == L3::ipv6 ? IpAddress(reinterpret_cast<const Ipv6Header*>(l3)->src)
                                        : IpAddress(reinterpret_cast<const Ipv4Header*>(l3)->src);
}

IpAddress destination(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  return packet.layout.l3() == L3::ipv6 ? IpAddress(reinterpret_cast<const Ipv6Header*>(l3)->dst)
                                        : IpAddress(reinterpret_cast<const Ipv4Header*>(l3)->dst);
}

// Whether one host of `own`'s network can have the address: not the network itself, nor all of it.
bool is_host_of(const PortAddress& own, const IpAddress& address) {
  constexpr unsigned bits = 32;
  if (address == own.address) {
    return false;
  }
  if (address.v6 || own.network.length >= bits - 1) {
    return true;
  }
  const auto number = load_big<std::uint32_t>(address.bytes.data());
  const std::uint32_t host_bits = ~std::uint32_t{0} >> own.network.length;
  return (number & host_bits) != 0 && (number & host_bits) != host_bits;
}

MacAddress source_mac(const Packet& packet) { return reinterpret_cast<const EthernetHeader*>(packet.data)->src; }

}  // namespace

void Host::take(Packet* packet, Nanoseconds now) {
  Key key;
  pull_up_and_parse(context_.frames, *packet, key);
  if (packet->layout.verdict() != ParseVerdict::ok) {
    return drop(packet, drop::host_malformed);
  }
  // Addresses belong to ports, not to tunnels or VLANs on them.
  if (packet->tunnel != 0) {
    return drop(packet, drop::no_listener);
  }
  if (!context_.ports.up(packet->ingress)) {
    return drop(packet, drop::port_down);
  }
  switch (packet->layout.l3()) {
    case L3::arp:
      return take_arp(packet, now);
    case L3::ipv4:
    case L3::ipv6:
      return take_ip(packet, now);
    case L3::none:
      return drop(packet, drop::no_listener);
  }
}

void Host::take_arp(Packet* packet, Nanoseconds now) {
  if (packet->layout.tags() != 0) {
    return drop(packet, drop::no_listener);
  }
  const auto message = read_arp(*packet);
  if (!message) {
    return drop(packet, drop::host_malformed);
  }
  const PortTable::Port& port = port_of(*packet);
  const bool for_us = port.owns(message->target);
  if (message->sender != Ipv4Address{}) {
    if (port.owns(message->sender)) {
      return drop(packet, drop::address_conflict);
    }
    const Claim claim = !for_us ? Claim::update : message->reply ? Claim::answer : Claim::request;
    learn({PortId{packet->ingress}, message->sender}, message->sender_mac, claim, now);
  }
  if (message->reply || message->sender == message->target) {
    return consume(packet);  // an answer, or an announcement (RFC 5227, section 3)
  }
  if (!for_us) {
    return drop(packet, drop::not_for_host);
  }
  const ArpMessage answer{true, port.mac, message->target, message->sender_mac, message->sender};
  originate(context_, make_arp(context_.frames, answer, message->sender_mac), packet->ingress);
  consume(packet);
}

void Host::take_ip(Packet* packet, Nanoseconds now) {
  if (is_neighbour_message(*packet) && packet->layout.tags() == 0) {
    const auto message = read_neighbour_message(*packet);
    if (!message) {
      return drop(packet, drop::host_malformed);
    }
    return message->advertisement ? take_advertisement(packet, *message, now)
                                  : take_solicitation(packet, *message, now);
  }
  // A frame to a group with a packet to one host is somebody's mistake (RFC 1122, section 3.3.6).
  if (packet->data[0] % 2 != 0 || !context_.ports.owns(destination(*packet))) {
    return drop(packet, drop::not_for_host);
  }
  if (!names_a_host(source(*packet))) {
    return drop(packet, drop::host_malformed);
  }
  if (packet->layout.l3() == L3::ipv4 && !ipv4_checksum_right(*packet)) {
    return drop(packet, drop::host_bad_checksum);
  }
  if (packet->layout.fragment()) {
    return drop(packet, drop::host_fragment);
  }
  switch (packet->layout.l4()) {
    case L4::icmp:
    case L4::icmpv6:
      return is_echo_request(*packet) ? echo(packet) : drop(packet, drop::no_listener);
    // Listeners on ports of the node's own are asked here.
    default:
      return is_bfd(*packet) && monitor_.any() ? take_bfd(packet, now) : unclaimed(packet, now);
  }
}

void Host::take_solicitation(Packet* packet, const NeighbourMessage& message, Nanoseconds now) {
  const PortTable::Port& port = port_of(*packet);
  if (!port.owns(message.target)) {
    return drop(packet, drop::not_for_host);
  }
  if (port.owns(message.src)) {
    return drop(packet, drop::address_conflict);
  }
  // Whoever looks whether the address is taken has none yet: all are told (RFC 4861, section 7.2.4).
  const bool anonymous = message.src == Ipv6Address{};
  const MacAddress asker = message.link_address.value_or(source_mac(*packet));
  if (!anonymous && message.link_address) {
    learn({PortId{packet->ingress}, message.src}, *message.link_address, Claim::request, now);
  }
  const NeighbourMessage answer{.advertisement = true,
                                .src = message.target,
                                .dst = anonymous ? all_nodes : message.src,
                                .target = message.target,
                                .router = true,
                                .solicited = !anonymous,
                                .override = true,
                                .link_address = port.mac};
  originate(context_,
            make_neighbour_message(context_.frames, answer, port.mac, anonymous ? ethernet_group(all_nodes) : asker),
            packet->ingress);
  consume(packet);
}

// RFC 4861, section 7.2.5.
void Host::take_advertisement(Packet* packet, const NeighbourMessage& message, Nanoseconds now) {
  const PortTable::Port& port = port_of(*packet);
  if (port.owns(message.target)) {
    return drop(packet, drop::address_conflict);
  }
  const NeighbourKey neighbour{PortId{packet->ingress}, message.target};
  const auto known = context_.state.has_neighbours() ? context_.state.neighbours().find(neighbour) : std::nullopt;
  // Without an address, it confirms the one that is known; without the override flag, it changes none.
  const auto mac = message.link_address ? message.link_address : known;
  const bool changes = known && mac != known;
  if (mac && (!changes || message.override)) {
    const Claim claim = message.solicited && port.owns(message.dst) ? Claim::answer : Claim::update;
    learn(neighbour, *mac, claim, now);
  }
  consume(packet);
}

void Host::learn(const NeighbourKey& neighbour, const MacAddress& mac, Claim claim, Nanoseconds now) {
  // Who is not on the link has no Ethernet address there.
  const PortAddress* own = context_.ports.ports[neighbour.port.number].on_link(neighbour.address);
  if (own == nullptr || !is_host_of(*own, neighbour.address) ||
      (claim == Claim::update && !context_.state.has_neighbours())) {
    return;
  }
  Neighbours& neighbours = context_.state.neighbours();
  const auto known = neighbours.find(neighbour);
  if (!known) {
    // Strangers find at most half of the table; what was asked for finds the rest.
    const bool room = neighbours.table().size() < neighbours.table().capacity() / 2;
    const bool may_add = claim != Claim::update && (neighbours.asked(neighbour) || (claim == Claim::request && room));
    if (!may_add) {
      return;
    }
  }
  const Learned outcome = neighbours.learn(neighbour, mac, now);
  if (outcome == Learned::added || outcome == Learned::moved || outcome == Learned::unchanged) {
    resolver_.confirmed(neighbour, now);
  }
}

void Host::echo(Packet* packet) {
  if (packet->layout.options() || packet->offload.gso_size != 0) {
    return drop(packet, drop::host_malformed);  // routes in options would have to be turned round
  }
  edit::finish_checksum(*packet);
  if (icmp_sum(*packet) != 0xffff) {
    return drop(packet, drop::host_bad_checksum);
  }
  turn_into_reply(*packet);
  context_.stats.consumed.add();
  originate(context_, packet, packet->ingress);
}

void Host::take_bfd(Packet* packet, Nanoseconds now) {
  if (packet->layout.tags() != 0) {
    return drop(packet, drop::no_listener);
  }
  const auto refused = monitor_.hear(*packet, now);
  return refused ? drop(packet, *refused) : consume(packet);
}

// Users expect to be told that nothing listens on a UDP port.
void Host::unclaimed(Packet* packet, Nanoseconds now) {
  if (packet->layout.l4() == L4::udp) {
    const RejectNumber what{IcmpError::port_unreachable};
    originate(context_, make_reject(context_.state, context_.ports, context_.frames, *packet, what, now),
              packet->ingress);
  }
  drop(packet, drop::no_listener);
}

void Host::drop(Packet* packet, ReasonId reason) {
  context_.stats.drop(reason);
  context_.frames.free(packet);
}

void Host::consume(Packet* packet) {
  context_.stats.consumed.add();
  context_.frames.free(packet);
}

}  // namespace weir
