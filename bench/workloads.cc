#include "workloads.h"

namespace weir::bench {

namespace {

constexpr DropReason denied{"denied", "a rule of the list says so"};

MacAddress mac(std::uint8_t last) { return {{2, 0, 0, 0, 1, last}}; }

}  // namespace

Router::Router(State& state, PortId out)
    : routes_(state.prefixes<NextHops>("routes")), group_(state.group("next hops")), out_(out) {}

void Router::configure(Update& update, unsigned routes) {
  update.set_members(group_,
                     {{out_, mac(1), mac(2)}, {out_, mac(3), mac(2)}, {out_, mac(5), mac(2)}, {out_, mac(7), mac(2)}});
  update.set(routes_, IpPrefix(), {group_.id(), 1500});
  for (unsigned i = 1; i < routes; ++i) {
    const IpPrefix prefix(Ipv4Address{{10, static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i), 0}}, 24);
    update.set(routes_, prefix, {group_.id(), 1500});
  }
}

Verdict Router::decide(Flow& flow) const {
  if (!flow.has(layers::ip)) {
    return flow.next();
  }
  const NextHops* hops = flow.lookup(routes_, ip::dst);
  if (hops == nullptr) {
    return flow.reject(no_route);
  }
  if (!flow.decrement_ttl()) {
    return flow.reject(time_exceeded);
  }
  if (!flow.fits(hops->mtu)) {
    return flow.reject(too_big(hops->mtu));
  }
  return flow.select(*hops);
}

void Acl::configure(Update& update, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    Match match;
    const auto a = static_cast<std::uint8_t>(i);
    const auto b = static_cast<std::uint8_t>(i >> 8U);
    switch (i % 5) {
      case 0:
        match.with(ip::src, IpPrefix(Ipv4Address{{172, 16, b, a}}, 32));
        break;
      case 1:
        match.with(ip::dst, IpPrefix(Ipv4Address{{172, 17, a, 0}}, 24)).with(layers::tcp);
        break;
      case 2:
        match.with(ip::dst, IpPrefix(Ipv4Address{{172, 18, a, b}}, 32)).with(l4::dst_port, 22);
        break;
      case 3:
        match.with(ip::src, IpPrefix(Ipv4Address{{172, 19, 0, 0}}, 16))
            .with(l4::dst_port, static_cast<std::uint16_t>(20'000 + i));
        break;
      default:
        match.with(ip::src, IpPrefix(Ipv4Address{{192, 168, a, 0}}, 24))
            .with(ip::dst, IpPrefix(Ipv4Address{{192, 168, b, 0}}, 24))
            .with(layers::udp);
    }
    update.set(rules_, i, match, false);
  }
  update.set(rules_, count, Match(), true);
}

Verdict Acl::decide(Flow& flow) const {
  const bool* allowed = flow.match(rules_);
  return allowed != nullptr && *allowed ? flow.next() : flow.drop(denied);
}

Verdict Encapsulator::decide(Flow& flow) const {
  const Maybe<IpAddress> dst = flow[ip::dst];
  if (!dst) {
    return flow.next();
  }
  Vxlan vxlan;
  vxlan.vni = 100;
  vxlan.src = Ipv4Address{{192, 0, 2, 1}};
  vxlan.dst = Ipv4Address{{192, 0, 2, dst->bytes[3]}};
  vxlan.eth_dst = mac(1);
  vxlan.eth_src = mac(2);
  flow.encapsulate(vxlan);
  return flow.output(out_);
}

Verdict PerFlow::decide(Flow& flow) const {
  (void)flow[ip::src];
  (void)flow[ip::dst];
  (void)flow[l4::src_port];
  (void)flow[l4::dst_port];
  flow.set(eth::dst, mac(1));
  flow.set(eth::src, mac(2));
  return flow.decrement_ttl() ? flow.output(out_) : flow.reject(time_exceeded);
}

Verdict Switch::decide(Flow& flow) const {
  const Maybe<std::uint16_t> tag = flow[vlan::id];
  flow.learn(stations_, {tag, flow[eth::src]}, flow.ingress());
  if (const PortId* port = flow.lookup(stations_, {tag, flow[eth::dst]})) {
    return flow.output(*port);
  }
  return flow.flood(tag);
}

}  // namespace weir::bench
