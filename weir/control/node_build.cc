// From a node file that was read to a node.

#include <weir/control/chain_stages.h>
#include <weir/control/device_use.h>
#include <weir/control/node_file.h>

namespace weir {

namespace {

Result<> add_port(Node& node, const NodeFile::PortEntry& port, LoadMode mode) {
  auto device = mode == LoadMode::run ? make_device(port.device) : make_device(std::string_view("memory:"));
  if (!device) {
    return std::unexpected(device.error().at(port.place.place()));
  }
  if (mode == LoadMode::check) {
    if (auto tried = try_device(port.device); !tried) {
      return std::unexpected(tried.error().at(port.place.place()));
    }
  }
  if (auto added = node.add_port(port.name, std::move(*device), port.options); !added) {
    return std::unexpected(added.error().at(port.place.place()));
  }
  return {};
}

Result<std::vector<ServiceStages>> build_services(Node& node, const NodeFile& file) {
  std::vector<ServiceStages> built;
  Errors errors;
  for (const auto& [kind, name, settings] : file.services) {
    if (auto stages = build_service(node, *kind, settings, file.folder)) {
      built.push_back(*stages);
    } else {
      errors.add(stages.error());
    }
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return built;
}

/// Whether packets get to each service of the chain and leave the last.
Result<> check_chain(const NodeFile& file, const NodeFile::ChainEntry& chain,
                     const std::vector<ServiceStages>& services) {
  for (std::size_t i = 0; i < chain.services.size(); ++i) {
    const bool last = i + 1 == chain.services.size();
    const bool passes = services[chain.services[i]].exit.has_value();
    const Config& name = file.services[chain.services[i]].name;
    if (!passes && !last) {
      const NodeFile::ServiceEntry& behind = file.services[chain.services[i + 1]];
      return behind.name.error("nothing reaches '{}': '{}' before it passes no packets on; put it last",
                               behind.kind->name, name.string().value_or(""));
    }
    if (passes && last) {
      return name.error(
          "'{}' passes packets on, and nothing is behind it; end the chain with a service that sends them "
          "to ports, such as l2_switch",
          name.string().value_or(""));
    }
  }
  return {};
}

/// One chain for all ports: its services are connected to each other.
void connect_chain(Node& node, const NodeFile::ChainEntry& chain, const std::vector<ServiceStages>& services) {
  for (std::size_t i = 0; i + 1 < chain.services.size(); ++i) {
    node.graph().connect(*services[chain.services[i]].exit, services[chain.services[i + 1]].entry);
  }
  for (std::uint16_t port = 0; port < node.ports().size(); ++port) {
    node.graph().connect(PortId{port}, services[chain.services.front()].entry);
  }
}

/// Several: between the services stands what knows each port's chain.
void connect_chains(Node& node, const NodeFile& file, const std::vector<ServiceStages>& services) {
  ChainPlan plan;
  for (const NodeFile::PortEntry& port : file.ports) {
    plan.chain_of_port.push_back(file.chain_of(port.options));
  }
  for (const NodeFile::ChainEntry& chain : file.chains) {
    auto& next = plan.next.emplace_back(services.size() + 1);
    std::size_t place = 0;
    for (const std::size_t service : chain.services) {
      next[place] = services[service].entry;
      place = service + 1;
    }
  }
  Graph& graph = node.graph();
  const auto& state = node.state().versioned<ChainPlan>("chains", std::move(plan));
  const auto& entry = graph.add<ChainStage>("chains", state, 0U);
  for (std::uint16_t port = 0; port < node.ports().size(); ++port) {
    graph.connect(PortId{port}, entry);
  }
  for (std::size_t i = 0; i < services.size(); ++i) {
    if (services[i].exit) {
      graph.connect(*services[i].exit,
                    graph.add<ChainStage>(fmt::format("behind {}", file.services[i].kind->name), state, i + 1));
    }
  }
}

}  // namespace

Result<std::unique_ptr<Node>> build_node(const NodeFile& file, LoadMode mode, const NodeOverrides& overrides) {
  NodeOptions options = file.options;
  options.engine = overrides.engine.value_or(options.engine);
  if (overrides.no_rule_cache) {
    options.rule_cache = 0;
  }
  if (mode != LoadMode::run) {
    options.workers = 1;
    options.rule_cache = 0;
    options.frames = 1024;
    options.engine = EngineKind::core;
  }
  auto node = Node::create(options);
  if (!node) {
    return node;
  }
  Errors errors;
  for (const auto& port : file.ports) {
    errors.take(add_port(**node, port, mode));
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  const auto services = build_services(**node, file);
  if (!services) {
    return std::unexpected(services.error());
  }
  for (const NodeFile::ChainEntry& chain : file.chains) {
    errors.take(check_chain(file, chain, *services));
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  if (file.chains.size() == 1) {
    connect_chain(**node, file.chains.front(), *services);
  } else {
    connect_chains(**node, file, *services);
  }
  if (mode != LoadMode::run) {
    if (auto prepared = (*node)->prepare(); !prepared) {
      return std::unexpected(prepared.error());
    }
  }
  return node;
}

Result<std::unique_ptr<Node>> load_node(const std::string& path, const ServiceRegistry& registry, LoadMode mode,
                                        const NodeOverrides& overrides) {
  const auto file = NodeFile::read(path, registry);
  return file ? build_node(*file, mode, overrides) : std::unexpected(file.error());
}

}  // namespace weir
