// Answers that tell what a node is and has counted.

#include <algorithm>
#include <functional>

#include <unistd.h>

#include <weir/control/internal/routes.h>
#include <weir/control/metrics_text.h>

namespace weir {

namespace {

using Request = ControlRequestParts;

ControlAnswer node_answer(const Request& request) {
  const Node& node = request.node.node();
  const NodeOptions& options = node.options();
  constexpr std::array idle{"poll", "adaptive", "interrupt"};
  return json_answer({{"name", options.name},
                      {"version", WEIR_VERSION},
                      {"process", ::getpid()},
                      {"uptime_ns", node.uptime()},
                      {"workers", options.workers},
                      {"idle", idle.at(static_cast<std::size_t>(options.idle))},
                      {"engine", options.engine == EngineKind::core ? "core" : "reference"},
                      {"rule_cache", options.rule_cache},
                      {"ports", node.port_count()},
                      {"stages", node.pipeline().stages.size()},
                      {"revision", request.node.revision()}});
}

/// What was counted, and what the ports are.
Json port_states(ManagedNode& managed) {
  const Node& node = managed.node();
  const NodeFile file = managed.file();
  Json ports = ports_json(node.summary());
  for (Json& port : ports) {
    const std::string name = port["name"].get<std::string>();
    const auto entry = std::ranges::find(file.ports, name, &NodeFile::PortEntry::name);
    const auto id = node.find_port(name);
    const PortOptions options = entry == file.ports.end() ? PortOptions() : entry->options;
    port["device"] = entry == file.ports.end() ? "" : entry->device.to_string();
    port["up"] = id && node.port_table().ports[id->number].up.load(std::memory_order_relaxed);
    port["role"] = name_of(options.role);
    port["labels"] = options.labels;
    port["addresses"] = Json::array();
    for (const auto& [address, network] : options.addresses) {
      port["addresses"].push_back(fmt::format("{}/{}", address.to_string(), network.length));
    }
    port["mac"] = id ? node.port_table().ports[id->number].mac.to_string() : "";
    port["mtu"] = id ? node.port_table().ports[id->number].mtu : 0;
  }
  return ports;
}

std::string zone_text(const Node& node, const ConnectionZone& zone) {
  if (const PortId port = zone.port(); port.valid()) {
    const std::string name = node.port_table().ports[port.number].name;
    return zone.vlan() ? fmt::format("port {} VLAN {}", name, *zone.vlan()) : fmt::format("port {}", name);
  }
  if (zone.kind() == ConnectionZone::services) {
    return "translated";
  }
  std::string text = zone.vlan() ? fmt::format("VLAN {}", *zone.vlan()) : "";
  if (zone.vni()) {
    text += fmt::format("{}VNI {}", text.empty() ? "" : ", ", *zone.vni());
  }
  return text;
}

ControlAnswer ports_answer(const Request& request) { return json_answer({{"ports", port_states(request.node)}}); }

ControlAnswer stages_answer(const Request& request) {
  return json_answer({{"stages", stages_json(request.node.node().summary())}});
}

ControlAnswer stats_answer(const Request& request) { return json_answer(stats_json(request.node.node().summary())); }

ControlAnswer rules_answer(const Request& request) {
  const RuleLines lines = rule_lines(request.node.node(), request.number);
  return json_answer({{"rules", rules_json(lines.rules)}, {"total", lines.total}});
}

// Those that were used last come first.
ControlAnswer connections_answer(const Request& request) {
  Node& node = request.node.node();
  std::vector<Connections::View> all;
  std::size_t limit = 0;
  if (node.state().has_connections()) {
    Connections& connections = node.state().connections();
    limit = connections.capacity();
    connections.for_each([&](const Connections::View& view) { all.push_back(view); });
  }
  const std::size_t shown = std::min<std::size_t>(request.number, all.size());
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(shown), std::greater(),
                            &Connections::View::last_used);
  const Nanoseconds now = node.clock().now();
  Json lines = Json::array();
  for (const Connections::View& view : std::span(all).first(shown)) {
    lines.push_back({{"connection", view.original.to_string()},
                     {"answers", view.translated ? view.reply.to_string() : ""},
                     {"state", view.state},
                     {"zone", zone_text(node, view.original.zone)},
                     {"ingress", view.ingress.valid() ? node.port_table().ports[view.ingress.number].name : ""},
                     {"idle_ns", now > view.last_used ? now - view.last_used : 0}});
  }
  return json_answer({{"connections", lines}, {"total", all.size()}, {"limit", limit}});
}

ControlAnswer chains_answer(const Request& request) {
  const NodeFile file = request.node.file();
  Json chains = Json::array();
  for (std::size_t i = 0; i < file.chains.size(); ++i) {
    const NodeFile::ChainEntry& chain = file.chains[i];
    Json services = Json::array();
    for (const std::size_t service : chain.services) {
      services.push_back(file.services[service].kind->name);
    }
    Json ports = Json::array();
    for (const NodeFile::PortEntry& port : file.ports) {
      if (file.chain_of(port.options) == i) {
        ports.push_back(port.name);
      }
    }
    chains.push_back({{"name", chain.name}, {"selector", chain.selector}, {"services", services}, {"ports", ports}});
  }
  return json_answer({{"chains", chains}});
}

ControlAnswer watch_answer(const Request& request) {
  return {.response = {.type = "text/event-stream", .endless = true},
          .interval = std::chrono::milliseconds(request.number)};
}

ControlAnswer metrics_answer(const Request& request) {
  Node& node = request.node.node();
  std::vector<ServiceMetrics> services;
  request.node.for_each_service(
      [&](const std::string& name, Service& service) { services.push_back({name, service.metrics()}); });
  return {.response = {.type = metrics_type,
                       .body = metrics_text(node.summary(), services, node.options().name, WEIR_VERSION)}};
}

constexpr std::string_view read = "GET, HEAD";
constexpr std::array<Route, 9> routes{{
    {read, "/v1/node", node_answer},
    {read, "/v1/ports", ports_answer},
    {read, "/v1/stages", stages_answer},
    {read, "/v1/stats", stats_answer},
    {read, "/v1/rules", rules_answer, {"limit", 1000, 1, 100'000}},
    {read, "/v1/connections", connections_answer, {"limit", 1000, 1, 1'000'000}},
    {read, "/v1/chains", chains_answer},
    {read, "/v1/watch/stats", watch_answer, {"interval", 1000, 100, 60'000}},
    {read, "/metrics", metrics_answer},
}};

}  // namespace

Json port_json(ManagedNode& node, std::string_view name) {
  for (Json& port : port_states(node)) {
    if (port["name"] == name) {
      return std::move(port);
    }
  }
  return nullptr;
}

std::span<const Route> state_routes() { return routes; }

std::string stats_event(const Node& node) {
  return fmt::format("event: stats\ndata: {}\n\n", text_of(stats_json(node.summary()), -1));
}

}  // namespace weir
