#include <weir/control/control_api.h>

#include <array>
#include <charconv>

#include <fmt/ranges.h>
#include <unistd.h>

#include <weir/base/nearest.h>
#include <weir/control/internal/json.h>
#include <weir/control/metrics_text.h>

namespace weir {

namespace {

/// A number in the query of a request.
struct Parameter {
  const char* name = nullptr;  ///< nullptr: the path takes none
  std::uint64_t otherwise = 0, min = 0, max = 0;
};

using Answer = ControlAnswer (*)(Node&, std::uint64_t);

struct Route {
  std::string_view path;
  Answer answer;
  Parameter parameter = {};
};

ControlAnswer json_answer(const Json& json) {
  return {.response = {.type = "application/json", .body = text_of(json) + "\n"}, .interval = {}};
}

Json addresses_json(const PortOptions& options) {
  Json json = Json::array();
  for (const auto& [address, network] : options.addresses) {
    json.push_back(fmt::format("{}/{}", address.to_string(), network.length));
  }
  return json;
}

ControlAnswer node_answer(Node& node, std::uint64_t /*none*/) {
  const NodeOptions& options = node.options();
  constexpr std::array idle{"poll", "adaptive", "interrupt"};
  return json_answer({{"name", options.name},
                      {"version", WEIR_VERSION},
                      {"process", ::getpid()},
                      {"uptime_ns", node.summary().wall_ns},
                      {"workers", options.workers},
                      {"idle", idle.at(static_cast<std::size_t>(options.idle))},
                      {"engine", options.engine == EngineKind::core ? "core" : "reference"},
                      {"rule_cache", options.rule_cache},
                      {"ports", node.ports().size()},
                      {"stages", node.pipeline().stages.size()}});
}

/// What was counted, and what the ports are.
Json port_states(const Node& node) {
  Json ports = ports_json(node.summary());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const PortOptions& options = node.ports()[i]->options;
    ports[i]["up"] = node.port_table().ports[i].up.load(std::memory_order_relaxed);
    ports[i]["role"] = options.role == PortRole::uplink ? "uplink" : "host";
    ports[i]["labels"] = options.labels;
    ports[i]["addresses"] = addresses_json(options);
    ports[i]["mac"] = node.port_table().ports[i].mac.to_string();
    ports[i]["mtu"] = node.port_table().ports[i].mtu;
  }
  return ports;
}

ControlAnswer ports_answer(Node& node, std::uint64_t /*none*/) { return json_answer({{"ports", port_states(node)}}); }

ControlAnswer stages_answer(Node& node, std::uint64_t /*none*/) {
  return json_answer({{"stages", stages_json(node.summary())}});
}

ControlAnswer stats_answer(Node& node, std::uint64_t /*none*/) { return json_answer(stats_json(node.summary())); }

ControlAnswer rules_answer(Node& node, std::uint64_t limit) {
  const RuleLines lines = rule_lines(node, limit);
  return json_answer({{"rules", rules_json(lines.rules)}, {"total", lines.total}});
}

ControlAnswer watch_answer(Node& /*node*/, std::uint64_t interval) {
  return {.response = {.type = "text/event-stream", .endless = true}, .interval = std::chrono::milliseconds(interval)};
}

ControlAnswer metrics_answer(Node& node, std::uint64_t /*none*/) {
  return {.response = {.type = metrics_type, .body = metrics_text(node.summary(), node.options().name, WEIR_VERSION)},
          .interval = {}};
}

constexpr std::array<Route, 7> routes{{
    {"/v1/node", node_answer},
    {"/v1/ports", ports_answer},
    {"/v1/stages", stages_answer},
    {"/v1/stats", stats_answer},
    {"/v1/rules", rules_answer, {"limit", 1000, 1, 100'000}},
    {"/v1/watch/stats", watch_answer, {"interval", 1000, 100, 60'000}},
    {"/metrics", metrics_answer},
}};

ControlAnswer refusal(unsigned status, const std::string& problem, const std::string& remedy) {
  return {.response = error_response(status, problem, remedy), .interval = {}};
}

ControlAnswer wrong_method(const HttpRequest& request, const char* allowed) {
  ControlAnswer refused =
      refusal(405, fmt::format("{} of '{}'", request.method, request.path), fmt::format("use one of: {}", allowed));
  refused.response.fields.emplace_back("Allow", allowed);
  return refused;
}

constexpr std::string_view port_prefix = "/v1/ports/";

/// Whether the port is to be up, from {"up": true}.
std::optional<bool> wanted_state(const HttpRequest& request) {
  const Json json = Json::parse(request.body, nullptr, false);
  if (!json.is_object() || json.size() != 1 || !json.contains("up") || !json["up"].is_boolean()) {
    return std::nullopt;
  }
  return json["up"].get<bool>();
}

/// One port: what it is and has counted; PUT sets it up or down.
ControlAnswer port_answer(Node& node, const HttpRequest& request) {
  const auto name = percent_decoded(std::string_view(request.path).substr(port_prefix.size()));
  const auto port = name ? node.find_port(*name) : std::nullopt;
  if (!port) {
    return refusal(404, fmt::format("there is no port '{}'", name.value_or(request.path)),
                   "GET /v1/ports names those that there are");
  }
  if (!request.query.empty()) {
    return refusal(400, fmt::format("'?{}' behind a path that takes no parameters", request.query),
                   fmt::format("ask for {}", request.path));
  }
  if (request.method == "PUT") {
    const auto up = wanted_state(request);
    if (request.body_size > HttpRequest::kept_body || !up) {
      return refusal(request.body_size > HttpRequest::kept_body ? 413 : 400,
                     fmt::format("the body ({} bytes) is not a port's state", request.body_size),
                     R"(send {"up": true} or {"up": false})");
    }
    if (auto set = node.set_port_up(*port, *up); !set) {
      return refusal(500, set.error().message, "see the node's log");
    }
  } else if (request.method != "GET" && request.method != "HEAD") {
    return wrong_method(request, "GET, HEAD, PUT");
  }
  return json_answer(port_states(node)[port->number]);
}

HttpResponse not_found(const std::string& path) {
  std::vector<std::string_view> paths;
  for (const Route& route : routes) {
    paths.push_back(route.path);
  }
  paths.push_back("/v1/ports/{name}");
  return error_response(404, fmt::format("there is no '{}'{}", path, did_you_mean(path, paths)),
                        fmt::format("ask for one of: {}", fmt::join(paths, ", ")));
}

/// The value that the query gives to the route's parameter, or what is wrong with the query.
Result<std::uint64_t> number_of(const std::string& query, const Parameter& parameter) {
  if (query.empty()) {
    return parameter.otherwise;
  }
  if (parameter.name == nullptr) {
    return error("'?{}' behind a path that takes no parameters", query);
  }
  const std::size_t equals = query.find('=');
  if (query.substr(0, equals) != parameter.name || equals == std::string::npos) {
    return error("'?{}' is not the parameter '{}'", query, parameter.name);
  }
  std::uint64_t number = 0;
  const char* const end = query.data() + query.size();
  const auto [at, failure] = std::from_chars(query.data() + equals + 1, end, number);
  if (failure != std::errc{} || at != end || number < parameter.min || number > parameter.max) {
    return error("'{}' is no whole number from {} to {}", query.substr(equals + 1), parameter.min, parameter.max);
  }
  return number;
}

}  // namespace

ControlAnswer answer(Node& node, const HttpRequest& request) {
  if (request.path.starts_with(port_prefix)) {
    return port_answer(node, request);
  }
  const auto* const route = std::ranges::find(routes, request.path, &Route::path);
  if (route == routes.end()) {
    return {.response = not_found(request.path), .interval = {}};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return wrong_method(request, "GET, HEAD");
  }
  const auto number = number_of(request.query, route->parameter);
  if (!number) {
    const Parameter& p = route->parameter;
    return {.response =
                error_response(400, number.error().message,
                               p.name == nullptr ? fmt::format("ask for {}", route->path)
                                                 : fmt::format("ask for {}?{}={}", route->path, p.name, p.otherwise)),
            .interval = {}};
  }
  return route->answer(node, *number);
}

HttpResponse error_response(unsigned status, const std::string& problem, const std::string& remedy) {
  const Json json{{"error", problem}, {"remedy", remedy}};
  return {.status = status, .type = "application/json", .body = text_of(json) + "\n", .keep_alive = false};
}

std::string stats_event(const Node& node) {
  return fmt::format("event: stats\ndata: {}\n\n", text_of(stats_json(node.summary()), -1));
}

}  // namespace weir
