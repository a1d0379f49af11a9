#include <weir/service/vswitch/read_networks.h>

#include <algorithm>
#include <set>

#include <weir/service/read_match.h>
#include <weir/service/router/read_bfd.h>
#include <weir/service/router/route.h>

namespace weir::vswitch_internal {

namespace {

using RoutesByPrefix = decltype(VrfPlan::routes);

Result<IpAddress> read_address(const Config& text) {
  const auto written = text.string("an IP address");
  if (!written) {
    return std::unexpected(written.error());
  }
  const auto address = IpAddress::parse(*written);
  return address ? Result<IpAddress>(*address) : text.error("'{}' is no IP address", *written);
}

// What follows from the gateways' own addresses, and then what is configured.
RoutesByPrefix vrf_routes(const std::vector<RouterPort>& gateways, const std::map<PortId, Vni>& networks,
                          const RoutesByPrefix& configured) {
  std::map<IpPrefix, VrfRoute> routes;
  for (const auto& [to, route] : all_routes(gateways, {}, {})) {
    switch (route.kind) {
      case Route::Kind::local:
        routes[to] = {.kind = VrfRoute::Kind::local};
        break;
      case Route::Kind::link:
        routes[to] = {.kind = VrfRoute::Kind::network, .vni = networks.at(route.port)};
        break;
      case Route::Kind::broadcast:
        routes[to] = {.kind = VrfRoute::Kind::broadcast};
        break;
      case Route::Kind::martian:
        routes[to] = {.kind = VrfRoute::Kind::martian};
        break;
      case Route::Kind::hops:
      case Route::Kind::blackhole:
        break;
    }
  }
  routes.insert(configured.begin(), configured.end());
  return {routes.begin(), routes.end()};
}

bool has_labels(const ServicePort& port, std::span<const Config::Entry> selector) {
  return std::ranges::all_of(selector, [&](const Config::Entry& label) {
    const auto found = port.options.labels.find(label.name);
    return found != port.options.labels.end() && found->second == label.value.string().value_or("");
  });
}

constexpr const char* default_vrf = "default";

class Reader {
 public:
  explicit Reader(const ServiceContext& context) : context_(context) {}

  Result<SwitchPlan> read() {
    find_mentioned();
    read_ports();
    for (const Config::Entry& entry : context_.map("networks")) {
      read_network(entry);
    }
    read_underlay();
    read_vrfs();
    check_vteps();
    std::ranges::sort(plan_.networks, {}, &NetworkPlan::vni);
    return errors_.empty() ? Result<SwitchPlan>(std::move(plan_)) : std::unexpected(errors_.result().error());
  }

 private:
  // Ports that are named somewhere are not in a network by default; those of networks are no uplinks.
  void find_mentioned() {
    for (const Config::Entry& network : context_.map("networks")) {
      for (const char* key : {"ports", "trunks"}) {
        for (const Config& port : network.value.get(key).list().value_or(std::span<const Config>())) {
          in_networks_.insert(port.string().value_or(""));
        }
      }
    }
    for (const Config::Entry& port : context_.map("ports")) {
      mirrors_.insert(port.value.get("mirror").string().value_or(""));
    }
  }

  void read_ports() {
    const auto usual = static_cast<std::uint32_t>(context_.number("macs_per_port"));
    for (const ServicePort& port : context_.ports()) {
      if (port.id.valid()) {
        plan_.ports[port.id].macs = usual;
      }
    }
    for (const Config::Entry& entry : context_.map("ports")) {
      const PortId port = errors_.take(context_.port(entry.key));
      errors_.take(entry.value.check_keys({"macs", "rate", "mirror"}));
      PortRules rules{.macs = usual};
      if (const Config* macs = entry.value.find("macs")) {
        rules.macs = static_cast<std::uint32_t>(errors_.take(macs->integer(1, 1 << 20)));
      }
      if (const Config* rate = entry.value.find("rate")) {
        rules.rate = static_cast<std::uint64_t>(errors_.take(rate->integer(1'000, 1'000'000'000'000)));
      }
      if (const Config* mirror = entry.value.find("mirror")) {
        rules.mirror = errors_.take(context_.port(*mirror));
      }
      if (port.valid()) {
        plan_.ports[port] = rules;
      }
    }
  }

  void attach(NetworkPlan& network, PortId port, std::uint16_t vlan, const Config& at) {
    if (!port.valid()) {
      return;
    }
    if (!attached_.insert({port, vlan}).second) {
      return errors_.take(
          vlan == untagged ? at.error("port '{}' is in two networks; a trunk can be, with a VLAN for each", at.text())
                           : at.error("VLAN {} of trunk '{}' is in two networks", vlan, at.text()));
    }
    network.attachments.push_back({port, vlan});
  }

  void read_network(const Config::Entry& entry) {
    NetworkPlan network;
    network.vni = static_cast<Vni>(errors_.take(entry.key.integer(1, vni_limit - 1)));
    const Config& settings = entry.value;
    errors_.take(settings.check_keys(
        {"vlan", "ports", "trunks", "selector", "vteps", "macs", "bindings", "unknown", "suppress", "gateway", "vrf"}));
    const Config* vlan = settings.find("vlan");
    const auto tag = vlan == nullptr ? untagged : static_cast<std::uint16_t>(errors_.take(vlan->integer(1, 4094)));
    for (const Config& port : errors_.take(settings.get("ports").list("a list of ports"))) {
      attach(network, errors_.take(context_.port(port)), untagged, port);
    }
    for (const Config& port : errors_.take(settings.get("trunks").list("a list of ports"))) {
      if (tag == untagged) {
        errors_.take(port.error("a trunk carries a network with a tag; give the network a 'vlan'"));
      }
      attach(network, errors_.take(context_.port(port)), tag, port);
    }
    const Config* selector = settings.find("selector");
    const bool by_default = context_.map("networks").size() == 1 && settings.find("ports") == nullptr &&
                            settings.find("trunks") == nullptr && selector == nullptr;
    if (selector != nullptr || by_default) {
      const auto labels =
          selector == nullptr ? std::span<const Config::Entry>() : errors_.take(selector->map("labels"));
      for (const ServicePort& port : context_.ports()) {
        if (port.options.role == PortRole::host && !in_networks_.contains(port.name) && !mirrors_.contains(port.name) &&
            has_labels(port, labels)) {
          attach(network, port.id, untagged, selector == nullptr ? entry.key : *selector);
        }
      }
    }
    read_vteps(network, settings);
    read_hosts(network, settings);
    read_gateway(network, settings);
    if (const Config* suppress = settings.find("suppress")) {
      network.network.suppress = errors_.take(suppress->boolean());
    }
    if (const Config* unknown = settings.find("unknown")) {
      network.network.flood_unknown = errors_.take(unknown->one_of({"flood", "drop"})) == 0;
    }
    plan_.networks.push_back(std::move(network));
  }

  void read_vteps(NetworkPlan& network, const Config& settings) {
    for (const Config& vtep : errors_.take(settings.get("vteps").list("a list of addresses"))) {
      const IpAddress address = errors_.take(read_address(vtep));
      network.vteps.push_back(address);
      vteps_.emplace_back(address, vtep);
    }
    std::vector<IpAddress> sorted = network.vteps;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
      errors_.take(settings.get("vteps").error("{} is there twice", twice->to_string()));
    }
    network.network.remotes = !network.vteps.empty();
  }

  void read_hosts(NetworkPlan& network, const Config& settings) {
    for (const Config::Entry& entry : errors_.take(settings.get("macs").map("Ethernet addresses and where they are"))) {
      const MacAddress mac = errors_.take(read_mac(entry.key));
      Place place;
      if (const auto vtep = IpAddress::parse(entry.value.string().value_or(""))) {
        place.vtep = *vtep;
        if (std::ranges::find(network.vteps, *vtep) == network.vteps.end()) {
          errors_.take(entry.value.error("{} is none of the network's vteps", vtep->to_string()));
        }
      } else {
        place.port = errors_.take(context_.port(entry.value));
        const auto there = std::ranges::find(network.attachments, place.port, &AttachKey::port);
        if (there != network.attachments.end()) {
          place.vlan = there->vlan;
        } else if (place.port.valid()) {
          errors_.take(entry.value.error("port {} is not in this network", entry.value.found()));
        }
        if (!place.port.valid()) {
          continue;
        }
      }
      network.macs.emplace_back(mac, place);
    }
    for (const Config::Entry& entry :
         errors_.take(settings.get("bindings").map("IP addresses and Ethernet addresses"))) {
      network.bindings.emplace_back(errors_.take(read_address(entry.key)), errors_.take(read_mac(entry.value)));
    }
  }

  void read_gateway(NetworkPlan& network, const Config& settings) {
    const Config* gateway = settings.find("gateway");
    if (const Config* vrf = settings.find("vrf")) {
      network.vrf = errors_.take(vrf->string("the name of a VRF"));
      const auto vrfs = context_.map("vrfs");
      if (gateway == nullptr) {
        errors_.take(vrf->error("a network without a gateway is in no VRF; give it a 'gateway'"));
      } else if (std::ranges::find(vrfs, network.vrf, &Config::Entry::name) == vrfs.end()) {
        errors_.take(vrf->error("there is no VRF '{}'; add it to 'vrfs'", network.vrf));
      }
    } else if (gateway != nullptr) {
      network.vrf = default_vrf;
    }
    if (gateway == nullptr) {
      return;
    }
    const std::string name = errors_.take(gateway->string("the name of a port with the device 'gateway'"));
    const auto port = std::ranges::find(context_.ports(), name, &ServicePort::name);
    if (port == context_.ports().end() || port->options.role != PortRole::gateway) {
      errors_.take(
          gateway->error("no port '{0}' has the device 'gateway'; add to ports: {0}: {{device: gateway, mac: "
                         "\"02:00:5e:00:00:01\", addresses: [10.0.0.1/24]}}",
                         name));
      return;
    }
    if (!port->options.mac || port->options.addresses.empty()) {
      errors_.take(gateway->error("the gateway '{}' needs a mac and addresses: the same on all nodes", name));
      return;
    }
    if (!gateways_.emplace(name, network.vni).second) {
      errors_.take(gateway->error("'{}' is the gateway of two networks; give each its own", name));
      return;
    }
    if (!port->id.valid()) {
      return;
    }
    network.network.gateway = port->id;
    network.network.router = *port->options.mac;
    network.macs.emplace_back(*port->options.mac, Place{port->id});
    for (const auto& [address, own] : port->options.addresses) {
      network.bindings.emplace_back(address, *port->options.mac);
    }
  }

  // Needs the networks and the underlay.
  void read_vrfs() {
    for (const Config::Entry& entry : context_.map("vrfs")) {
      read_vrf(entry);
    }
    const auto named = [](const VrfPlan& vrf) { return vrf.name == default_vrf; };
    if (!gateways_.empty() && std::ranges::none_of(plan_.vrfs, named)) {
      plan_.vrfs.push_back({.name = default_vrf});
    }
    for (VrfPlan& vrf : plan_.vrfs) {
      add_connected(vrf);
    }
  }

  void read_vrf(const Config::Entry& entry) {
    VrfPlan vrf{.name = entry.name};
    const Config& settings = entry.value;
    if (!settings.is_null()) {
      errors_.take(settings.check_keys({"vni", "mac", "routes"}));
    }
    if (const Config* vni = settings.find("vni")) {
      vrf.vni = static_cast<Vni>(errors_.take(vni->integer(1, vni_limit - 1)));
      const auto same = [&](const auto& other) { return other.vni == vrf.vni; };
      if (std::ranges::any_of(plan_.networks, same) || std::ranges::any_of(plan_.vrfs, same)) {
        errors_.take(vni->error("{} is the VNI of another network; routed packets need one of their own", vrf.vni));
      }
    }
    if (const Config* mac = settings.find("mac")) {
      vrf.mac = errors_.take(read_mac(*mac));
    } else if (!plan_.underlay.ports.empty()) {
      vrf.mac = plan_.underlay.ports.front().mac;
    }
    std::set<IpAddress> vteps;
    for (const Config::Entry& route :
         errors_.take(settings.get("routes").map("prefixes and the nodes they are behind"))) {
      const IpPrefix to = errors_.take(read_prefix(route.key));
      VrfRoute way{.kind = VrfRoute::Kind::node, .vni = vrf.vni};
      if (route.value.kind() == Config::Kind::scalar) {
        errors_.take(route.value.one_of({"blackhole"}));
        way = {};
      } else {
        errors_.take(route.value.check_keys({"vtep", "mac"}));
        way.vtep = errors_.take(read_address(route.value.get("vtep")));
        way.mac = errors_.take(read_mac(route.value.get("mac")));
        vteps_.emplace_back(way.vtep, route.value.get("vtep"));
        vteps.insert(way.vtep);
        if (vrf.vni == 0) {
          errors_.take(route.value.error("a route to another node needs the VRF's 'vni', the same on all its nodes"));
        }
      }
      vrf.routes.emplace_back(to, way);
    }
    vrf.vteps.assign(vteps.begin(), vteps.end());
    plan_.vrfs.push_back(std::move(vrf));
  }

  void add_connected(VrfPlan& vrf) {
    std::vector<RouterPort> gateways;
    std::map<PortId, Vni> networks;
    std::map<IpPrefix, Vni> subnets;
    for (const ServicePort& port : context_.ports()) {
      const auto place = gateways_.find(port.name);
      const auto network = place == gateways_.end()
                               ? plan_.networks.end()
                               : std::ranges::find(plan_.networks, place->second, &NetworkPlan::vni);
      if (network == plan_.networks.end() || network->vrf != vrf.name || !port.id.valid()) {
        continue;
      }
      RouterPort gateway{.id = port.id, .name = port.name, .mac = network->network.router};
      for (const auto& [address, subnet] : port.options.addresses) {
        gateway.addresses.push_back({address, subnet});
        if (const auto [other, fresh] = subnets.emplace(subnet, network->vni);
            !fresh && other->second != network->vni) {
          errors_.take(context_.config("networks")
                           .error("networks {} and {} of the VRF '{}' have one subnet, {}; put them in two VRFs",
                                  other->second, network->vni, vrf.name, subnet.to_string()));
        }
      }
      std::uint32_t mtu = context_.node.find_port(port.name) == port.id ? context_.node.mtu_with(port.id, port.options)
                                                                        : PortTable::Port{}.mtu;
      if (network->network.remotes) {
        mtu = std::min<std::uint32_t>(mtu, plan_.underlay.inner_mtu);
      }
      network->network.mtu = static_cast<std::uint16_t>(std::min(mtu, 0xffffU));
      networks.emplace(port.id, network->vni);
      gateways.push_back(std::move(gateway));
    }
    vrf.routes = vrf_routes(gateways, networks, vrf.routes);
  }

  void read_underlay() {
    Underlay& underlay = plan_.underlay;
    std::uint32_t mtu = 0xffff;
    std::vector<IpAddress> own;
    for (const ServicePort& port : context_.ports()) {
      if (port.options.role != PortRole::uplink || in_networks_.contains(port.name)) {
        continue;
      }
      uplinks_.push_back(&port);
      for (const auto& [address, network] : port.options.addresses) {
        own.push_back(address);
        plan_.links.emplace_back(network, port.id);
      }
      if (context_.node.find_port(port.name) == port.id && port.id.valid()) {
        underlay.ports.push_back({port.id, context_.node.mac_with(port.id, port.options)});
        mtu = std::min(mtu, context_.node.mtu_with(port.id, port.options));
      }
    }
    if (const Config local = context_.config("local"); !local.is_null()) {
      underlay.local = errors_.take(read_address(local));
      underlay.tunnels = true;
      if (std::ranges::find(own, underlay.local) == own.end()) {
        errors_.take(local.error("{} is no address of an uplink; add it to one", underlay.local.to_string()));
      }
    } else if (!own.empty()) {
      underlay.local = own.front();
      underlay.tunnels = true;
    }
    constexpr std::uint32_t headers = 8 + 8 + 14;  // UDP, VXLAN and the inner Ethernet header
    const std::uint32_t outer = headers + (underlay.local.v6 ? 40 : 20);
    underlay.inner_mtu = static_cast<std::uint16_t>(mtu > outer ? mtu - outer : 0);
    for (const Config& hop : context_.list("next_hops")) {
      read_next_hop(hop);
    }
    if (const Config bfd = context_.config("bfd"); !bfd.is_null()) {
      plan_.bfd = errors_.take(read_bfd_settings(bfd));
    }
  }

  void read_next_hop(const Config& hop) {
    NextHop next;
    if (hop.kind() == Config::Kind::scalar) {
      next.address = errors_.take(read_address(hop));
    } else {
      errors_.take(hop.check_keys({"address", "mac", "port"}));
      if (const Config* mac = hop.find("mac")) {
        next.mac = errors_.take(read_mac(*mac));
      } else {
        next.address = errors_.take(read_address(hop.get("address")));
      }
    }
    if (const Config* port = hop.find("port")) {
      next.port = errors_.take(context_.port(*port));
    } else if (const auto link = next.mac ? std::nullopt : plan_.link_of(next.address)) {
      next.port = *link;
    } else if (uplinks_.size() == 1) {
      next.port = uplinks_.front()->id;
    } else {
      errors_.take(hop.error("which uplink is it behind? Give its 'port'"));
    }
    plan_.next_hops.push_back(next);
  }

  void check_vteps() {
    for (const auto& [address, at] : vteps_) {
      if (!plan_.underlay.tunnels) {
        return errors_.take(
            at.error("tunnels start at an address of an uplink, and there is none; give a port role: uplink and "
                     "addresses"));
      }
      if (address.v6 != plan_.underlay.local.v6) {
        errors_.take(at.error("{} and the local address {} are of two families; give 'local' one of the other",
                              address.to_string(), plan_.underlay.local.to_string()));
      } else if (address == plan_.underlay.local) {
        errors_.take(at.error("{} is this node itself", address.to_string()));
      } else if (!plan_.link_of(address) && plan_.next_hops.empty()) {
        errors_.take(at.error("{} is on no network of an uplink; give 'next_hops'", address.to_string()));
      }
    }
  }

  const ServiceContext& context_;
  SwitchPlan plan_;
  Errors errors_;
  std::set<std::string> in_networks_, mirrors_;
  std::map<std::string, Vni> gateways_;  ///< by port
  std::set<AttachKey> attached_;
  std::vector<const ServicePort*> uplinks_;
  std::vector<std::pair<IpAddress, Config>> vteps_;
};

}  // namespace

std::optional<PortId> SwitchPlan::link_of(const IpAddress& address) const {
  const auto link = std::ranges::find_if(links, [&](const auto& each) { return each.first.contains(address); });
  return link == links.end() ? std::nullopt : std::optional(link->second);
}

Result<SwitchPlan> read_networks(const ServiceContext& context) { return Reader(context).read(); }

}  // namespace weir::vswitch_internal
