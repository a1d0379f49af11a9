// Answers to requests that change a node, or ask it to do something.

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/control/internal/port_entry.h>
#include <weir/control/internal/routes.h>
#include <weir/control/trace.h>

namespace weir {

namespace {

using Request = ControlRequestParts;

constexpr std::string_view port_example =
    R"({"device": "tap:web", "role": "host", "labels": {"app": "web"}, "addresses": ["10.0.0.1/24"], "mac": "02:00:00:00:00:01", "mtu": 1500, "up": true})";

Json changes_json(const std::vector<NodeChange>& changes) {
  constexpr std::array kinds{"add", "remove", "change"};
  Json json = Json::array();
  for (const NodeChange& change : changes) {
    json.push_back(
        {{"kind", kinds.at(static_cast<std::size_t>(change.kind))}, {"what", change.what}, {"detail", change.detail}});
  }
  return json;
}

/// The body as configuration, at the place `name`.
Config config_of(const Json& json, const Config::Place& place) {
  if (json.is_object()) {
    std::vector<Config::Entry> entries;
    for (const auto& [key, value] : json.items()) {
      entries.push_back({Config::scalar(place, key), key, config_of(value, place)});
    }
    return Config::map(place, std::move(entries));
  }
  if (json.is_array()) {
    std::vector<Config> items;
    for (const Json& item : json) {
      items.push_back(config_of(item, place));
    }
    return Config::list(place, std::move(items));
  }
  return json.is_null()     ? Config::null(place)
         : json.is_string() ? Config::scalar(place, json.get<std::string>(), true)
                            : Config::scalar(place, json.dump());
}

/// Everything but `up`, as a change of the node's file. `malformed`: the body is at fault.
Result<> edit_port(NodeFile& file, const std::string& name, const Json& body, bool& malformed) {
  const Config config = config_of(body, {std::make_shared<std::string>(fmt::format("port '{}'", name))});
  Errors errors;
  auto entry = std::ranges::find(file.ports, name, &NodeFile::PortEntry::name);
  if (entry == file.ports.end()) {
    file.ports.push_back({.name = name, .place = config, .device = {}, .options = {}});
    entry = file.ports.end() - 1;
  }
  if (const Config* device = config.find("device")) {
    read_port_device(*device, file.folder, *entry, errors);
  } else if (entry->device.kind.empty()) {
    errors.take(config.error("there is no such port, and a new one needs a 'device'"));
  }
  read_port_options(config, entry->options, errors);
  fit_role(config, *entry, errors);
  malformed = !errors.empty();
  if (!malformed) {
    check_device_uses(file.ports, errors);
  }
  return errors.result();
}

ControlAnswer put_port(const Request& request) {
  const std::string& name = request.names[0];
  constexpr std::array<std::string_view, 7> keys{"up", "device", "role", "labels", "addresses", "mac", "mtu"};
  const bool known_keys = std::ranges::all_of(
      request.body.items(), [&](const auto& item) { return std::ranges::find(keys, item.key()) != keys.end(); });
  const bool has_up = request.body.contains("up");
  if (!known_keys || request.body.empty() || (has_up && !request.body["up"].is_boolean())) {
    return refusal(400, "the body is not a port's state", fmt::format("send some of {}", port_example));
  }
  const bool there = request.node.node().find_port(name).has_value();
  if (!there || request.body.size() > (has_up ? 1U : 0U)) {
    bool malformed = false;
    const auto changed =
        request.node.change([&](NodeFile& file) { return edit_port(file, name, request.body, malformed); });
    if (!changed) {
      return malformed && !there && !request.body.contains("device")
                 ? refusal(404, changed.error().message, "GET /v1/ports names those that there are")
                 : refusal(malformed ? 400 : 409, changed.error().message,
                           fmt::format("nothing was changed; send some of {}", port_example));
    }
  }
  if (has_up) {
    const auto port = request.node.node().find_port(name);
    const auto set = port ? request.node.node().set_port_up(*port, request.body["up"].get<bool>())
                          : Result<>(error("port '{}' was removed meanwhile", name));
    if (!set) {
      return refusal(409, set.error().message, "look at /v1/ports");
    }
  }
  return json_answer(port_json(request.node, name), there ? 200 : 201);
}

ControlAnswer port_answer(const Request& request) {
  if (request.method == "PUT") {
    return put_port(request);
  }
  const std::string& name = request.names[0];
  if (const Json port = port_json(request.node, name); port.is_null()) {
    return refusal(404, fmt::format("there is no port '{}'", name), "GET /v1/ports names those that there are");
  } else if (request.method != "DELETE") {
    return json_answer(port);
  }
  const auto changed = request.node.change([&](NodeFile& file) {
    std::erase_if(file.ports, [&](const auto& port) { return port.name == name; });
    return Result<>();
  });
  if (!changed) {
    return refusal(409, changed.error().message, "nothing was changed; a service or its settings need the port");
  }
  return json_answer({{"changes", changes_json(*changed)}, {"revision", request.node.revision()}});
}

ControlAnswer apply_answer(const Request& request) {
  const Json& body = request.body;
  const auto file_name = body.find("file");
  const auto dry_run = body.find("dry_run");
  const auto revision = body.find("revision");
  const std::size_t known =
      (dry_run != body.end() ? 1U : 0U) + (revision != body.end() ? 1U : 0U) + (file_name != body.end() ? 1U : 0U);
  if (file_name == body.end() || !file_name->is_string() || known != body.size() ||
      (dry_run != body.end() && !dry_run->is_boolean()) ||
      (revision != body.end() && !revision->is_number_unsigned())) {
    return refusal(400, "the body names no node file",
                   R"(send {"file": "/path/of/node.yaml", "dry_run": true, "revision": 0}, the last two optional)");
  }
  if (revision != body.end() && revision->get<std::uint64_t>() != request.node.revision()) {
    return refusal(409,
                   fmt::format("the node has changed: its revision is {}, not {}", request.node.revision(),
                               revision->get<std::uint64_t>()),
                   "look at the difference again");
  }
  const std::filesystem::path path = file_name->get<std::string>();
  if (!path.is_absolute()) {
    return refusal(400, fmt::format("'{}' is no absolute path", path.string()), "name the file from / on");
  }
  const NodeFile now = request.node.file();
  const auto file = NodeFile::read(path.string(), *now.registry);
  if (!file) {
    return refusal(409, file.error().message, "mend the file; nothing was changed");
  }
  const bool only_shown = dry_run != body.end() && dry_run->get<bool>();
  const auto changes = only_shown ? request.node.compare(*file) : request.node.apply(*file);
  if (!changes) {
    return refusal(409, changes.error().message, "nothing was changed");
  }
  return json_answer(
      {{"changes", changes_json(*changes)}, {"applied", !only_shown}, {"revision", request.node.revision()}});
}

ControlAnswer trace_answer(const Request& request) {
  const auto port = request.body.find("port");
  const auto packet = request.body.find("packet");
  if (request.body.size() != 2 || port == request.body.end() || !port->is_string() || packet == request.body.end() ||
      !packet->is_string()) {
    return refusal(400, "the body is no port and packet",
                   R"(send {"port": "web", "packet": "0200...", in hexadecimal})");
  }
  const auto id = request.node.node().find_port(port->get<std::string>());
  if (!id) {
    return refusal(404, fmt::format("there is no port '{}'", port->get<std::string>()),
                   "GET /v1/ports names those that there are");
  }
  const auto bytes = frame_from_hex(packet->get<std::string>());
  if (!bytes) {
    return refusal(400, bytes.error().message, "send a frame's bytes as hexadecimal digits");
  }
  Node& node = request.node.node();
  PacketTracer tracer(node, TraceMode::running);
  return {
      .response = {.type = "application/json", .body = trace_json(tracer.trace({*bytes, *id, node.clock().now()}))}};
}

Json service_json(const std::string& name, Service& service, const NodeFile& file) {
  const ServiceKind* kind = file.registry->find(name);
  Json calls = Json::array();
  for (const ServiceCall& call : service.calls()) {
    calls.push_back({{"name", call.name}, {"help", call.help}});
  }
  return {{"name", name}, {"help", kind == nullptr ? "" : kind->help}, {"calls", calls}, {"state", service.state()}};
}

Json services_json(ManagedNode& node) {
  const NodeFile file = node.file();
  Json services = Json::array();
  node.for_each_service(
      [&](const std::string& name, Service& service) { services.push_back(service_json(name, service, file)); });
  return services;
}

ControlAnswer services_answer(const Request& request) {
  return json_answer({{"services", services_json(request.node)}});
}

ControlAnswer service_answer(const Request& request) {
  for (const Json& service : services_json(request.node)) {
    if (service["name"] == request.names[0]) {
      return json_answer(service);
    }
  }
  return refusal(404, fmt::format("there is no service '{}'", request.names[0]),
                 "GET /v1/services names those that there are");
}

ControlAnswer call_answer(const Request& request) {
  std::optional<ControlAnswer> answered;
  request.node.for_each_service([&](const std::string& name, Service& service) {
    if (name != request.names[0]) {
      return;
    }
    if (std::ranges::find(service.calls(), request.names[1], &ServiceCall::name) == service.calls().end()) {
      std::vector<std::string_view> calls;
      std::ranges::transform(service.calls(), std::back_inserter(calls), &ServiceCall::name);
      answered = refusal(404, fmt::format("service '{}' has no call '{}'", name, request.names[1]),
                         calls.empty() ? "it has none" : fmt::format("it has: {}", fmt::join(calls, ", ")));
      return;
    }
    const auto done = service.call(request.names[1], request.body);
    answered =
        done ? json_answer(*done) : refusal(409, done.error().message, "see the service's calls in /v1/services");
  });
  return answered ? *answered
                  : refusal(404, fmt::format("there is no service '{}'", request.names[0]),
                            "GET /v1/services names those that there are");
}

constexpr std::array<Route, 6> routes{{
    {"GET, HEAD, PUT, DELETE", "/v1/ports/{name}", port_answer, {}, port_example},
    {"POST", "/v1/apply", apply_answer, {}, R"({"file": "/path/of/node.yaml"})"},
    {"POST", "/v1/trace", trace_answer, {}, R"({"port": "web", "packet": "ffffffffffff0200..."})"},
    {"GET, HEAD", "/v1/services", services_answer},
    {"GET, HEAD", "/v1/services/{name}", service_answer},
    {"POST", "/v1/services/{name}/{call}", call_answer, {}, "{}"},
}};

}  // namespace

std::span<const Route> change_routes() { return routes; }

}  // namespace weir
