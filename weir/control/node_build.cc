// From a node file that was read to a node.

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

/// The stages of all services, one behind the other.
Result<std::optional<StageRef>> build_chain(Node& node, const NodeFile& file) {
  std::optional<StageRef> entry;
  std::optional<StageRef> exit;
  const Config* before = nullptr;
  Errors errors;
  for (const auto& [kind, name, settings] : file.services) {
    if (before != nullptr && !exit && errors.empty()) {
      errors.take(name.error("nothing reaches '{}': '{}' before it passes no packets on; put it last", kind->name,
                             before->string().value_or("")));
    }
    const auto stages = build_service(node, *kind, settings, file.folder);
    if (!stages) {
      errors.add(stages.error());
      continue;
    }
    if (exit) {
      node.graph().connect(*exit, stages->entry);
    }
    if (!entry) {
      entry = stages->entry;
    }
    exit = stages->exit;
    before = &name;
  }
  if (exit && errors.empty()) {
    errors.take(
        before->error("'{}' passes packets on, and nothing is behind it; end the chain with a service that "
                      "sends them to ports, such as l2_switch",
                      before->string().value_or("")));
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return entry;
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
  const auto entry = build_chain(**node, file);
  if (!entry) {
    return std::unexpected(entry.error());
  }
  for (std::uint16_t port = 0; port < (*node)->ports().size(); ++port) {
    (*node)->graph().connect(PortId{port}, **entry);
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
