#include <weir/service/router/router_stage.h>

#include <algorithm>
#include <array>
#include <numeric>

#include <weir/packet/icmpv6.h>

namespace weir {

namespace {

constexpr DropReason malformed{"malformed", "its headers cannot be read"};
constexpr DropReason tagged{"router_tagged", "has a VLAN tag; the router's ports are not in VLANs"};
constexpr DropReason not_ip{"not_ip", "a router forwards IP only"};
constexpr DropReason foreign_mac{"foreign_mac", "for another station's Ethernet address"};
constexpr DropReason to_group{"multicast", "to a group of hosts, which the router does not forward"};
constexpr DropReason to_all{"broadcast", "to all hosts of a network, which the router does not forward"};
constexpr DropReason martian_source{"martian_source", "from an address that no other host can have there"};
constexpr DropReason martian_destination{"martian_destination", "to an address that is no host's on any network"};
constexpr Reject next_hop_down{IcmpError::host_unreachable,
                               {"next_hop_down", "the ways to all next hops of its route are down"}};
constexpr DropReason blackhole{"blackhole", "a route says to drop it"};

constexpr MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

bool is_neighbour_message(Flow& flow) {
  const auto type = flow.has(layers::icmpv6) ? flow[icmp::type] : Maybe<std::uint8_t>{};
  return type && (*type == icmpv6_type::neighbour_solicitation || *type == icmpv6_type::neighbour_advertisement);
}

struct Way {
  const Hop* hop = nullptr;         ///< nullptr: all are down
  const MacAddress* mac = nullptr;  ///< nullptr: not known yet
};

Way choose(Flow& flow, const std::vector<Hop>& hops) {
  std::array<std::uint8_t, Route::hop_limit> left;
  auto count = static_cast<std::uint32_t>(hops.size());
  std::iota(left.begin(), left.begin() + count, std::uint8_t{0});
  std::uint32_t at = count == 1 ? 0 : flow.pick(count);
  std::uint64_t lost = 0;
  Way way;
  for (;;) {
    const Hop& hop = hops[left[at]];
    if (flow.path_up(hop.port, hop.address)) {
      if (const MacAddress* mac = flow.neighbour(hop.port, hop.address)) {
        return {&hop, mac};
      }
      way.hop = way.hop == nullptr ? &hop : way.hop;
    }
    std::copy(left.begin() + at + 1, left.begin() + count, left.begin() + at);
    if (--count == 0) {
      return way;
    }
    lost = hop.address.hash(hop.port.hash(lost));
    at = count == 1 ? 0 : flow.pick_again(count, lost);
  }
}

}  // namespace

Verdict RouterStage::decide(Flow& flow) const {
  const std::uint16_t in = flow.ingress().number;
  const Interfaces& interfaces = flow.read(tables_.interfaces);
  if (in >= interfaces.ports.size()) {
    return flow.drop(drop::builtin[drop::port_unknown]);
  }
  if (!flow.has(layers::well_formed)) {
    return flow.drop(malformed);
  }
  if (flow.has(layers::vlan)) {
    return flow.drop(tagged);
  }
  const bool for_us = flow.test(eth::dst, equals(interfaces.ports[in].mac));
  if (flow.has(layers::arp)) {
    return for_us || flow.test(eth::dst, equals(broadcast)) ? flow.to_host() : flow.drop(foreign_mac);
  }
  if (!flow.has(layers::ip)) {
    return flow.drop(not_ip);
  }
  if (flow.test(ip::dst, multicast())) {
    return is_neighbour_message(flow) ? flow.to_host() : flow.drop(to_group);
  }
  if (!for_us) {
    return flow.drop(flow.test(eth::dst, multicast()) ? to_all : foreign_mac);
  }
  // One that a translation has put there is the node's own, and no sender's.
  const Source* source = flow.was_set(ip::src) ? nullptr : flow.lookup(tables_.sources, ip::src);
  if (source != nullptr && *source == Source::martian) {
    return flow.drop(martian_source);
  }
  const Route* route = flow.lookup(tables_.routes, ip::dst);
  if (route == nullptr) {
    return source != nullptr ? flow.drop(martian_source) : flow.reject(no_route);
  }
  if (route->kind == Route::Kind::local) {
    return flow.to_host();
  }
  if (source != nullptr) {
    return flow.drop(martian_source);
  }
  return forward(flow, *route, interfaces);
}

Verdict RouterStage::forward(Flow& flow, const Route& route, const Interfaces& interfaces) const {
  Hop next;
  const MacAddress* mac = nullptr;
  switch (route.kind) {
    case Route::Kind::local:
      return flow.to_host();
    case Route::Kind::blackhole:
      return flow.drop(blackhole);
    case Route::Kind::broadcast:
      return flow.drop(to_all);
    case Route::Kind::martian:
      return flow.drop(martian_destination);
    case Route::Kind::link:
      next = {route.port, *flow[ip::dst]};
      mac = flow.neighbour(next.port, next.address);
      break;
    case Route::Kind::hops: {
      const Way way = choose(flow, route.hops);
      if (way.hop == nullptr) {
        return flow.reject(next_hop_down);
      }
      next = *way.hop;
      mac = way.mac;
      break;
    }
  }
  if (!flow.decrement_ttl()) {
    return flow.reject(time_exceeded);
  }
  // An update makes ports known before routes over them, but this decision may have looked in between.
  if (next.port.number >= interfaces.ports.size()) {
    return flow.drop(drop::builtin[drop::port_unknown]);
  }
  const Interfaces::Interface& out = interfaces.ports[next.port.number];
  const auto mtu = static_cast<std::uint16_t>(std::min<std::uint32_t>(out.mtu, 0xffff));
  if (!flow.fits(mtu)) {
    return flow.reject(too_big(mtu));
  }
  if (mac == nullptr) {
    return flow.resolve(next.port, next.address);
  }
  flow.set(eth::dst, *mac);
  flow.set(eth::src, out.mac);
  return flow.output(next.port);
}

}  // namespace weir
