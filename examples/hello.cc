// The smallest data plane: what comes in by one port goes out by the other.
//
//     hello pcap:in.pcap pcap:,out=out.pcap

#include <cstdio>

#include <weir/weir.h>

int main(int argc, char** argv) {
  auto node = weir::Node::create();
  if (argc != 3 || !node) {
    std::fputs("usage: hello DEVICE DEVICE\n", stderr);
    return 2;
  }
  const auto a = (*node)->add_port("a", argv[1]);
  const auto b = (*node)->add_port("b", argv[2]);
  if (!a || !b) {
    std::fprintf(stderr, "%s\n", (a ? b : a).error().message.c_str());
    return 1;
  }
  auto& graph = (*node)->graph();
  const auto& hello =
      graph.stage("hello", [a = *a, b = *b](weir::Flow& flow) { return flow.output(flow.ingress() == a ? b : a); });
  graph.connect(*a, hello);
  graph.connect(*b, hello);
  const auto ran = (*node)->run();
  std::printf("%lu packets in, %lu out\n", (*node)->summary().in_packets(), (*node)->summary().out_packets());
  return ran ? 0 : 1;
}
