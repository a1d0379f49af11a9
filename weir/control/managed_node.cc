#include <weir/control/managed_node.h>

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/control/device_use.h>

namespace weir {

Result<std::unique_ptr<ManagedNode>> ManagedNode::build(const NodeFile& file, LoadMode mode,
                                                        const NodeOverrides& overrides) {
  std::unique_ptr<ManagedNode> managed(new ManagedNode(file));
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
    return std::unexpected(node.error());
  }
  managed->node_ = std::move(*node);
  managed->chains_ = std::make_unique<Chains>(*managed->node_);
  Result<> built = managed->build_ports(mode);
  built = built ? managed->build_services() : built;
  built = built ? managed->check_chains(file) : built;
  if (!built) {
    return std::unexpected(built.error());
  }
  managed->chains_->connect(managed->node_->graph(), managed->services_);
  auto chained = managed->node_->update(
      [&](Update& update) { managed->chains_->assign(file, service_ports(*managed->node_), update); });
  if (!chained) {
    return std::unexpected(chained.error());
  }
  managed->chains_->commit();
  managed->node_->on_tend(
      [raw = managed.get()] { raw->for_each_service([](const std::string&, Service& service) { service.tend(); }); });
  if (mode != LoadMode::run) {
    if (auto prepared = managed->node_->prepare(); !prepared) {
      return std::unexpected(prepared.error());
    }
  }
  return managed;
}

Result<std::unique_ptr<ManagedNode>> ManagedNode::load(const std::string& path, const ServiceRegistry& registry,
                                                       LoadMode mode, const NodeOverrides& overrides) {
  const auto file = NodeFile::read(path, registry);
  return file ? build(*file, mode, overrides) : std::unexpected(file.error());
}

Result<> ManagedNode::build_ports(LoadMode mode) {
  Errors errors;
  for (const NodeFile::PortEntry& port : file_.ports) {
    auto device = mode == LoadMode::run ? make_device(port.device) : make_device(std::string_view("memory:"));
    Result<> tried = mode == LoadMode::check ? try_device(port.device) : Result<>();
    if (!device || !tried) {
      errors.add((device ? tried.error() : device.error()).at(port.place.place()));
      continue;
    }
    if (auto added = node_->add_port(port.name, std::move(*device), port.options); !added) {
      errors.add(added.error().at(port.place.place()));
    }
  }
  return errors.result();
}

Result<> ManagedNode::build_services() {
  Errors errors;
  std::vector<int> states(file_.services.size());
  for (std::size_t i = 0; i < file_.services.size(); ++i) {
    errors.take(build_service(i, states));
  }
  return errors.result();
}

// Those that it needs first. `states`: 0 not yet, 1 begun, 2 built.
Result<> ManagedNode::build_service(std::size_t index, std::vector<int>& states) {
  const auto& [kind, name, settings] = file_.services[index];
  if (states[index] == 2) {
    return {};
  }
  if (states[index] == 1) {
    return name.error("'{}' needs, by way of others, itself; services cannot need each other in a circle", kind->name);
  }
  states[index] = 1;
  for (const std::string& needed : kind->needs) {
    const auto other =
        std::ranges::find_if(file_.services, [&](const auto& entry) { return entry.kind->name == needed; });
    if (other == file_.services.end()) {
      return name.error("'{}' works with '{}'; add it to the services", kind->name, needed);
    }
    const auto place = static_cast<std::size_t>(other - file_.services.begin());
    if (auto built = build_service(place, states); !built) {
      return built;
    }
  }
  const std::vector<ServicePort> ports = service_ports(*node_);
  ServiceContext context(*node_, *kind, settings, file_.folder, ports, services_);
  auto service = weir::build_service(context, *kind);
  if (!service) {
    return std::unexpected(service.error());
  }
  services_.push_back({kind->name, std::move(*service)});
  states[index] = 2;
  return {};
}

/// Whether packets get to each service of each chain and leave its last.
Result<> ManagedNode::check_chains(const NodeFile& file) const {
  Errors errors;
  const auto passes = [&](const std::string& name) {
    const auto service = std::ranges::find(services_, name, &NamedService::name);
    return service != services_.end() && service->service->stages().exit.has_value();
  };
  for (const NodeFile::ChainEntry& chain : file.chains) {
    for (std::size_t i = 0; i < chain.services.size(); ++i) {
      const bool last = i + 1 == chain.services.size();
      const NodeFile::ServiceEntry& service = file.services[chain.services[i]];
      if (!passes(service.kind->name) && !last) {
        const NodeFile::ServiceEntry& behind = file.services[chain.services[i + 1]];
        errors.take(behind.name.error("nothing reaches '{}': '{}' before it passes no packets on; put it last",
                                      behind.kind->name, service.kind->name));
        break;
      }
      if (last && passes(service.kind->name)) {
        errors.take(service.name.error(
            "'{}' passes packets on, and nothing is behind it; end the chain with a service that sends them to ports, "
            "such as l2_switch",
            service.kind->name));
      }
    }
  }
  return errors.result();
}

NodeFile ManagedNode::file() const {
  const std::lock_guard guard(mutex_);
  return file_;
}

std::uint64_t ManagedNode::revision() const {
  const std::lock_guard guard(mutex_);
  return revision_;
}

}  // namespace weir
