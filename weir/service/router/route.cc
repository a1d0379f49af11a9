#include <weir/service/router/route.h>

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

namespace weir {

namespace {

IpPrefix prefix(std::string_view text) { return *IpPrefix::parse(text); }

// The address with all host bits set; nothing where it is a host's (RFC 3021) or there is no such thing.
std::optional<IpAddress> broadcast_of(const IpPrefix& network) {
  if (network.address.v6 || network.length >= 31) {
    return std::nullopt;
  }
  const auto number = load_big<std::uint32_t>(network.address.bytes.data()) | ~std::uint32_t{0} >> network.length;
  Ipv4Address address;
  store_big<std::uint32_t>(address.bytes.data(), number);
  return address;
}

void add_port(const RouterPort& port, Routes& routes) {
  for (const PortAddress& own : port.addresses) {
    const IpPrefix& network = own.network;
    routes.insert_or_assign(IpPrefix(own.address, own.address.bits()), Route{.kind = Route::Kind::local});
    routes.try_emplace(network, Route{.kind = Route::Kind::link, .port = port.id});
    if (const auto all = broadcast_of(network)) {
      routes.try_emplace(IpPrefix(*all, all->bits()), Route{.kind = Route::Kind::broadcast});
      routes.try_emplace(IpPrefix(network.address, all->bits()), Route{.kind = Route::Kind::broadcast});
    }
  }
}

}  // namespace

bool Route::mentions(PortId other) const {
  return (kind == Kind::link && port == other) ||
         std::ranges::any_of(hops, [other](const Hop& hop) { return hop.port == other; });
}

std::string Route::to_string() const {
  switch (kind) {
    case Kind::local:
      return "the node itself";
    case Kind::link:
      return "a host on the link";
    case Kind::hops: {
      std::vector<std::string> addresses;
      for (const Hop& hop : hops) {
        addresses.push_back(hop.address.to_string());
      }
      return fmt::format("via {}", fmt::join(addresses, " or "));
    }
    case Kind::blackhole:
      return "a black hole";
    case Kind::broadcast:
      return "all hosts of a network";
    case Kind::martian:
      return "no host's address";
  }
  return {};
}

Routes all_routes(const std::vector<RouterPort>& ports, const Routes& configured, const Routes& learned) {
  Routes routes;
  for (const RouterPort& port : ports) {
    add_port(port, routes);
  }
  const auto there = [&](const Hop& hop) { return std::ranges::find(ports, hop.port, &RouterPort::id) != ports.end(); };
  for (const Routes* more : {&configured, &learned}) {
    for (const auto& [to, route] : *more) {
      Route usable = route;
      std::erase_if(usable.hops, [&](const Hop& hop) { return !there(hop); });
      if ((route.kind == Route::Kind::hops && usable.hops.empty()) ||
          (route.kind == Route::Kind::link && !there({route.port, {}}))) {
        continue;
      }
      routes.try_emplace(to, std::move(usable));
    }
  }
  // RFC 6890: this network, loopback, link-local, reserved and broadcast; unspecified, loopback, link-local.
  for (const char* text :
       {"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "240.0.0.0/4", "::/128", "::1/128", "fe80::/10"}) {
    routes.try_emplace(prefix(text), Route{.kind = Route::Kind::martian});
  }
  return routes;
}

Sources all_sources(const std::vector<RouterPort>& ports) {
  Sources sources;
  for (const char* text : {"0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "ff00::/8"}) {
    sources.emplace(prefix(text), Source::martian);
  }
  for (const char* text : {"169.254.0.0/16", "fe80::/10"}) {
    sources.emplace(prefix(text), Source::link_local);
  }
  for (const RouterPort& port : ports) {
    for (const PortAddress& own : port.addresses) {
      sources.insert_or_assign(IpPrefix(own.address, own.address.bits()), Source::martian);
    }
  }
  return sources;
}

std::vector<Hop> all_hops(const Routes& routes) {
  std::vector<Hop> hops;
  for (const auto& [to, route] : routes) {
    for (const Hop& hop : route.hops) {
      const auto same = [&](const Hop& other) { return other.port == hop.port && other.address == hop.address; };
      const auto known = std::ranges::find_if(hops, same);
      if (known == hops.end()) {
        hops.push_back(hop);
      } else {
        known->bfd = std::max(known->bfd, hop.bfd);  // true before false before nothing
      }
    }
  }
  return hops;
}

}  // namespace weir
