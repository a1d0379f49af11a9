// How long a control update takes, barrier included, while 65,536 rules are cached and the worker runs at half its
// rate; and how many rules it makes the runtime decide again.

#include <algorithm>
#include <chrono>
#include <thread>

#include "measure.h"
#include "workloads.h"
#include <fmt/format.h>

namespace weir::bench {
namespace {

constexpr unsigned flows = 65'536;
constexpr int updates = 1000;

/// A station per last byte of the destination: 256 of them, each behind 256 flows.
class Stations final : public FlowStage {
 public:
  explicit Stations(State& state) : stations_(state.table<StationKey, PortId>("stations")) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override {
    const Maybe<IpAddress> dst = flow[ip::dst];
    (void)flow[l4::src_port];
    return flow.lookup(stations_, key(dst ? dst->bytes[3] : 0)) != nullptr ? flow.next() : flow.flood();
  }
  static StationKey key(std::uint8_t last) { return {{}, MacAddress{{2, 0, 0, 0, 2, last}}}; }
  [[nodiscard]] Table<StationKey, PortId>& table() { return stations_; }

 private:
  Table<StationKey, PortId>& stations_;
};

struct Bench {
  explicit Bench(const std::string& generator) {
    NodeOptions options;
    options.idle = Idle::poll;
    node = std::move(*Node::create(options));
    const auto in = *node->add_port("in", generator);
    out = *node->add_port("out", "memory:");
    router = &node->graph().add<Router>("router", node->state(), out);
    stations = &node->graph().add<Stations>("stations", node->state());
    acl = &node->graph().add<Acl>("acl", node->state());
    (void)node->update([&](Update& update) {
      router->configure(update, 256);
      acl->configure(update, 1000);
      for (unsigned i = 0; i < 256; ++i) {
        update.set(stations->table(), Stations::key(static_cast<std::uint8_t>(i)), out);
      }
    });
    node->graph().connect(in, *acl);
    node->graph().connect(out, *acl);
    node->graph().connect(*acl, *stations);
    node->graph().connect(*stations, *router);
    (void)node->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  }
  std::unique_ptr<Node> node;
  PortId out;
  Router* router = nullptr;
  Stations* stations = nullptr;
  Acl* acl = nullptr;
};

template <class Change>
void run(Bench& bench, const char* name, Change change) {
  const OutOfTheWay out_of_the_way;
  std::vector<double> took;
  std::vector<double> cleared;
  std::vector<double> barrier;
  for (int i = 0; i < updates; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the rules cleared before are back
    const Nanoseconds before = SystemClock::read();
    const auto report = bench.node->update([&](Update& update) { change(update, i); });
    took.push_back(static_cast<double>(SystemClock::read() - before) * 1e-3);
    cleared.push_back(static_cast<double>(report->rules_cleared));
    barrier.push_back(static_cast<double>(report->barrier) * 1e-3);
  }
  std::ranges::sort(took);
  std::ranges::sort(cleared);
  std::ranges::sort(barrier);
  fmt::print("{:18} {:>9.1f} {:>9.1f} {:>10.1f} {:>12.0f} {:>12.0f} {:>9}\n", name, took[updates / 2],
             took[updates * 99 / 100], barrier[updates / 2], cleared[updates / 2], cleared.back(),
             bench.node->summary().rules);
}

}  // namespace
}  // namespace weir::bench

int main() {
  using namespace weir;
  using namespace weir::bench;
  fmt::print("noise: {:.3f} ns a step\n", noise_ns());
  double mpps = 0;
  {
    Bench full(fmt::format("memory:flows={},order=random", flows));
    mpps = measure(*full.node, full.out).mpps;
  }
  Bench bench(fmt::format("memory:flows={},order=random,rate={:.0f}", flows, mpps / 2 * 1e6));
  const Rate half = measure(*bench.node, bench.out);
  fmt::print("{} flows, full rate {:.1f} Mpps, now {:.1f} Mpps; {} rules cached\n\n", flows, mpps, half.mpps,
             half.rules);
  fmt::print("{:18} {:>9} {:>9} {:>10} {:>12} {:>12} {:>9}\n", "one update", "median us", "p99 us", "barrier us",
             "rules median", "rules most", "cached");
  run(bench, "MAC", [&](Update& update, int i) {
    update.set(bench.stations->table(), Stations::key(static_cast<std::uint8_t>(i)), bench.out);
  });
  run(bench, "policy entry", [&](Update& update, int i) {
    const IpPrefix prefix(Ipv4Address{{10, 1, static_cast<std::uint8_t>(i), 0}}, 24);
    update.set(bench.acl->rules(), 500, Match().with(ip::dst, prefix).with(layers::udp), i % 2 == 0);
  });
  run(bench, "route", [&](Update& update, int i) {
    const IpPrefix prefix(Ipv4Address{{10, 1, static_cast<std::uint8_t>(i), 0}}, 24);
    update.set(bench.router->routes(), prefix,
               {bench.router->group().id(), static_cast<std::uint16_t>(1400 + i % 100)});
  });
  const Summary after = bench.node->summary();
  fmt::print("\nlost at the receiving port meanwhile: {}; noise: {:.3f} ns a step\n", after.ports[0].lost, noise_ns());
}
