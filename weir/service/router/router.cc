#include <weir/service/router/router.h>

#include <memory>

#include <weir/service/router/read_routes.h>
#include <weir/service/router/router_stage.h>

namespace weir {

namespace {

std::vector<RouterPort> ports_of(const Node& node) {
  std::vector<RouterPort> ports;
  for (std::size_t i = 0; i < node.ports().size(); ++i) {
    const PortTable::Port& port = node.port_table().ports[i];
    ports.push_back({PortId{static_cast<std::uint16_t>(i)}, port.name, port.mac, port.mtu, port.addresses});
  }
  return ports;
}

Interfaces interfaces_of(const std::vector<RouterPort>& ports) {
  Interfaces interfaces;
  for (const RouterPort& port : ports) {
    interfaces.ports.resize(std::max<std::size_t>(interfaces.ports.size(), port.id.number + 1U));
    interfaces.ports[port.id.number] = {port.mac, port.mtu};
  }
  return interfaces;
}

Result<ServiceStages> build(ServiceContext& context) {
  State& state = context.node.state();
  const RouterStage::Tables tables{state.prefixes<Route>("routes"), state.prefixes<Source>("sources"),
                                   state.versioned<Interfaces>("interfaces", {})};
  const std::vector<RouterPort> ports = ports_of(context.node);
  const auto configured = read_routes(context.map("routes"), ports);
  if (!configured) {
    return std::unexpected(configured.error());
  }
  const Routes routes = all_routes(ports, *configured, {});
  const auto done = context.node.update([&](Update& update) {
    update.set(tables.interfaces, interfaces_of(ports));
    for (const auto& [to, source] : all_sources(ports)) {
      update.set(tables.sources, to, source);
    }
    for (const auto& [to, route] : routes) {
      update.set(tables.routes, to, route);
    }
  });
  if (!done) {
    return std::unexpected(done.error());
  }
  std::vector<NeighbourKey> wanted;
  for (const Hop& hop : all_hops(routes)) {
    wanted.push_back({hop.port, hop.address});
  }
  state.neighbours().want(std::move(wanted));
  const FlowStage& stage = context.node.graph().add<RouterStage>(context.name(), tables);
  return ServiceStages{stage, {}};
}

}  // namespace

ServiceKind router() {
  return {"router",
          "forwards IP between the ports' networks and by routes; answers for the node's own addresses",
          {{.name = "routes",
            .type = SettingType::map,
            .help = "prefix: {via: next hop or list, port: NAME} or blackhole; 'default' for all else"}},
          build};
}

}  // namespace weir
