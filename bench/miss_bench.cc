// What a packet of a new flow costs: decided by 1,000 ordered rules and a router, its rule installed, an older one
// evicted; and the rate when every second packet is one.

#include <algorithm>

#include "calibration.h"
#include "measure.h"
#include "workloads.h"
#include <fmt/format.h>

namespace weir::bench {
namespace {

/// Reads addresses and ports, so that no two flows share a rule.
class EachFlow final : public FlowStage {
 public:
  [[nodiscard]] Verdict decide(Flow& flow) const override {
    (void)flow[ip::src];
    (void)flow[ip::dst];
    (void)flow[l4::src_port];
    (void)flow[l4::dst_port];
    return flow.next();
  }
};

Rate run(bool with_hits) {
  NodeOptions options;
  options.idle = Idle::poll;
  options.decision_share.percent = 100;
  auto node = std::move(*Node::create(options));
  // More flows than rules, one after the other: by the time one comes again its rule is long gone.
  const auto fresh = *node->add_port("new", "memory:flows=16777216,order=sequential");
  const auto out = *node->add_port("out", "memory:");
  auto& router = node->graph().add<Router>("router", node->state(), out);
  auto& acl = node->graph().add<Acl>("acl", node->state());
  auto& first = node->graph().add<EachFlow>("each flow");
  (void)node->update([&](Update& update) {
    router.configure(update, 256);
    acl.configure(update, 1000);
  });
  node->graph().connect(first, acl);
  node->graph().connect(acl, router);
  node->graph().connect(fresh, first);
  node->graph().connect(out, first);
  if (with_hits) {
    node->graph().connect(*node->add_port("known", "memory:flows=1024,order=random,src=11.0.0.0"), first);
  }
  if (auto started = node->start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    std::exit(1);
  }
  return measure(*node, out);
}

void print(const char* name, const Rate& rate) {
  fmt::print("{:24} {:>6.2f} {:>8.0f} {:>5.2f} {:>7.4f} {:>7.4f} {:>7.4f} {:>7} {:>5}\n", name, rate.mpps, rate.ns,
             rate.cpu_share, rate.hits, rate.probes, rate.misses, rate.rules, rate.masks);
}

}  // namespace
}  // namespace weir::bench

int main() {
  using namespace weir::bench;
  fmt::print("noise: {:.3f} ns a step; bare forwarding loop, 1,024 flows: {:.1f} ns\n\n", noise_ns(),
             calibrate(1024).forward_ns);
  fmt::print("{:24} {:>6} {:>8} {:>5} {:>7} {:>7} {:>7} {:>7} {:>5}\n", "1,000 rules and a router", "Mpps", "ns/pkt",
             "cpu", "hits", "probes", "misses", "rules", "masks");
  print("every packet misses", run(false));
  print("every second misses", run(true));
}
