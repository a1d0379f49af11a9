// weir port: adds, changes and removes ports of a running node.

#include <map>
#include <vector>

#include "command.h"
#include <nlohmann/json.hpp>

namespace weir::cli {

namespace {

struct PortChange {
  std::string name;
  std::string device;
  std::string role;
  std::string state;
  std::string mac;
  unsigned mtu = 0;
  std::vector<std::string> labels;
  std::vector<std::string> addresses;
  NodeChoice node;
  bool json = false;
};

/// As a part of a path: what does not belong into one as %XX.
std::string path_part(const std::string& name) {
  std::string part;
  for (const char byte : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(byte)) != 0 || std::string_view("-._~").contains(byte);
    part += plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return part;
}

Result<nlohmann::ordered_json> body_of(const PortChange& change) {
  nlohmann::ordered_json body = nlohmann::ordered_json::object();
  if (!change.device.empty()) {
    body["device"] = change.device;
  }
  if (!change.role.empty()) {
    body["role"] = change.role;
  }
  for (const std::string& label : change.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return error("'{}' is no label; write --label app=web", label);
    }
    body["labels"][label.substr(0, equals)] = label.substr(equals + 1);
  }
  if (!change.addresses.empty()) {
    body["addresses"] = change.addresses;
  }
  if (!change.mac.empty()) {
    body["mac"] = change.mac;
  }
  if (change.mtu != 0) {
    body["mtu"] = change.mtu;
  }
  if (!change.state.empty()) {
    body["up"] = change.state == "up";
  }
  return body;
}

void send(const PortChange& change, const char* method, int& status) {
  const auto body = body_of(change);
  if (!body) {
    print_error(body.error(), status);
    status = called_wrongly;
    return;
  }
  const bool removes = std::string_view(method) == "DELETE";
  const auto answer = change.node.ask(
      {.target = "/v1/ports/" + path_part(change.name), .method = method, .body = removes ? "" : json_text(*body)});
  if (!answer) {
    return print_error(answer.error(), status);
  }
  if (change.json) {
    print(*answer, status);
  }
}

void add_change(CLI::App& app, const char* name, const char* help, const char* example, const char* method,
                int& status) {
  CLI::App& command = subcommand(app, name, help, example);
  auto change = std::make_shared<PortChange>();
  command.add_option("NAME", change->name, "The port's name")->required();
  const bool adds = std::string_view(name) == "add";
  if (std::string_view(method) == "PUT") {
    CLI::Option* const device =
        adds ? command.add_option("DEVICE", change->device, "Its device, as in a node file: \"tap:web\"")
             : command.add_option("--device", change->device, "Another device, as in a node file: \"tap:web\"");
    device->required(adds);
    command.add_option("--role", change->role, "What it is connected to")
        ->check(CLI::IsMember({"host", "uplink"}).description(""))
        ->type_name("host|uplink");
    command.add_option("--label", change->labels, "All its labels, each as NAME=VALUE: they choose its chain")
        ->type_name("NAME=VALUE");
    command.add_option("--address", change->addresses, "All the node's own addresses on it")
        ->type_name("ADDRESS/LENGTH");
    command.add_option("--mac", change->mac, "The node's own Ethernet address on it")->type_name("ADDRESS");
    command.add_option("--mtu", change->mtu, "Bytes of the longest IP packet")->type_name("BYTES");
    command.add_option("--state", change->state, "Whether it passes packets")
        ->check(CLI::IsMember({"up", "down"}).description(""))
        ->type_name("up|down");
  }
  change->node.add_to(command);
  command.add_flag("--json", change->json, "Print the node's answer, which is JSON");
  command.callback([change, method, &status] { send(*change, method, status); });
}

}  // namespace

void add_port(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "port", "Add, change or remove a port of a running node",
                                 "weir port add web tap:web --label app=web");
  command.require_subcommand(1);
  add_change(command, "add", "Add a port", "weir port add web tap:web --label app=web", "PUT", status);
  add_change(command, "set", "Change a port", "weir port set web --label app=db --state up", "PUT", status);
  add_change(command, "remove", "Remove a port", "weir port remove web", "DELETE", status);
}

}  // namespace weir::cli
