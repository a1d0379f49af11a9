#include <weir/service/vswitch/forwarding.h>

#include <weir/packet/icmpv6.h>

namespace weir::vswitch_internal {

namespace {

constexpr DropReason no_network{"no_network", "its port, or the VLAN of its tag there, is in no network"};
constexpr DropReason bad_source{"bad_source", "its Ethernet source address is a group's"};
constexpr DropReason mac_fixed{"mac_fixed", "its Ethernet source address is configured to be elsewhere"};
constexpr DropReason mac_limit{"mac_limit", "its port has as many Ethernet addresses as it may have"};
constexpr DropReason same_port{"same_port", "its destination is on the port that it came from"};
constexpr DropReason split_horizon{"split_horizon", "out of a tunnel, and its destination is behind another"};
constexpr DropReason unknown_mac{"unknown_mac", "nobody knows its destination, and its network floods no such frames"};
constexpr DropReason too_big_for_tunnel{"too_big_for_tunnel", "not IP, and longer than a tunnel's packets may be"};

bool is_neighbour_message(Flow& flow) {
  const auto type = flow.has(layers::icmpv6) ? flow[icmp::type] : Maybe<std::uint8_t>{};
  return type && (*type == icmpv6_type::neighbour_solicitation || *type == icmpv6_type::neighbour_advertisement);
}

}  // namespace

bool is_resolution(Flow& flow) { return flow.has(layers::arp) || is_neighbour_message(flow); }

std::optional<From> Forwarding::origin(Flow& flow) const {
  if (const auto id = flow[tunnel::vni]) {
    const AddressKey* vtep = flow.lookup(tables_.tunnels, *id);
    return vtep == nullptr ? std::nullopt : std::optional(From{vtep->vni, {.vtep = vtep->address}});
  }
  const PortId in = flow.ingress();
  const std::uint16_t vlan = flow[vlan::id].value_or(untagged);
  const Attachment* attached = flow.lookup(tables_.attachments, {in, vlan});
  return attached == nullptr ? std::nullopt
                             : std::optional(From{attached->vni, {in, vlan, {}}, flow.has(layers::vlan)});
}

const DropReason* Forwarding::learn(Flow& flow, const From& from, const Network& network,
                                    const Attachment* attached) const {
  const MacAddress source = *flow[eth::src];
  if (source.multicast()) {
    return &bad_source;
  }
  const MacKey key{from.vni, source};
  const Place* known = flow.lookup(tables_.macs, key);
  const bool elsewhere = known != nullptr && *known != from.place;
  // Other nodes are the network's router, too, by the same address.
  const bool other_gateway = elsewhere && from.tunnel() && network.gateway.valid() && known->port == network.gateway;
  if (attached != nullptr && flow.learn(*attached->learned, key, 1) == Learned::full) {
    return known != nullptr && !elsewhere ? nullptr : &mac_limit;  // one that is configured needs no room
  }
  if (!other_gateway && flow.learn(tables_.macs, key, from.place) == Learned::pinned && elsewhere) {
    return &mac_fixed;
  }
  return is_resolution(flow) ? bind(flow, from, attached != nullptr ? attached->bound : nullptr) : nullptr;
}

// A port that has as many IP addresses as may be remembered may have more.
const DropReason* Forwarding::bind(Flow& flow, const From& from, LearnedBindings* limited) const {
  static constexpr DropReason address_fixed{"address_fixed",
                                            "says that it has an IP address that is another station's"};
  Maybe<IpAddress> address = flow[ip::src];
  Maybe<MacAddress> mac = flow[eth::src];
  if (flow.has(layers::arp)) {
    const auto sender = flow[arp::sender_ip];
    address = sender ? Maybe<IpAddress>(IpAddress(*sender)) : Maybe<IpAddress>();
    mac = flow[arp::sender_mac];
  }
  const bool says_nothing = !address || !mac || *address == IpAddress(Ipv4Address{}) ||
                            *address == IpAddress(Ipv6Address{}) || address->multicast() || mac->multicast();
  if (says_nothing) {
    return nullptr;  // a probe, or nonsense
  }
  const AddressKey key{from.vni, *address};
  if (const Binding* known = flow.lookup(tables_.bindings, key); known != nullptr && known->configured) {
    return known->mac == *mac ? nullptr : &address_fixed;
  }
  if (limited == nullptr || flow.learn(*limited, key, 1) != Learned::full) {
    flow.learn(tables_.bindings, key, Binding{*mac});
  }
  return nullptr;
}

Verdict Forwarding::forward(Flow& flow, const From& from, const Network& network) const {
  if (flow.test(eth::dst, multicast())) {
    return flood(flow, from, network);
  }
  if (network.routes != nullptr && flow.test(eth::dst, equals(network.router)) && !is_resolution(flow)) {
    return route(flow, from, network);
  }
  return deliver(flow, from, network);
}

// Addresses of ports and nodes that have left the network count as unknown.
Verdict Forwarding::deliver(Flow& flow, const From& from, const Network& network) const {
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
  return network.flood_unknown ? flood(flow, from, network) : flow.drop(unknown_mac);
}

Verdict Forwarding::flood(Flow& flow, const From& from, const Network& network) const {
  if (network.routed_only) {
    return flow.drop(no_network);
  }
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

}  // namespace weir::vswitch_internal
