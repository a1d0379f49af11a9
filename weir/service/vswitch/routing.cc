// Routing between networks: the node is the gateway of each under an address that all nodes share (anycast gateway,
// RFC 9135, section 4.1), and packets to hosts behind another node go there in a network of their own (symmetric IRB,
// section 5).

#include <algorithm>

#include <weir/service/vswitch/forwarding.h>

namespace weir::vswitch_internal {

namespace {

constexpr DropReason malformed{"malformed", "its headers cannot be read"};
constexpr DropReason not_ip{"not_ip", "to a gateway, which forwards IP only"};
constexpr DropReason to_all{"broadcast", "to all hosts of a network, which the gateway does not forward"};
constexpr DropReason martian_source{"martian_source", "from an address that no other host can have there"};
constexpr DropReason martian_destination{"martian_destination", "to an address that is no host's on any network"};
constexpr DropReason blackhole{"blackhole", "a route says to drop it"};
constexpr DropReason no_gateway{"no_gateway", "its destination's network has lost its gateway"};
constexpr DropReason no_way{"no_way", "its route's node has left"};

}  // namespace

Verdict Forwarding::route(Flow& flow, const From& from, const Network& network) const {
  if (!flow.has(layers::well_formed)) {
    return flow.drop(malformed);
  }
  if (!flow.has(layers::ip)) {
    return flow.drop(not_ip);
  }
  if (flow.test(ip::src, multicast())) {
    return flow.drop(martian_source);
  }
  const VrfRoute* route = flow.lookup(*network.routes, ip::dst);
  if (route == nullptr) {
    return flow.reject(no_route, network.gateway);
  }
  switch (route->kind) {
    case VrfRoute::Kind::local:
      return flow.to_host();
    case VrfRoute::Kind::blackhole:
      return flow.drop(blackhole);
    case VrfRoute::Kind::broadcast:
      return flow.drop(to_all);
    case VrfRoute::Kind::martian:
      return flow.drop(martian_destination);
    case VrfRoute::Kind::network:
    case VrfRoute::Kind::node:
      break;
  }
  if (!flow.decrement_ttl()) {
    return flow.reject(time_exceeded, network.gateway);
  }
  return route->kind == VrfRoute::Kind::network ? route_to_network(flow, from, network, route->vni)
                                                : route_to_node(flow, from, network, *route);
}

// As the gateway there sends it: out of a tunnel, it may go into one.
Verdict Forwarding::route_to_network(Flow& flow, const From& from, const Network& by, Vni vni) const {
  const Network* there = flow.lookup(tables_.networks, vni);
  if (there == nullptr || !there->gateway.valid()) {
    return flow.drop(no_gateway);
  }
  if (!flow.fits(there->mtu)) {
    return flow.reject(too_big(there->mtu), by.gateway);
  }
  const IpAddress to = *flow[ip::dst];
  const Binding* binding = flow.lookup(tables_.bindings, {vni, to});
  const MacAddress* mac = binding != nullptr ? &binding->mac : flow.neighbour(there->gateway, to);
  if (mac == nullptr) {
    return flow.resolve(there->gateway, to);
  }
  flow.set(eth::dst, *mac);
  flow.set(eth::src, there->router);
  return deliver(flow, {vni, {there->gateway, untagged, {}}, from.tagged}, *there);
}

Verdict Forwarding::route_to_node(Flow& flow, const From& from, const Network& by, const VrfRoute& route) const {
  const Network* between = flow.lookup(tables_.networks, route.vni);
  const Vtep* vtep = flow.lookup(tables_.vteps, {route.vni, route.vtep});
  if (between == nullptr || vtep == nullptr) {
    return flow.drop(no_way);
  }
  if (!flow.fits(between->mtu)) {
    return flow.reject(too_big(between->mtu), by.gateway);
  }
  flow.set(eth::dst, route.mac);
  flow.set(eth::src, between->router);
  return send_into_tunnel(flow, {route.vni, from.place, from.tagged}, route.vtep, *vtep);
}

}  // namespace weir::vswitch_internal
