// Invariant I8: one port floods with random headers, every packet a miss that asks for another mask; what becomes of
// another port's 10,000 steady flows?

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "measure.h"
#include "workloads.h"
#include <fmt/format.h>

#include <weir/base/random.h>

namespace weir::bench {
namespace {

/// Consults a different set of bits for almost every packet that is random.
class MaskMultiplier final : public FlowStage {
 public:
  MaskMultiplier(State& state, Update& update) : prefixes_(state.prefixes<NextHops>("many")) {
    Random random(7);
    for (int i = 0; i < 4096; ++i) {
      std::array<std::uint8_t, 4> bytes{};
      for (auto& byte : bytes) {
        byte = static_cast<std::uint8_t>(random());
      }
      update.set(prefixes_, IpPrefix(Ipv4Address{bytes}, 4 + random.below(29)), {});
    }
  }
  [[nodiscard]] Verdict decide(Flow& flow) const override {
    (void)flow.lookup(prefixes_, ip::dst);
    (void)flow.lookup(prefixes_, ip::src);
    (void)flow.test(l4::dst_port, below(1000));
    (void)flow.test(l4::src_port, below(40'000));
    if (flow.test(ip::protocol, below(6))) {
      (void)flow[ip::dscp];
    }
    return flow.next();
  }

 private:
  Prefixes<NextHops>& prefixes_;
};

struct Seen {
  double mpps;
  std::uint64_t lost;
  std::uint64_t waited_us;
  Summary summary;
};

// How long the worker was ready to run and did not: other tasks had its processor (the thread's schedstat), or the
// hypervisor (steal, in ticks of 10 ms).
std::uint64_t waited_us() {
  std::uint64_t waited = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "weir-0") {
      std::uint64_t ran = 0;
      std::uint64_t delay = 0;
      std::ifstream(task.path() / "schedstat") >> ran >> delay;
      waited += delay / 1000;
    }
  }
  return waited;
}

PortId port(Node& node, const char* name, const std::string& device) {
  const auto added = node.add_port(name, device);
  if (!added) {
    fmt::print(stderr, "{}\n", added.error().message);
    std::exit(1);
  }
  return *added;
}

Seen run(const std::string& steady_rate, bool flood) {
  NodeOptions options;
  options.idle = Idle::poll;
  auto node = std::move(*Node::create(options));
  const auto steady = port(*node, "steady", "memory:flows=10000,order=random" + steady_rate);
  const auto out = port(*node, "out", "memory:");
  const auto sink = port(*node, "flood-sink", "memory:");
  Graph& graph = node->graph();
  auto& router = graph.add<Router>("router", node->state(), out);
  MaskMultiplier* multiplier = nullptr;
  (void)node->update([&](Update& update) {
    router.configure(update, 256);
    multiplier = &graph.add<MaskMultiplier>("multiplier", node->state(), update);
  });
  const auto& away = graph.stage("away", [sink](Flow& flow) {
    return flow.has(layers::ipv4) && flow.test(l4::dst_port, below(1)) ? flow.flood() : flow.output(sink);
  });
  auto& per_flow = graph.add<PerFlow>("per-flow", out);
  graph.connect(steady, per_flow);
  graph.connect(out, per_flow);
  graph.connect(sink, per_flow);
  graph.connect(per_flow, router);
  graph.connect(*multiplier, away);
  if (flood) {
    graph.connect(port(*node, "flood", "memory:headers=random,rate=10000000,queue=1024"), *multiplier);
  }
  if (auto started = node->start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    std::exit(1);
  }
  const OutOfTheWay out_of_the_way;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Port& port = node->port(steady);
  const auto lost = [&port] { return port.device->counters().lost; };
  const std::uint64_t packets_before = port.sum(&PortCounters::in_packets);
  const std::uint64_t lost_before = lost();
  const std::uint64_t waited_before = waited_us();
  const Nanoseconds from = SystemClock::read();
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  const std::uint64_t packets_after = port.sum(&PortCounters::in_packets);
  const std::uint64_t lost_after = lost();
  const auto wall = static_cast<double>(SystemClock::read() - from);
  return {static_cast<double>(packets_after - packets_before) / wall * 1e3, lost_after - lost_before,
          waited_us() - waited_before, node->summary()};
}

std::uint64_t dropped(const Summary& summary, std::string_view reason) {
  for (const auto& line : summary.drops) {
    if (line.reason == reason) {
      return line.packets;
    }
  }
  return 0;
}

void print(const char* name, const Seen& seen, double base) {
  const bool flood = seen.summary.ports.size() > 3;
  fmt::print("{:34} {:>7.2f} {:>6.2f} {:>9} {:>9} {:>11} {:>11} {:>11} {:>6}\n", name, seen.mpps, seen.mpps / base,
             seen.lost, seen.waited_us, flood ? seen.summary.ports[3].in_packets : 0,
             flood ? seen.summary.ports[3].lost : 0, dropped(seen.summary, "decision_budget"), seen.summary.masks);
}

}  // namespace
}  // namespace weir::bench

int main() {
  using namespace weir::bench;
  fmt::print("noise: {:.3f} ns a step\n\n", noise_ns());
  fmt::print("{:34} {:>7} {:>6} {:>9} {:>9} {:>11} {:>11} {:>11} {:>6}\n", "steady port, 10,000 flows", "Mpps", "share",
             "lost", "waited us", "flood taken", "flood lost", "over budget", "masks");
  std::vector<double> maxima;
  for (int i = 0; i < 3; ++i) {
    const Seen alone = run("", false);
    maxima.push_back(alone.mpps);
    print("at its maximum, alone", alone, alone.mpps);
    print("at its maximum, with the flood", run("", true), alone.mpps);
  }
  std::ranges::sort(maxima);
  // A pause of the machine of 1,024 packets or more loses some with and without the flood: many runs, in turn.
  const std::string half = fmt::format(",queue=1024,rate={:.0f}", maxima[1] / 2 * 1e6);
  std::array<std::vector<std::uint64_t>, 2> lost;
  for (int i = 0; i < 10; ++i) {
    const Seen alone = run(half, false);
    const Seen flooded = run(half, true);
    print("at half its maximum, alone", alone, alone.mpps);
    print("at half its maximum, with the flood", flooded, alone.mpps);
    lost[0].push_back(alone.lost);
    lost[1].push_back(flooded.lost);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    std::ranges::sort(lost[i]);
    fmt::print("lost at half, {:17} least {:>6}, median {:>6}, most {:>6} of {:.0f} million\n",
               i == 0 ? "alone:" : "with the flood:", lost[i].front(), (lost[i][4] + lost[i][5]) / 2, lost[i].back(),
               maxima[1]);
  }
  fmt::print("noise: {:.3f} ns a step\n", noise_ns());
}
