#include <weir/control/node_file.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/control/device_use.h>
#include <weir/control/internal/port_entry.h>

namespace weir {

namespace {

constexpr std::array<std::string_view, 16> keys{
    "weir",   "node",  "workers", "ports", "services", "chains",     "rule_cache", "engines", "seed", "decision_budget",
    "frames", "batch", "clock",   "pin",   "control",  "connections"};

// The most connections, and seconds until they are forgotten, by what they do.
void read_connections(const Config& config, NodeOptions& options, Errors& errors) {
  ConnectionTimeouts& t = options.connection_timeouts;
  const std::array<std::pair<std::string_view, Nanoseconds*>, 13> timeouts{{{"tcp_opening", &t.tcp_opening},
                                                                            {"tcp_established", &t.tcp_established},
                                                                            {"tcp_closing", &t.tcp_closing},
                                                                            {"tcp_last_ack", &t.tcp_last_ack},
                                                                            {"tcp_time_wait", &t.tcp_time_wait},
                                                                            {"tcp_closed", &t.tcp_closed},
                                                                            {"udp_new", &t.udp_new},
                                                                            {"udp_established", &t.udp_established},
                                                                            {"sctp_opening", &t.sctp_opening},
                                                                            {"sctp_established", &t.sctp_established},
                                                                            {"sctp_closing", &t.sctp_closing},
                                                                            {"icmp", &t.icmp},
                                                                            {"other", &t.other}}};
  std::vector<std::string_view> allowed{"limit"};
  for (const auto& [name, timeout] : timeouts) {
    allowed.push_back(name);
  }
  if (auto checked = config.check_keys(allowed); !checked) {
    return errors.take(checked);
  }
  if (const Config* limit = config.find("limit")) {
    options.connections = static_cast<std::uint32_t>(errors.take(limit->integer(1, 16'777'216), std::int64_t{1}));
  }
  for (const auto& [name, timeout] : timeouts) {
    if (const Config* seconds = config.find(name)) {
      constexpr std::int64_t week = 7 * 86'400;
      *timeout = static_cast<Nanoseconds>(errors.take(seconds->integer(1, week), std::int64_t{1})) *
                 ConnectionTimeouts::second;
    }
  }
}

void read_workers(const Config& config, NodeOptions& options, Errors& errors) {
  if (auto checked = config.check_keys({"count", "idle"}); !checked) {
    return errors.take(checked);
  }
  if (const Config* count = config.find("count")) {
    options.workers = static_cast<unsigned>(errors.take(count->integer(1, max_workers), std::int64_t{1}));
  }
  if (const Config* idle = config.find("idle")) {
    options.idle = static_cast<Idle>(errors.take(idle->one_of({"poll", "adaptive", "interrupt"})));
  }
}

void read_engines(const Config& config, NodeOptions& options, Errors& errors) {
  const auto engines = config.list("a list of engines, [core] or [reference]");
  if (!engines || engines->size() != 1) {
    return engines ? errors.take(config.error("expected one engine, [core] or [reference], found {}", config.found()))
                   : errors.add(engines.error());
  }
  const bool reference = errors.take((*engines)[0].one_of({"core", "reference"})) == 1;
  options.engine = reference ? EngineKind::reference : EngineKind::core;
}

void read_budget(const Config& config, NodeOptions& options, Errors& errors) {
  const auto word = config.string();
  if (word && *word == "auto") {
    options.decision_share = {};
  } else if (word && *word == "unlimited") {
    options.decision_share = {100};
  } else if (const auto percent = config.integer(1, 100)) {
    options.decision_share = {static_cast<unsigned>(*percent)};
  } else {
    errors.take(config.error("expected auto, unlimited or 1 to 100 (per cent), found {}", config.found()));
  }
}

NodeFile::PortEntry read_port(const Config::Entry& entry, const std::filesystem::path& folder, Errors& errors) {
  NodeFile::PortEntry port{.name = entry.name, .place = entry.value, .device = {}, .options = {}};
  if (entry.value.kind() == Config::Kind::scalar) {
    read_port_device(entry.value, folder, port, errors);
    fit_role(entry.value, port, errors);
    return port;
  }
  if (auto checked = entry.value.check_keys({"device", "role", "labels", "addresses", "mac", "mtu"}); !checked) {
    errors.take(checked);
    return port;
  }
  const Config* device = entry.value.find("device");
  if (device == nullptr) {
    errors.take(entry.value.is_null()
                    ? entry.key.error("port '{}' has no device; write {}: \"pcap:in.pcap\"", port.name, port.name)
                    : entry.value.error("port '{}' has no 'device'", port.name));
    return port;
  }
  read_port_options(entry.value, port.options, errors);
  read_port_device(*device, folder, port, errors);
  fit_role(entry.value, port, errors);
  return port;
}

void read_ports(const Config& config, NodeFile& file, Errors& errors) {
  for (const Config::Entry& entry : errors.take(config.map("a map of ports, NAME: DEVICE"))) {
    file.ports.push_back(read_port(entry, file.folder, errors));
  }
  check_device_uses(file.ports, errors);
  if (file.ports.empty() && errors.empty()) {
    errors.take(config.error("no ports; write ports: {{NAME: DEVICE}}, as in a: \"pcap:in.pcap\""));
  }
}

/// Of all entries with their places, the one that `name` names.
const Config::Entry* find_service(std::span<const Config::Entry> services, const Config& name, Errors& errors) {
  const std::string wanted = errors.take(name.string("the name of a service"));
  const auto place = std::ranges::find(services, wanted, &Config::Entry::name);
  if (place != services.end()) {
    return &*place;
  }
  std::vector<std::string_view> known;
  for (const Config::Entry& entry : services) {
    known.emplace_back(entry.name);
  }
  errors.take(name.error("no service '{}' in this file; there are: {}{}", wanted, fmt::join(known, ", "),
                         did_you_mean(wanted, known)));
  return nullptr;
}

/// One of `chains`; the services by their place in `services`.
NodeFile::ChainEntry read_chain(const Config& config, std::span<const Config::Entry> services, Errors& errors) {
  NodeFile::ChainEntry chain;
  if (auto checked = config.check_keys({"name", "selector", "services"}); !checked) {
    errors.take(checked);
    return chain;
  }
  if (const Config* name = config.find("name")) {
    chain.name = errors.take(name->string("a name"));
  }
  if (const Config* selector = config.find("selector")) {
    for (const auto& [key, name, value] : errors.take(selector->map("a map of labels"))) {
      chain.selector[name] = errors.take(value.string("a label's value"));
    }
  }
  for (const Config& name : errors.take(config.get("services").list("a list of services"))) {
    const Config::Entry* entry = find_service(services, name, errors);
    if (entry == nullptr) {
      continue;
    }
    const auto index = static_cast<std::size_t>(entry - services.data());
    if (std::ranges::find(chain.services, index) != chain.services.end()) {
      errors.take(name.error("'{}' is in the chain already", entry->name));
    } else {
      chain.services.push_back(index);
    }
  }
  if (chain.services.empty() && errors.empty()) {
    errors.take(config.error("a chain without services; nothing would handle its packets"));
  }
  return chain;
}

/// `chains`, or one of all services in the order they are written.
void read_chains(const Config& config, NodeFile& file, std::span<const Config::Entry> services, Errors& errors) {
  const Config* chains = config.find("chains");
  if (chains == nullptr) {
    NodeFile::ChainEntry all{"default", {}, std::vector<std::size_t>(services.size())};
    std::iota(all.services.begin(), all.services.end(), std::size_t{0});
    file.chains.push_back(std::move(all));
    return;
  }
  const auto items = errors.take(chains->list("a list of chains"));
  for (const Config& item : items) {
    NodeFile::ChainEntry chain = read_chain(item, services, errors);
    if (chain.name.empty()) {
      chain.name = items.size() == 1 ? "default" : fmt::format("chain {}", file.chains.size() + 1);
    }
    if (std::ranges::find(file.chains, chain.name, &NodeFile::ChainEntry::name) != file.chains.end()) {
      errors.take(item.error("two chains are named '{}'; rename one", chain.name));
    }
    if (!file.chains.empty() && file.chains.back().selector.empty() && errors.empty()) {
      errors.take(
          item.error("no port reaches chain '{}': '{}' before it takes all; put the one with the empty selector "
                     "last",
                     chain.name, file.chains.back().name));
    }
    file.chains.push_back(std::move(chain));
  }
  if (items.empty()) {
    errors.take(chains->error("no chain; write - {{name: default, selector: {{}}, services: [...]}}"));
  }
  for (const NodeFile::PortEntry& port : file.ports) {
    if (errors.empty() && file.chain_of(port.options) == file.chains.size()) {
      errors.take(
          chains->error("no chain takes port '{}'; add one with an empty selector at the end, or give the port a "
                        "label that one selects",
                        port.name));
    }
  }
}

void read_services(const Config& config, NodeFile& file, const ServiceRegistry& registry, Errors& errors) {
  const auto services = errors.take(config.get("services").map("a map of services, NAME: {SETTING: VALUE}"));
  for (const Config::Entry& entry : services) {
    const auto kind = registry.require(entry.key);
    if (!kind) {
      errors.add(kind.error());
      continue;
    }
    file.services.push_back({*kind, entry.key, entry.value});
    errors.take(check_settings((*kind)->name, (*kind)->settings, entry.value));
  }
  if (services.empty() && errors.empty()) {
    errors.take(config.error("no services; nothing would handle the packets. Write services: {{l2_switch: {{}}}}"));
  }
  read_chains(config, file, services, errors);
}

Result<NodeFile> read_node(const Config& config, std::filesystem::path folder, const ServiceRegistry& registry) {
  if (config.kind() != Config::Kind::map) {
    return config.error("expected a node file, a map that begins with 'weir: 1', found {}", config.found());
  }
  const auto entries = config.map();
  if (entries->empty() || entries->front().name != "weir") {
    return config.error("expected 'weir: 1' first, the version of the node file's schema");
  }
  if (!entries->front().value.integer(1, 1)) {
    return entries->front().value.error("schema version {}, and this weir knows version 1",
                                        entries->front().value.found());
  }
  NodeFile file{.registry = &registry, .folder = std::move(folder)};
  Errors errors;
  errors.take(config.check_keys(keys));
  NodeOptions& options = file.options;
  const auto number = [&](const char* key, std::int64_t min, std::int64_t max, auto& value) {
    if (const Config* found = config.find(key)) {
      value = static_cast<std::remove_reference_t<decltype(value)>>(errors.take(found->integer(min, max)));
    }
  };
  if (const Config* name = config.find("node")) {
    options.name = errors.take(name->string("a name"));
  }
  if (const Config* control = config.find("control")) {
    file.control = errors.take(control->string("the path of a socket, or off"));
    if (file.control.empty()) {
      errors.take(control->error("expected the path of a socket, or off; leave it out for a path by the node's name"));
    } else if (file.control != "off") {
      file.control = (file.folder / file.control).string();
    }
  }
  number("rule_cache", 0, 4'194'304, options.rule_cache);
  number("seed", 0, std::numeric_limits<std::int64_t>::max(), options.seed);
  number("frames", 64, 1'048'576, options.frames);
  number("batch", 1, 256, options.batch);
  if (const Config* workers = config.find("workers")) {
    read_workers(*workers, options, errors);
  }
  if (const Config* connections = config.find("connections")) {
    read_connections(*connections, options, errors);
  }
  if (const Config* engines = config.find("engines")) {
    read_engines(*engines, options, errors);
  }
  if (const Config* budget = config.find("decision_budget")) {
    read_budget(*budget, options, errors);
  }
  if (const Config* pin = config.find("pin")) {
    options.pin = errors.take(pin->boolean());
  }
  read_ports(config.get("ports"), file, errors);
  read_services(config, file, registry, errors);
  std::size_t clock = 0;
  if (const Config* word = config.find("clock")) {
    clock = errors.take(word->one_of({"auto", "system", "capture"}));
  }
  const auto comes_from = [&](DeviceInput input) {
    return std::ranges::any_of(file.ports, [&](const auto& port) { return input_of(port.device) == input; });
  };
  options.capture_time =
      clock == 2 || (clock == 0 && comes_from(DeviceInput::capture) && !comes_from(DeviceInput::timed));
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return file;
}

}  // namespace

bool NodeFile::ChainEntry::takes(const PortOptions& port) const {
  return std::ranges::all_of(selector, [&port](const auto& label) {
    const auto found = port.labels.find(label.first);
    return found != port.labels.end() && found->second == label.second;
  });
}

std::size_t NodeFile::chain_of(const PortOptions& port) const {
  return static_cast<std::size_t>(
      std::ranges::find_if(chains, [&port](const ChainEntry& chain) { return chain.takes(port); }) - chains.begin());
}

Result<NodeFile> NodeFile::read(const std::string& path, const ServiceRegistry& registry) {
  const auto config = Config::read_file(path);
  return config ? read_node(*config, std::filesystem::path(path).parent_path(), registry)
                : std::unexpected(config.error());
}

Result<NodeFile> NodeFile::parse(std::string_view text, std::string name, const std::filesystem::path& folder,
                                 const ServiceRegistry& registry) {
  const auto config = Config::parse(text, std::move(name));
  return config ? read_node(*config, folder, registry) : std::unexpected(config.error());
}

}  // namespace weir
