// Connection tracking on one worker: packets of established TCP connections, both ways, and connections opened.
//
//   connection_bench [tracked|new]       all without

#include <array>
#include <cstring>
#include <thread>

#include "calibration.h"
#include "conversations.h"
#include "measure.h"
#include <fmt/format.h>

namespace weir::bench {
namespace {

constexpr DropReason invalid{"invalid_connection", "belongs to no connection"};

struct Setup {
  std::unique_ptr<Node> node;
  PortId clients, servers;
};

/// Clients and servers on a port each; the node passes what belongs to their connections.
Setup build(const ConversationOptions& options, bool tracked) {
  NodeOptions node_options;
  node_options.idle = Idle::poll;
  node_options.workers = 1;
  node_options.rule_cache = options.flows * 2 + 65'536;
  node_options.decision_share = {100};
  auto created = Node::create(node_options);
  if (!created) {
    fmt::print(stderr, "{}\n", created.error().message);
    std::exit(1);
  }
  Setup setup{std::move(*created), {}, {}};
  Node& node = *setup.node;
  auto [client_end, server_end] = Conversations::make(options);
  setup.clients = *node.add_port("clients", std::move(client_end));
  setup.servers = *node.add_port("servers", std::move(server_end));
  const auto& stage =
      node.graph().stage("track", [tracked, clients = setup.clients, servers = setup.servers](Flow& flow) {
        if (!tracked) {
          const auto from = flow[ip::src];
          const auto to = flow[ip::dst];
          (void)flow[l4::src_port];
          (void)flow[l4::dst_port];
          return flow.output(from && to && flow.ingress() == clients ? servers : clients);
        }
        Connection connection = flow.connection();
        if (connection.invalid()) {
          return flow.drop(invalid);
        }
        connection.commit();
        return flow.output(connection.reply() ? clients : servers);
      });
  node.graph().connect(setup.clients, stage);
  node.graph().connect(setup.servers, stage);
  if (auto started = node.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    std::exit(1);
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

void tracked() {
  fmt::print("established TCP connections, both ways, 64-byte packets, one worker\n\n");
  fmt::print("{:>8} {:12} {:>6} {:>8} {:>5} {:>9} {:>7}\n", "flows", "", "Mpps", "ns/pkt", "cpu", "misses", "drops");
  for (const std::uint32_t flows : {1024U, 100'000U}) {
    for (const bool track : {false, true}) {
      Setup setup = build({.flows = flows}, track);
      const Rate rate = measure_both(setup, 600 + flows / 100);
      std::uint64_t drops = 0;
      for (const auto& drop : setup.node->summary().drops) {
        drops += drop.packets;
      }
      fmt::print("{:>8} {:12} {:>6.1f} {:>8.1f} {:>5.2f} {:>9.6f} {:>7}\n", flows, track ? "tracked" : "untracked",
                 rate.mpps, rate.ns, rate.cpu_share, rate.misses, drops);
    }
  }
}

void fresh() {
  fmt::print("\nconnections opened and reset (SYN, SYN and ACK, ACK, RST), one worker\n\n");
  Setup setup = build({.churn = true}, true);
  const Rate rate = measure_both(setup, 1000);
  fmt::print("{:.0f} connections per second ({:.2f} Mpps, {:.0f} ns a packet, cpu {:.2f}); {} there now\n",
             rate.mpps * 1e6 / 4, rate.mpps, rate.ns, rate.cpu_share, setup.node->state().connections().size());
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
