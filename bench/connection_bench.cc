// Connection tracking on one worker: packets of established TCP connections, both ways, and connections opened.
//
//   connection_bench [tracked|new|chain]       all without

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "calibration.h"
#include "conversations.h"
#include "measure.h"
#include <fmt/format.h>
#include <unistd.h>

#include <weir/service/firewall/firewall.h>

namespace weir::bench {
namespace {

/// What stands between clients and servers.
enum class Between : std::uint8_t {
  forwarding,  ///< a rule for each flow, without connections
  tracking,    ///< the connections of one zone
  firewall,    ///< the service, with a policy about the clients
};

struct Setup {
  std::unique_ptr<Service> service;  ///< lives longer than the node, whose workers run its stages
  std::unique_ptr<Node> node;
  PortId clients, servers;
};

constexpr std::string_view policy = R"(
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: clients}
spec:
  podSelector: {matchLabels: {app: client}}
  policyTypes: [Ingress, Egress]
  egress:
  - to: [{ipBlock: {cidr: 10.200.0.0/16}}]
    ports: [{protocol: TCP, port: 80}]
)";

[[noreturn]] void fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  std::exit(1);
}

// The service in front of a stage that crosses over, with its delivery side at the clients' port, as chains put it.
void add_firewall(Setup& setup) {
  Node& node = *setup.node;
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const std::string file = fmt::format("weir-bench-{}.yaml", ::getpid());
  std::ofstream(folder / file) << policy;
  const auto settings = Config::parse(fmt::format("policies: [{}]", file), "settings");
  auto service = build_service(node, firewall(), *settings, folder);
  std::filesystem::remove(folder / file);
  if (!service) {
    fail(service.error());
  }
  setup.service = std::move(*service);
  const ServiceStages& stages = setup.service->stages();
  const auto& cross = node.graph().stage("cross", [clients = setup.clients, servers = setup.servers](Flow& flow) {
    return flow.output(flow.ingress() == clients ? servers : clients);
  });
  node.graph().connect(setup.clients, stages.entry);
  node.graph().connect(setup.servers, stages.entry);
  node.graph().connect(*stages.exit, cross);
  const std::uint8_t delivery = node.graph().deliver_at(*stages.delivery);
  const auto done = node.update([&](Update& update) { update.set_delivery(setup.clients, delivery); });
  if (!done) {
    fail(done.error());
  }
}

/// Clients and servers on a port each; the node passes what belongs to their connections.
Setup build(const ConversationOptions& options, Between between) {
  NodeOptions node_options;
  node_options.idle = Idle::poll;
  node_options.workers = 1;
  node_options.rule_cache = options.flows * 2 + 65'536;
  node_options.decision_share = {100};
  auto created = Node::create(node_options);
  if (!created) {
    fail(created.error());
  }
  Setup setup{{}, std::move(*created), {}, {}};
  Node& node = *setup.node;
  auto [client_end, server_end] = Conversations::make(options);
  PortOptions clients;
  clients.labels = {{"app", "client"}};
  PortOptions servers;
  servers.role = PortRole::uplink;
  setup.clients = *node.add_port("clients", std::move(client_end), clients);
  setup.servers = *node.add_port("servers", std::move(server_end), servers);
  if (between == Between::firewall) {
    add_firewall(setup);
  } else {
    const auto& stage = node.graph().stage("track", [tracked = between == Between::tracking, clients = setup.clients,
                                                     servers = setup.servers](Flow& flow) {
      if (!tracked) {
        const auto from = flow[ip::src];
        const auto to = flow[ip::dst];
        (void)flow[l4::src_port];
        (void)flow[l4::dst_port];
        return flow.output(from && to && flow.ingress() == clients ? servers : clients);
      }
      Connection connection = flow.connection();
      if (connection.invalid()) {
        return flow.drop(drop::invalid_connection);
      }
      connection.commit();
      return flow.output(connection.reply() ? clients : servers);
    });
    node.graph().connect(setup.clients, stage);
    node.graph().connect(setup.servers, stage);
  }
  if (auto started = node.start(); !started) {
    fail(started.error());
  }
  return setup;
}

// Both directions: what leaves by either port.
Rate measure_both(Setup& setup, unsigned warm_ms) {
  const OutOfTheWay out_of_the_way;
  const auto sent = [&] {
    const Summary s = setup.node->summary();
    return std::array<std::uint64_t, 4>{
        s.ports[setup.clients.number].out_packets + s.ports[setup.servers.number].out_packets, SystemClock::read(),
        s.workers[0].cpu_ns, s.misses};
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(warm_ms));
  std::array<Rate, 5> rates;
  auto before = sent();
  for (Rate& rate : rates) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    const auto after = sent();
    const auto packets = static_cast<double>(after[0] - before[0]);
    const auto wall = static_cast<double>(after[1] - before[1]);
    const auto cpu = static_cast<double>(after[2] - before[2]);
    rate = {.mpps = packets / wall * 1e3, .ns = cpu / packets, .cpu_share = cpu / wall};
    rate.misses = static_cast<double>(after[3] - before[3]) / packets;
    before = after;
  }
  std::ranges::sort(rates, {}, &Rate::mpps);
  return rates[2];
}

const char* name_of(Between between) {
  return between == Between::forwarding ? "forwarding" : between == Between::tracking ? "tracking" : "firewall";
}

void tracked() {
  fmt::print("established TCP connections, both ways, 64-byte packets, one worker\n\n");
  fmt::print("{:>8} {:12} {:>6} {:>8} {:>5} {:>9} {:>7}\n", "flows", "", "Mpps", "ns/pkt", "cpu", "misses", "drops");
  for (const std::uint32_t flows : {1024U, 100'000U}) {
    for (const Between between : {Between::forwarding, Between::tracking, Between::firewall}) {
      Setup setup = build({.flows = flows}, between);
      const Rate rate = measure_both(setup, 600 + flows / 100);
      std::uint64_t drops = 0;
      for (const auto& drop : setup.node->summary().drops) {
        drops += drop.packets;
      }
      fmt::print("{:>8} {:12} {:>6.1f} {:>8.1f} {:>5.2f} {:>9.6f} {:>7}\n", flows, name_of(between), rate.mpps, rate.ns,
                 rate.cpu_share, rate.misses, drops);
    }
  }
}

void fresh() {
  fmt::print("\nconnections opened and reset (SYN, SYN and ACK, ACK, RST), one worker\n\n");
  for (const Between between : {Between::tracking, Between::firewall}) {
    Setup setup = build({.churn = true}, between);
    const Rate rate = measure_both(setup, 1000);
    fmt::print("{:12} {:.0f} connections per second ({:.2f} Mpps, {:.0f} ns a packet, cpu {:.2f}); {} there now\n",
               name_of(between), rate.mpps * 1e6 / 4, rate.mpps, rate.ns, rate.cpu_share,
               setup.node->state().connections().size());
  }
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  fmt::print("noise: {:.3f} ns a step\n\n", weir::bench::noise_ns());
  if (only == nullptr || std::strcmp(only, "tracked") == 0) {
    weir::bench::tracked();
  }
  if (only == nullptr || std::strcmp(only, "new") == 0) {
    weir::bench::fresh();
  }
  fmt::print("\nnoise: {:.3f} ns a step\n", weir::bench::noise_ns());
}
