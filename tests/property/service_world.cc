#include <array>
#include <fstream>

#include "service_world.h"
#include <fmt/ranges.h>

#include <weir/device/memory.h>
#include <weir/service/firewall/firewall.h>
#include <weir/service/nat/nat.h>
#include <weir/service/vswitch/vswitch.h>

namespace weir::property {

namespace {

const ServiceRegistry& kinds() {
  static const ServiceRegistry all = [] {
    ServiceRegistry registry;
    registry.add(firewall());
    registry.add(nat());
    registry.add(vswitch());
    return registry;
  }();
  return all;
}

constexpr std::array<const char*, policies> policy_files{
    R"({apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n0, namespace: x}, spec: {podSelector: {}}})",
    R"({apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n1, namespace: x}, spec: {podSelector:
       {matchLabels: {pod: a}}, ingress: [{from: [{podSelector: {matchLabels: {pod: b}}}], ports: [{port: 80}]}]}})",
    R"({apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n2, namespace: y}, spec: {podSelector: {},
       policyTypes: [Ingress, Egress], ingress: [{from: [{namespaceSelector: {}}]}], egress: [{to: [{ipBlock: {cidr:
       10.0.0.0/24, except: [10.0.0.2/32]}}]}]}})",
    R"({apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n3, namespace: x}, spec: {podSelector: {},
       policyTypes: [Egress], egress: [{ports: [{protocol: UDP, port: 53}, {protocol: TCP, port: 1, endPort: 100}]}]}})",
    R"({apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: n4, namespace: y}, spec: {podSelector:
       {matchLabels: {pod: a}}, ingress: [{ports: [{protocol: TCP, port: web}]}]}})",
    R"({apiVersion: policy.networking.k8s.io/v1alpha1, kind: AdminNetworkPolicy, metadata: {name: a5}, spec: {priority: 5,
       subject: {namespaces: {}}, ingress: [{action: Deny, from: [{pods: {namespaceSelector: {}, podSelector:
       {matchLabels: {pod: c}}}}]}]}})",
    R"({apiVersion: policy.networking.k8s.io/v1alpha1, kind: AdminNetworkPolicy, metadata: {name: a6}, spec: {priority: 6,
       subject: {namespaces: {}}, ingress: [{action: Allow, from: [{namespaces: {}}], ports: [{portNumber: {protocol:
       TCP, port: 80}}]}]}})",
    R"({apiVersion: policy.networking.k8s.io/v1alpha1, kind: BaselineAdminNetworkPolicy, metadata: {name: default}, spec:
       {subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {}}]}]}})"};
constexpr std::array<const char*, policies> policy_names{
    "NetworkPolicy x/n0", "NetworkPolicy x/n1",    "NetworkPolicy y/n2",    "NetworkPolicy x/n3",
    "NetworkPolicy y/n4", "AdminNetworkPolicy a5", "AdminNetworkPolicy a6", "BaselineAdminNetworkPolicy default"};

}  // namespace

Settings Settings::random(Random& random) {
  const auto usual = [&] { return !random.one_in(4); };
  return {.second_vtep = usual(),
          .suppress = usual(),
          .flood_unknown = usual(),
          .second_gateway = usual(),
          .bindings = !usual(),
          .few_macs = !usual(),
          .nat = random.one_in(2),
          .firewall = usual(),
          .check_sources = random.one_in(2),
          .masquerade = usual(),
          .labels = random.one_in(2),
          .fourth_port = static_cast<std::uint8_t>(random.below(3))};
}

std::string Settings::node_file() const {
  const char* first = fourth_port == 0 ? "p1, p2, p3, p4" : "p1, p2, p3";
  const char* second = fourth_port == 1 ? "p4, p5" : "p5";
  const char* trunks = fourth_port == 2 ? "trunks: [p4], " : "";
  std::string text =
      "weir: 1\nseed: 7\nclock: capture\ndecision_budget: unlimited\nframes: 4096\nconnections: {limit: 64}\n";
  text += "ports:\n";
  for (const char* port : {"p1", "p2", "p3", "p4", "p5"}) {
    text += fmt::format("  {}: {{device: 'memory:record=4096', labels: {{side: {}}}}}\n", port,
                        port[1] <= '3' ? "left" : "right");
  }
  text += fmt::format(
      "  up: {{device: 'memory:record=4096', role: uplink, addresses: [192.0.2.1/24], mac: '{}'}}\n"
      "  g1: {{device: gateway, mac: '{}', addresses: [10.0.0.254/24, '2001:db8::fe/64']}}\n"
      "  g2: {{device: gateway, mac: '{}', addresses: [10.0.1.254/24, '2001:db8:1::fe/64']}}\n",
      uplink_mac, gateway_mac, gateway_mac);
  text +=
      fmt::format("services:\n  nat: {{{}forward: [{{address: 10.0.1.9, protocol: tcp, port: 80, to: 10.0.1.1}}]}}\n",
                  masquerade ? "masquerade: [{from: 10.0.0.0/24, to: 203.0.113.1, except: [10.0.0.0/24], ports: "
                               "1024-1027}], "
                             : "");
  text += fmt::format("  firewall: {{endpoints: endpoints.yaml, check_sources: {}}}\n", check_sources);
  text += fmt::format(
      "  vswitch:\n    macs_per_port: {}\n    aging: 60\n    networks:\n"
      "      100: {{vlan: 5, ports: [{}], {}vteps: [192.0.2.2{}], gateway: g1, suppress: {}, unknown: {}{}}}\n"
      "      200: {{vlan: 6, ports: [{}], {}vteps: [192.0.2.2]{}}}\n",
      few_macs ? 2 : 64, first, trunks, second_vtep ? ", 192.0.2.3" : "", suppress, flood_unknown ? "flood" : "drop",
      bindings ? ", macs: {'02:00:00:00:00:01': p1, '02:00:00:00:00:05': 192.0.2.2}, bindings: {10.0.0.2: "
                 "'02:00:00:00:00:02', '2001:db8::5': '02:00:00:00:00:05'}"
               : "",
      second, trunks, second_gateway ? ", gateway: g2" : "");
  text += fmt::format(
      "    vrfs: {{default: {{vni: 5000, routes: {{10.9.0.0/16: {{vtep: 192.0.2.2, mac: '{}'}}, 203.0.113.64/26: "
      "blackhole}}}}}}\n",
      their_router);
  text += fmt::format("chains:\n  - {{name: left, selector: {{side: left}}, services: [{}{}vswitch]}}\n",
                      nat ? "nat, " : "", firewall ? "firewall, " : "");
  text += fmt::format("  - {{name: right, selector: {{side: right}}, services: [{}vswitch]}}\n",
                      firewall ? "firewall, " : "");
  text += "  - {name: rest, selector: {}, services: [vswitch]}\n";
  return text;
}

std::string Settings::endpoints() const {
  return fmt::format(
      "weir_endpoints: 1\nnamespaces: {{x: {{ns: x}}, y: {{ns: y}}}}\nendpoints:\n"
      "  x/a: {{port: p1, labels: {{pod: a}}, addresses: [10.0.0.1, '2001:db8::1'], ports: {{web: 80}}}}\n"
      "  x/b: {{port: p2, labels: {{pod: {}}}, addresses: [10.0.0.2, '2001:db8::2']}}\n"
      "  x/c: {{port: p3, labels: {{pod: c}}, addresses: [10.0.0.3, '2001:db8::3']}}\n"
      "  y/a: {{port: p4, labels: {{pod: a}}, addresses: [10.0.1.1, '2001:db8:1::1'], ports: {{web: 80}}}}\n"
      "  y/b: {{port: p5, labels: {{pod: b}}, addresses: [10.0.1.2, '2001:db8:1::2']}}\n"
      "  y/far: {{labels: {{pod: c}}, addresses: [10.0.0.5]}}\n",
      labels ? "b" : "d");
}

std::string Event::to_string() const {
  switch (kind) {
    case Kind::packet:
      return fmt::format("at {} ms, in by {}: {:02x}", at / 1'000'000, port_names[number], fmt::join(bytes, ""));
    case Kind::settings:
      return fmt::format("another file:\n{}", settings.node_file());
    case Kind::apply_policy:
      return fmt::format("applied: {}", policy_names[number]);
    case Kind::delete_policy:
      return fmt::format("deleted: {}", policy_names[number]);
    case Kind::link:
      return fmt::format("{} goes {}", port_names[number], up ? "up" : "down");
    case Kind::tend:
      return "a millisecond passes";
  }
  return {};
}

std::string difference(const Seen& a, const Seen& b) {
  std::string text;
  const auto numbers = [&](const char* what, const auto& left, const auto& right) {
    for (const auto& [name, value] : left) {
      const auto other = right.find(name);
      if (other == right.end() || other->second != value) {
        text += fmt::format("  {} {}: {} and {}\n", what, name, value, other == right.end() ? 0 : other->second);
      }
    }
    for (const auto& [name, value] : right) {
      if (!left.contains(name)) {
        text += fmt::format("  {} {}: none and {}\n", what, name, value);
      }
    }
  };
  for (const auto& [port, frames] : a.sent) {
    const auto& others = b.sent.at(port);
    for (std::size_t i = 0; i < std::max(frames.size(), others.size()); ++i) {
      if (i >= frames.size() || i >= others.size() || frames[i] != others[i]) {
        text += fmt::format("  {} of {} and {} out by {}:\n    {:02x}\n    {:02x}\n", i, frames.size(), others.size(),
                            port, fmt::join(i < frames.size() ? frames[i] : Bytes(), ""),
                            fmt::join(i < others.size() ? others[i] : Bytes(), ""));
        break;
      }
    }
  }
  numbers("dropped", a.drops, b.drops);
  numbers("number of", a.numbers, b.numbers);
  return text;
}

ServiceNode::ServiceNode(NodeKind kind, const Settings& settings, const std::filesystem::path& folder)
    : folder_(folder) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ / "endpoints.yaml") << settings.endpoints();
  for (unsigned i = 0; i < policies; ++i) {
    std::ofstream(folder_ / fmt::format("policy{}.yaml", i)) << policy_files[i] << "\n";
  }
  const auto file = NodeFile::parse(settings.node_file(), "node.yaml", folder_, kinds());
  if (!file) {
    throw std::runtime_error(file.error().message);
  }
  NodeOverrides overrides{.no_rule_cache = kind == NodeKind::uncached};
  if (kind == NodeKind::reference) {
    overrides.engine = EngineKind::reference;
  }
  auto made = ManagedNode::build(*file, LoadMode::run, overrides);
  if (!made) {
    throw std::runtime_error(made.error().message);
  }
  managed_ = std::move(*made);
  if (const auto prepared = managed_->node().prepare(); !prepared) {
    throw std::runtime_error(prepared.error().message);
  }
}

void ServiceNode::run() {
  // Rounds that handle nothing do what waits: the host's turn, then what it sent by a gateway.
  for (unsigned idle = 0; idle < 3;) {
    idle = managed_->node().poll_once() == 0 ? idle + 1 : 0;
  }
}

std::string ServiceNode::call(const std::string& name, const Json& arguments) {
  std::string wrong;
  managed_->for_each_service([&](const std::string& service, Service& each) {
    if (service == "firewall") {
      if (const auto done = each.call(name, arguments); !done) {
        wrong = done.error().message;
      }
    }
  });
  return wrong;
}

std::string ServiceNode::happen(const Event& event) {
  Node& node = managed_->node();
  switch (event.kind) {
    case Event::Kind::packet: {
      const PortId port = *node.find_port(port_names[event.number]);
      dynamic_cast<MemoryDevice&>(*node.port(port).device).inject(event.bytes, 0, event.at);
      break;
    }
    case Event::Kind::settings: {
      std::ofstream(folder_ / "endpoints.yaml") << event.settings.endpoints();
      const auto file = NodeFile::parse(event.settings.node_file(), "node.yaml", folder_, kinds());
      if (!file) {
        return file.error().message;
      }
      if (const auto applied = managed_->apply(*file); !applied) {
        return applied.error().message;
      }
      break;
    }
    case Event::Kind::apply_policy:
      if (auto wrong = call("apply", {{"files", {folder_ / fmt::format("policy{}.yaml", event.number)}}});
          !wrong.empty()) {
        return wrong;
      }
      break;
    case Event::Kind::delete_policy:
      call("delete", {{"name", policy_names[event.number]}});  // it may not be there
      break;
    case Event::Kind::link:
      if (const auto set = node.set_port_up(*node.find_port(port_names[event.number]), event.up); !set) {
        return set.error().message;
      }
      break;
    case Event::Kind::tend:
      managed_->for_each_service([](const std::string& /*name*/, Service& service) { service.tend(); });
      break;
  }
  run();
  return {};
}

Seen ServiceNode::look() {
  Node& node = managed_->node();
  Seen seen;
  for (const char* name : port_names) {
    const auto& device = dynamic_cast<MemoryDevice&>(*node.port(*node.find_port(name)).device);
    const auto all = device.recorded();
    std::size_t& from = looked_at_[name];
    seen.sent[name].assign(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
    from = all.size();
  }
  const Summary summary = node.summary();
  std::uint64_t dropped = 0;
  for (const auto& drop : summary.drops) {
    seen.drops[drop.reason] = drop.packets;
    dropped += drop.packets;
  }
  for (const auto& counter : summary.counters) {
    seen.numbers[counter.name] = counter.packets;
  }
  for (const auto& table : summary.tables) {
    seen.numbers["entries of " + table.name] = table.size;
  }
  seen.numbers["originated"] = summary.originated;
  seen.numbers["cloned"] = summary.cloned;
  seen.numbers["consumed"] = summary.consumed;
  seen.numbers["held"] = summary.held;
  seen.numbers["not accounted for (I4)"] = summary.in_packets() + summary.cloned + summary.originated -
                                           summary.out_packets() - dropped - summary.consumed - summary.held;
  std::uint64_t connections = 0;
  node.state().connections().for_each([&](const Connections::View&) { ++connections; });
  seen.numbers["connections"] = connections;
  return seen;
}

}  // namespace weir::property
