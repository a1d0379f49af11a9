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

ControlAnswer ports_answer(Node& node, std::uint64_t /*none*/) {
  Json ports = ports_json(node.summary());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const PortOptions& options = node.ports()[i]->options;
    ports[i]["up"] = node.port_table().ports[i].up.load(std::memory_order_relaxed);
    ports[i]["role"] = options.role == PortRole::uplink ? "uplink" : "host";
    ports[i]["labels"] = options.labels;
    ports[i]["addresses"] = addresses_json(options);
  }
  return json_answer({{"ports", std::move(ports)}});
}

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

HttpResponse not_found(const std::string& path) {
  std::vector<std::string_view> paths;
  for (const Route& route : routes) {
    paths.push_back(route.path);
  }
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
  const auto* const route = std::ranges::find(routes, request.path, &Route::path);
  if (route == routes.end()) {
    return {.response = not_found(request.path), .interval = {}};
  }
  if (request.method != "GET" && request.method != "HEAD") {
    ControlAnswer refused{
        .response = error_response(405, fmt::format("{} of '{}'", request.method, request.path), "use GET or HEAD"),
        .interval = {}};
    refused.response.fields.emplace_back("Allow", "GET, HEAD");
    return refused;
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
