#include <weir/service/vswitch/report.h>

namespace weir::vswitch_internal {

namespace {

constexpr std::size_t most_listed = 10'000;

std::string port_name(const Node& node, PortId port) { return node.port_table().ports[port.number].name; }

}  // namespace

Json describe(const SwitchPlan& plan, const Node& node) {
  Json json{{"networks", Json::object()}};
  for (const NetworkPlan& network : plan.networks) {
    json["networks"][std::to_string(network.vni)] = {{"ports", network.attachments.size()},
                                                     {"vteps", network.vteps.size()}};
    if (network.network.gateway.valid()) {
      json["networks"][std::to_string(network.vni)]["gateway"] = port_name(node, network.network.gateway);
      json["networks"][std::to_string(network.vni)]["vrf"] = network.vrf;
    }
  }
  for (const VrfPlan& vrf : plan.vrfs) {
    json["vrfs"][vrf.name] = {{"routes", vrf.routes.size()}};
    if (vrf.vni != 0) {
      json["vrfs"][vrf.name]["vni"] = vrf.vni;
      json["vrfs"][vrf.name]["mac"] = vrf.mac.to_string();
    }
  }
  if (plan.underlay.tunnels) {
    json["local"] = plan.underlay.local.to_string();
    json["tunnel_mtu"] = plan.underlay.inner_mtu;
  }
  return json;
}

Json known_macs(const SwitchTables& tables, const Node& node) {
  Json list = Json::array();
  tables.macs.for_each([&](const MacKey& key, const Place& place) {
    if (list.size() == most_listed) {
      return;
    }
    Json entry{{"network", key.vni}, {"mac", key.mac.to_string()}};
    if (place.port.valid()) {
      entry["port"] = port_name(node, place.port);
    } else {
      entry["vtep"] = place.vtep.to_string();
    }
    if (place.vlan != untagged) {
      entry["vlan"] = place.vlan;
    }
    list.push_back(std::move(entry));
  });
  return {{"macs", std::move(list)}};
}

Json known_addresses(const SwitchTables& tables) {
  Json list = Json::array();
  tables.bindings.for_each([&](const AddressKey& key, const Binding& binding) {
    if (list.size() < most_listed) {
      list.push_back({{"network", key.vni},
                      {"address", key.address.to_string()},
                      {"mac", binding.mac.to_string()},
                      {"known", binding.gateway      ? "gateway"
                                : binding.configured ? "configured"
                                                     : "heard"}});
    }
  });
  return {{"addresses", std::move(list)}};
}

Json known_routes(const SwitchPlan& plan) {
  Json vrfs = Json::object();
  for (const VrfPlan& vrf : plan.vrfs) {
    vrfs[vrf.name] = Json::object();
    for (const auto& [to, route] : vrf.routes) {
      if (route.kind != VrfRoute::Kind::martian && route.kind != VrfRoute::Kind::broadcast) {
        vrfs[vrf.name][to.to_string()] = route.to_string();
      }
    }
  }
  return {{"routes", std::move(vrfs)}};
}

}  // namespace weir::vswitch_internal
