// A program outside of Weir's tree, built against an installed copy: a stage of its own, run on generated packets.

#include <cstdio>

#include <weir/weir.h>

namespace {

/// Lets TCP to low ports pass, and learns who talks.
class LowPorts final : public weir::FlowStage {
 public:
  LowPorts(weir::Table<weir::MacAddress, weir::PortId>& hosts, weir::PortId out) : hosts_(hosts), out_(out) {}

  weir::Verdict decide(weir::Flow& flow) const override {
    static constexpr weir::DropReason high_port{"high_port", "its destination port is not below 1024"};
    flow.learn(hosts_, *flow[weir::eth::src], flow.ingress());
    return flow.test(weir::l4::dst_port, weir::below(1024)) ? flow.output(out_) : flow.drop(high_port);
  }

 private:
  weir::Table<weir::MacAddress, weir::PortId>& hosts_;
  weir::PortId out_;
};

}  // namespace

int main() {
  auto created = weir::Node::create({.frames = 1024, .pin = false});
  if (!created) {
    return 1;
  }
  weir::Node& node = **created;
  const auto low = node.add_port("low", "memory:flows=8,count=1000,dst_port=80");
  const auto high = node.add_port("high", "memory:flows=8,count=500,dst_port=8080");
  const auto out = node.add_port("out", "memory:");
  if (!low || !high || !out) {
    return 1;
  }
  auto& hosts = node.state().table<weir::MacAddress, weir::PortId>("hosts");
  const auto& stage = node.graph().add<LowPorts>("low_ports", hosts, *out);
  for (const weir::PortId port : {*low, *high, *out}) {
    node.graph().connect(port, stage);
  }
  if (const auto ran = node.run(); !ran) {
    std::fprintf(stderr, "%s\n", ran.error().message.c_str());
    return 1;
  }
  const weir::Summary summary = node.summary();
  if (summary.ports[2].out_packets != 1000 || summary.dropped() != 500 || hosts.size() != 1) {
    std::fprintf(stderr, "%lu packets out, %lu dropped\n", summary.ports[2].out_packets, summary.dropped());
    return 1;
  }
  std::puts("built against the installed copy, and running: 1000 packets out, 500 dropped");
}
