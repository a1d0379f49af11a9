#include <weir/service/vswitch/switch_stage.h>

#include <weir/packet/icmpv6.h>
#include <weir/packet/vxlan.h>

namespace weir::vswitch_internal {

namespace {

constexpr DropReason no_ethernet{"no_ethernet", "too short for an Ethernet header"};
constexpr DropReason no_network{"no_network", "its port, or the VLAN of its tag there, is in no network"};
constexpr DropReason bad_source{"bad_source", "its Ethernet source address is a group's"};
constexpr DropReason mac_fixed{"mac_fixed", "its Ethernet source address is configured to be elsewhere"};
constexpr DropReason mac_limit{"mac_limit", "its port has as many Ethernet addresses as it may have"};
constexpr DropReason same_port{"same_port", "its destination is on the port that it came from"};
constexpr DropReason split_horizon{"split_horizon", "out of a tunnel, and its destination is behind another"};
constexpr DropReason unknown_mac{"unknown_mac", "nobody knows its destination, and its network floods no such frames"};
constexpr DropReason unknown_vni{"unknown_vni", "of a VXLAN network that this node does not have"};
constexpr DropReason unknown_vtep{"unknown_vtep", "from a node that its VXLAN network does not have"};
constexpr DropReason not_vxlan{"not_vxlan", "to the VXLAN port, and no VXLAN packet with a VNI"};
constexpr DropReason inner_tagged{"inner_tagged", "out of a tunnel with a VLAN tag (RFC 7348, section 6.1)"};
constexpr DropReason too_big_for_tunnel{"too_big_for_tunnel", "not IP, and longer than a tunnel's packets may be"};
constexpr DropReason underlay_malformed{"underlay_malformed", "from an uplink, and its headers cannot be read"};
constexpr DropReason underlay_tagged{"underlay_tagged", "from an uplink with a VLAN tag; uplinks have none"};
constexpr DropReason not_ours{"not_ours", "from an uplink, and for another station"};

constexpr MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr std::uint16_t arp_request = 1;

bool is_neighbour_message(Flow& flow) {
  const auto type = flow.has(layers::icmpv6) ? flow[icmp::type] : Maybe<std::uint8_t>{};
  return type && (*type == icmpv6_type::neighbour_solicitation || *type == icmpv6_type::neighbour_advertisement);
}

bool asks_for_address(Flow& flow) {
  if (flow.has(layers::arp)) {
    return flow[arp::operation].value_or(0) == arp_request;
  }
  const auto type = flow.has(layers::icmpv6) ? flow[icmp::type] : Maybe<std::uint8_t>{};
  return type && *type == icmpv6_type::neighbour_solicitation;
}

}  // namespace

const DropReason* Forwarding::learn(Flow& flow, const From& from, LearnedMacs* limited) const {
  const MacAddress source = *flow[eth::src];
  if (source.multicast()) {
    return &bad_source;
  }
  const MacKey key{from.vni, source};
  const Place* known = flow.lookup(tables_.macs, key);
  const bool elsewhere = known != nullptr && *known != from.place;
  if (limited != nullptr && flow.learn(*limited, key, 1) == Learned::full) {
    return known != nullptr && !elsewhere ? nullptr : &mac_limit;  // one that is configured needs no room
  }
  if (flow.learn(tables_.macs, key, from.place) == Learned::pinned && elsewhere) {
    return &mac_fixed;
  }
  return nullptr;
}

// Addresses of ports and nodes that have left the network count as unknown.
Verdict Forwarding::forward(Flow& flow, const From& from) const {
  const Network* network = flow.lookup(tables_.networks, from.vni);
  if (network == nullptr) {
    return flow.drop(no_network);
  }
  if (flow.test(eth::dst, multicast())) {
    return flood(flow, from, *network);
  }
  if (const Place* to = flow.lookup(tables_.macs, {from.vni, *flow[eth::dst]})) {
    if (!to->port.valid()) {
      if (from.tunnel()) {
        return flow.drop(split_horizon);
      }
      if (const Vtep* vtep = flow.lookup(tables_.vteps, {from.vni, to->vtep})) {
        return send_into_tunnel(flow, from, to->vtep, *vtep);
      }
    } else if (*to == from.place) {
      return flow.drop(same_port);
    } else if (const Attachment* there = flow.lookup(tables_.attachments, {to->port, to->vlan});
               there != nullptr && there->vni == from.vni) {
      if (from.tagged) {
        flow.pop_vlan();
      }
      if (to->vlan != untagged) {
        flow.push_vlan(to->vlan);
      }
      return flow.output(to->port);
    }
  }
  return network->flood_unknown ? flood(flow, from, *network) : flow.drop(unknown_mac);
}

Verdict Forwarding::flood(Flow& flow, const From& from, const Network& network) const {
  bool local = from.tunnel() || !network.remotes;
  if (!local && !flow.fits(flow.read(tables_.underlay).inner_mtu)) {
    flow.count(tables_.too_big_to_flood);
    local = true;
  }
  if (from.tagged) {
    flow.pop_vlan();
  }
  return flow.flood(domain_of(from.vni, local));
}

Verdict Forwarding::send_into_tunnel(Flow& flow, const From& from, const IpAddress& to, const Vtep& vtep) const {
  const Underlay& underlay = flow.read(tables_.underlay);
  if (!flow.fits(underlay.inner_mtu)) {
    return flow.has(layers::ip) ? flow.reject(too_big(underlay.inner_mtu)) : flow.drop(too_big_for_tunnel);
  }
  Vxlan outer{.vni = from.vni, .src = underlay.local, .dst = to};
  if (vtep.group == nullptr) {
    const MacAddress* mac = flow.neighbour(vtep.port, to);
    const Underlay::Port* port = underlay.find(vtep.port);
    if (mac == nullptr || port == nullptr) {
      return flow.resolve(vtep.port, to);
    }
    outer.eth_dst = *mac;
    outer.eth_src = port->mac;
  }
  if (from.tagged) {
    flow.pop_vlan();
  }
  flow.encapsulate(outer);
  return vtep.group != nullptr ? flow.select(*vtep.group) : flow.output(vtep.port);
}

Verdict SwitchStage::decide(Flow& flow) const {
  const PortId in = flow.ingress();
  const Underlay& underlay = flow.read(tables_.underlay);
  if (const Underlay::Port* uplink = underlay.find(in)) {
    return from_uplink(flow, underlay, *uplink);
  }
  if (!flow.has(layers::ethernet)) {
    return flow.drop(no_ethernet);
  }
  const std::uint16_t vlan = flow[vlan::id].value_or(untagged);
  const Attachment* attached = flow.lookup(tables_.attachments, {in, vlan});
  if (attached == nullptr) {
    return flow.drop(no_network);
  }
  if (attached->mirror.valid()) {
    flow.mirror(attached->mirror);
  }
  if (attached->meter != nullptr) {
    flow.meter(*attached->meter);
  }
  const From from{attached->vni, {in, vlan, {}}, flow.has(layers::vlan)};
  if (const DropReason* reason = learn(flow, from, attached->learned)) {
    return flow.drop(*reason);
  }
  if (answers_ != nullptr && attached->answer && flow.test(eth::dst, multicast()) && asks_for_address(flow)) {
    return flow.to(*answers_);
  }
  return forward(flow, from);
}

// RFC 7348, section 4.3, and what the node itself must hear.
Verdict SwitchStage::from_uplink(Flow& flow, const Underlay& underlay, const Underlay::Port& port) const {
  if (!flow.has(layers::well_formed)) {
    return flow.drop(underlay_malformed);
  }
  if (flow.has(layers::vlan)) {
    return flow.drop(underlay_tagged);
  }
  const bool for_us = flow.test(eth::dst, equals(port.mac));
  if (flow.has(layers::arp)) {
    return for_us || flow.test(eth::dst, equals(broadcast)) ? flow.to_host() : flow.drop(not_ours);
  }
  if (flow.has(layers::ip) && flow.test(ip::dst, multicast())) {
    return is_neighbour_message(flow) ? flow.to_host() : flow.drop(not_ours);
  }
  if (!for_us || !flow.has(layers::ip)) {
    return flow.drop(not_ours);
  }
  const bool vxlan_port = flow.has(layers::udp) && flow.test(l4::dst_port, equals(VxlanHeader::port));
  if (!vxlan_port || !flow.test(ip::dst, equals(underlay.local))) {
    return flow.to_host();
  }
  if (!flow.has(layers::vxlan)) {
    return flow.drop(not_vxlan);
  }
  const std::vector<Vni>& vnis = flow.read(tables_.vnis);
  if (!flow.test(vxlan::vni, KnownVni{vnis})) {
    return flow.drop(unknown_vni);
  }
  const Vtep* vtep = flow.lookup(tables_.vteps, {*flow[vxlan::vni], *flow[ip::src]});
  if (vtep == nullptr) {
    return flow.drop(unknown_vtep);
  }
  flow.decapsulate(vtep->id);
  return flow.to(inside_);
}

Verdict InsideStage::decide(Flow& flow) const {
  const auto id = flow[tunnel::vni];
  const VtepKey* vtep = id ? flow.lookup(tables_.tunnels, *id) : nullptr;
  if (vtep == nullptr) {
    return flow.drop(unknown_vtep);
  }
  if (!flow.has(layers::ethernet)) {
    return flow.drop(no_ethernet);
  }
  if (flow.has(layers::vlan)) {
    return flow.drop(inner_tagged);
  }
  const From from{vtep->vni, {.vtep = vtep->address}};
  if (const DropReason* reason = learn(flow, from, nullptr)) {
    return flow.drop(*reason);
  }
  return forward(flow, from);
}

}  // namespace weir::vswitch_internal
