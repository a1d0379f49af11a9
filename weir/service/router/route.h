#pragma once
// What a router knows: its ports, and what becomes of packets to each prefix.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <weir/engine/ports.h>
#include <weir/packet/address.h>

namespace weir {

/// A port as the router sees it.
struct RouterPort {
  PortId id;
  std::string name;
  MacAddress mac;
  std::uint32_t mtu = 1500;  ///< bytes of an L3 packet
  std::vector<PortAddress> addresses;
  std::string interface{};  ///< of the kernel's, that it is an end of; empty: none

  bool operator==(const RouterPort&) const = default;
};

/// The next router on the way, on the link of a port.
struct Hop {
  PortId port;
  IpAddress address;
  std::optional<bool> bfd{};  ///< whether a BFD session watches the path there; nothing: as the router says

  bool operator==(const Hop&) const = default;
};

struct Route {
  enum class Kind : std::uint8_t {
    local,      ///< the node's own address
    link,       ///< hosts on the link of `port`
    hops,       ///< over one of `hops`, by flow
    blackhole,  ///< dropped without a word, as configured
    broadcast,  ///< all hosts of a connected network, which nobody may reach from outside (RFC 2644)
    martian,    ///< addresses that no packet on a link may have (RFC 1812, section 5.3.7)
  };
  /// Next hops of one route.
  static constexpr std::size_t hop_limit = 16;

  Kind kind = Kind::blackhole;
  PortId port{};
  std::vector<Hop> hops{};

  bool operator==(const Route&) const = default;
  [[nodiscard]] bool mentions(PortId other) const;
  [[nodiscard]] std::string to_string() const;
};

using Routes = std::map<IpPrefix, Route>;

/// Addresses that packets may not come from.
enum class Source : std::uint8_t {
  martian,     ///< of no host, or the node's own
  link_local,  ///< of a host on the link, whose packets do not leave it
};

using Sources = std::map<IpPrefix, Source>;

/// All routes: those of the ports' addresses, then `configured`, then `learned`: where two are for the same prefix, the
/// earlier stays. Routes over ports that are not there are left out.
Routes all_routes(const std::vector<RouterPort>& ports, const Routes& configured, const Routes& learned);
Sources all_sources(const std::vector<RouterPort>& ports);
/// The next hops of `routes`, each once: whose Ethernet addresses are wanted at all times. Where routes differ about
/// `bfd`, one is watched.
std::vector<Hop> all_hops(const Routes& routes);

}  // namespace weir
