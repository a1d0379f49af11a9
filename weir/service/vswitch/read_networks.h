#pragma once
// The switch's settings, as data.

#include <map>
#include <optional>
#include <vector>

#include <weir/flow/paths.h>
#include <weir/service/service_context.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// What a port may do.
struct PortRules {
  std::uint32_t macs = 1024;  ///< Ethernet addresses that are learned there
  std::uint64_t rate = 0;     ///< bytes a second that it may send into the switch; 0: any
  PortId mirror;              ///< gets a copy of what comes in, if valid
};

/// One network.
struct NetworkPlan {
  Vni vni = 0;
  Network network;
  std::vector<AttachKey> attachments;
  std::vector<IpAddress> vteps;
  std::vector<std::pair<MacAddress, Place>> macs;
  std::vector<std::pair<IpAddress, MacAddress>> bindings;
  std::string vrf;  ///< the routes of its gateway, if it has one
};

/// Networks that are routed between, apart from those of other VRFs (virtual routing and forwarding).
struct VrfPlan {
  std::string name;
  Vni vni = 0;                   ///< of packets to other nodes' networks; 0: none
  MacAddress mac;                ///< the node's own as a router, in that network
  std::vector<IpAddress> vteps;  ///< those nodes
  std::vector<std::pair<IpPrefix, VrfRoute>> routes;
};

/// The way to nodes that are on no link of an uplink.
struct NextHop {
  PortId port;
  IpAddress address;              ///< whose Ethernet address is asked for
  std::optional<MacAddress> mac;  ///< unless it is configured

  bool operator==(const NextHop&) const = default;
};

struct SwitchPlan {
  std::vector<NetworkPlan> networks;  ///< by VNI
  std::vector<VrfPlan> vrfs;          ///< those that are configured, and the default one
  std::map<PortId, PortRules> ports;
  Underlay underlay;
  std::vector<std::pair<IpPrefix, PortId>> links;  ///< networks of uplinks
  std::vector<NextHop> next_hops;
  std::optional<BfdSettings> bfd;  ///< how next hops with an address are watched, but for their link

  /// The link that the address is on; nothing: it is behind the next hops.
  [[nodiscard]] std::optional<PortId> link_of(const IpAddress& address) const;
};

/// Ports that are not there yet, in a difference that is only shown, are left out. Errors name every mistake.
Result<SwitchPlan> read_networks(const ServiceContext& context);

}  // namespace weir::vswitch_internal
