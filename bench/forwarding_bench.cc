// Packets per second through one worker (and two), on rule hits: generator, graph and sink on the same core.
//
//   forwarding_bench [WORKLOAD]      router, acl, encapsulate, per-flow, port-only or scale; all without

#include <cstring>

#include "calibration.h"
#include "measure.h"
#include "workloads.h"
#include <fmt/format.h>

namespace weir::bench {
namespace {

enum class Workload : std::uint8_t { router, acl, encapsulate, per_flow, port_only };

struct Setup {
  std::unique_ptr<Node> node;
  PortId out;
};

Setup build(Workload workload, const std::string& generator, unsigned workers) {
  NodeOptions options;
  options.idle = Idle::poll;
  options.workers = workers;
  auto created = Node::create(options);
  if (!created) {
    fmt::print(stderr, "{}\n", created.error().message);
    std::exit(1);
  }
  Setup setup{std::move(*created), {}};
  Node& node = *setup.node;
  const auto in = node.add_port("in", generator);
  const auto out = node.add_port("out", "memory:");
  if (!in || !out) {
    fmt::print(stderr, "{}\n", (in ? out : in).error().message);
    std::exit(1);
  }
  setup.out = *out;
  Graph& graph = node.graph();
  const FlowStage* first = nullptr;
  (void)node.update([&](Update& update) {
    if (workload == Workload::router || workload == Workload::acl) {
      auto& router = graph.add<Router>("router", node.state(), *out);
      router.configure(update, 256);
      first = &router;
    }
    if (workload == Workload::acl) {
      auto& acl = graph.add<Acl>("acl", node.state());
      acl.configure(update, 1000);
      graph.connect(acl, *first);
      first = &acl;
    }
  });
  if (workload == Workload::encapsulate) {
    first = &graph.add<Encapsulator>("encapsulate", *out);
  } else if (workload == Workload::per_flow) {
    first = &graph.add<PerFlow>("per-flow", *out);
  } else if (workload == Workload::port_only) {
    first = &graph.stage("port-only", [to = *out](Flow& flow) { return flow.output(to); });
  }
  graph.connect(*in, *first);
  graph.connect(*out, *first);
  if (auto started = node.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    std::exit(1);
  }
  return setup;
}

Rate run(Workload workload, unsigned flows, const char* order, unsigned workers) {
  Setup setup = build(workload, fmt::format("memory:flows={},order={}", flows, order), workers);
  return measure(*setup.node, setup.out);
}

void table(const char* only) {
  fmt::print("64-byte packets, one worker; 'x floor' compares with a bare loop that forwards (or encapsulates)\n\n");
  fmt::print("{:12} {:>6} {:8} {:>6} {:>8} {:>8} {:>5} {:>7} {:>7} {:>9} {:>7} {:>5}\n", "workload", "flows", "order",
             "Mpps", "ns/pkt", "x floor", "cpu", "hits", "probes", "misses", "rules", "masks");
  struct Line {
    Workload workload;
    const char* name;
  };
  static constexpr Line lines[] = {{Workload::router, "router"},
                                   {Workload::acl, "acl"},
                                   {Workload::encapsulate, "encapsulate"},
                                   {Workload::per_flow, "per-flow"},
                                   {Workload::port_only, "port-only"}};
  for (const unsigned flows : {1024U, 65'536U}) {
    const Calibration floor = calibrate(flows);
    for (const Line& line : lines) {
      if (only != nullptr && std::strcmp(only, line.name) != 0) {
        continue;
      }
      for (const char* order : {"random", "zipf"}) {
        const Rate rate = run(line.workload, flows, order, 1);
        const double base = line.workload == Workload::encapsulate ? floor.encapsulate_ns : floor.forward_ns;
        fmt::print("{:12} {:>6} {:8} {:>6.1f} {:>8.1f} {:>8.2f} {:>5.2f} {:>7.4f} {:>7.4f} {:>9.6f} {:>7} {:>5}\n",
                   line.name, flows, order, rate.mpps, rate.ns, rate.ns / base, rate.cpu_share, rate.hits, rate.probes,
                   rate.misses, rate.rules, rate.masks);
      }
    }
    fmt::print("{:12} {:>6} {:8} {:>6} {:>8.1f} {:>8} (encapsulating: {:.1f} ns)\n", "bare loop", flows, "random", "",
               floor.forward_ns, "1.00", floor.encapsulate_ns);
  }
}

// Two workers against one, alternating.
void scale() {
  fmt::print("\nrouter, 1,024 flows, random order: two workers against one, five times in turn\n\n");
  std::vector<double> ratios;
  for (int i = 0; i < 5; ++i) {
    const Rate one = run(Workload::router, 1024, "random", 1);
    const Rate two = run(Workload::router, 1024, "random", 2);
    ratios.push_back(two.mpps / one.mpps);
    fmt::print("  one {:.1f} Mpps (cpu {:.2f}), two {:.1f} Mpps (cpu {:.2f} each): x {:.2f}; bare loop x {:.2f}\n",
               one.mpps, one.cpu_share, two.mpps, two.cpu_share, ratios.back(), scale_of_two_cores());
  }
  std::ranges::sort(ratios);
  fmt::print("  median x {:.2f}\n", ratios[2]);
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : nullptr;
  fmt::print("noise: {:.3f} ns a step (the same number before and after means a quiet machine)\n",
             weir::bench::noise_ns());
  if (only == nullptr || std::strcmp(only, "scale") != 0) {
    weir::bench::table(only);
  }
  if (only == nullptr || std::strcmp(only, "scale") == 0) {
    weir::bench::scale();
  }
  fmt::print("noise: {:.3f} ns a step\n", weir::bench::noise_ns());
}
