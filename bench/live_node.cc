// A node on one interface that takes every frame and drops it, or sends it back with its addresses swapped, until its
// input ends; then prints how many it took. One of the contenders of bench/live.
//
//   live_node INTERFACE receive|macswap

#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include <weir/weir.h>

int main(int count, char** arguments) {
  using namespace weir;
  if (count != 3) {
    fmt::print(stderr, "live_node INTERFACE receive|macswap\n");
    return 2;
  }
  NodeOptions options;
  options.idle = Idle::poll;
  auto node = Node::create(options);
  const auto port = node ? (*node)->add_port("port", fmt::format("xdp:{}", arguments[1]))
                         : Result<PortId>(std::unexpected(node.error()));
  if (!port) {
    fmt::print(stderr, "{}\n", port.error().message);
    return 1;
  }
  static constexpr DropReason taken{"taken", "only receiving is measured"};
  const bool swap = std::strcmp(arguments[2], "macswap") == 0;
  const FlowStage& stage = swap ? (*node)->graph().stage("macswap",
                                                         [](Flow& flow) {
                                                           const auto from = flow[eth::src];
                                                           const auto to = flow[eth::dst];
                                                           flow.set(eth::dst, *from);
                                                           flow.set(eth::src, *to);
                                                           return flow.output(flow.ingress());
                                                         })
                                : (*node)->graph().stage("receive", [](Flow& flow) { return flow.drop(taken); });
  (*node)->graph().connect(*port, stage);
  if (auto started = (*node)->start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    return 1;
  }
  fmt::print("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  const Summary summary = (*node)->summary();
  fmt::print("{} {} {}\n", summary.in_packets(), summary.out_packets(), summary.ports[0].lost);
}
