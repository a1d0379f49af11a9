// Ports that come and go while a node runs.

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/device/memory.h>
#include <weir/runtime/node.h>

namespace weir {
namespace {

using testing::HasSubstr;

struct Kind {
  const char* description;
  EngineKind engine;
  unsigned workers;
  Idle idle;
};

class NodePorts : public testing::TestWithParam<Kind> {
 protected:
  // Floods, and learns where a source was seen: what a removed port leaves behind would show.
  void start() {
    const Kind& kind = GetParam();
    auto made = Node::create(
        {.workers = kind.workers, .idle = kind.idle, .engine = kind.engine, .rule_cache = 1024, .frames = 8192});
    ASSERT_TRUE(made);
    node_ = std::move(*made);
    auto& macs = node_->state().table<MacAddress, PortId>("macs", {.capacity = 64});
    const auto& stage = node_->graph().stage("switch", [&macs](Flow& flow) {
      flow.learn(macs, *flow[eth::src], flow.ingress());
      const PortId* to = flow.lookup(macs, *flow[eth::dst]);
      return to != nullptr && *to != flow.ingress() ? flow.output(*to) : flow.flood();
    });
    node_->graph().connect_ports(stage);
    ASSERT_TRUE(node_->add_port("in", "memory:flows=50,rate=100000"));
    ASSERT_TRUE(node_->add_port("out", "memory:"));
    ASSERT_TRUE(node_->start());
    waiting_ = std::thread([this] { EXPECT_TRUE(node_->wait()); });
  }
  void TearDown() override {
    if (waiting_.joinable()) {
      node_->stop();
      waiting_.join();
    }
  }
  std::uint64_t out_packets(std::string_view name) const {
    for (const auto& port : node_->summary().ports) {
      if (port.name == name) {
        return port.out_packets;
      }
    }
    return 0;
  }
  // Until it has got so many packets more.
  void wait_for_packets(const std::string& name, std::uint64_t more) const {
    const std::uint64_t wanted = out_packets(name) + more;
    while (out_packets(name) < wanted) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));  // leaves the processor to the workers
    }
  }

  std::unique_ptr<Node> node_;
  std::thread waiting_;
};

TEST_P(NodePorts, ComeAndGoUnderTraffic) {
  start();
  std::set<std::uint16_t> numbers;
  for (unsigned i = 0; i < 50; ++i) {
    const std::string name = fmt::format("p{}", i);
    const auto port = node_->add_port(name, "memory:flows=5,rate=10000,src_mac=02:00:00:00:00:77");
    ASSERT_TRUE(port) << port.error().message;
    numbers.insert(port->number);
    wait_for_packets(name, 1);
    wait_for_packets("out", 1);
    ASSERT_TRUE(node_->remove_port(*port));
    EXPECT_FALSE(node_->find_port(name));
  }
  EXPECT_EQ(numbers.size(), 50U) << "a number rests before it is taken again";
  wait_for_packets("out", 100);
  node_->stop();
  waiting_.join();
  const Summary s = node_->summary();
  EXPECT_EQ(s.ports.size(), 2U);
  EXPECT_EQ(s.in_packets() + s.cloned + s.originated, s.out_packets() + s.dropped() + s.held);
  EXPECT_GE(s.removed_ports.in_packets, 50U);
}

INSTANTIATE_TEST_SUITE_P(Node, NodePorts,
                         testing::Values(Kind{"core, adaptive", EngineKind::core, 1, Idle::adaptive},
                                         Kind{"core, interrupt", EngineKind::core, 1, Idle::interrupt},
                                         Kind{"two workers", EngineKind::core, 2, Idle::adaptive},
                                         Kind{"reference", EngineKind::reference, 1, Idle::adaptive}));

TEST(NodePortsEnd, ANodeGoesOnWithoutItsLastEndlessPort) {
  auto node = Node::create({.frames = 1024});
  ASSERT_TRUE(node);
  (*node)->graph().connect_ports((*node)->graph().stage("flood", [](Flow& flow) { return flow.flood(); }));
  const auto in = (*node)->add_port("in", "memory:flows=1,rate=1000");
  ASSERT_TRUE((*node)->add_port("out", "memory:"));
  ASSERT_TRUE((*node)->start());
  ASSERT_TRUE((*node)->remove_port(*in));
  const auto later = (*node)->add_port("later", "memory:flows=1,count=5");
  ASSERT_TRUE(later);
  while ((*node)->summary().in_packets() - (*node)->summary().removed_ports.in_packets < 5) {
    std::this_thread::yield();
  }
  (*node)->stop();
  ASSERT_TRUE((*node)->wait());
}

std::unique_ptr<Node> idle_node() {
  auto node = Node::create({.frames = 1024});
  EXPECT_TRUE(node);
  const auto& stage = (*node)->graph().stage("flood", [](Flow& flow) { return flow.flood(); });
  (*node)->graph().connect_ports(stage);
  return std::move(*node);
}

TEST(NodePortsNumbers, AreTakenAgainOnlyWhenAllAreUsed) {
  auto node = idle_node();
  ASSERT_TRUE(node->add_port("a", "memory:"));
  ASSERT_TRUE(node->prepare());
  for (unsigned i = 1; i < 3 * max_ports; ++i) {
    const auto port = node->add_port("b", "memory:");
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_EQ(port->number, i < max_ports ? i : 1 + (i - 1) % (max_ports - 1));
    ASSERT_TRUE(node->remove_port(*port));
  }
}

TEST(NodePortsNumbers, HaveALimit) {
  auto node = idle_node();
  for (unsigned i = 0; i < max_ports; ++i) {
    ASSERT_TRUE(node->add_port(fmt::format("p{}", i), "memory:"));
  }
  EXPECT_THAT(node->add_port("more", "memory:").error().message, HasSubstr("one too many; a node has at most 1024"));
  ASSERT_TRUE(node->remove_port(PortId{5}));
  EXPECT_EQ(node->add_port("more", "memory:")->number, 5);
}

TEST(NodePortsNumbers, NeedAnEntryOnceTheNodeRuns) {
  auto node = Node::create({.frames = 64});
  ASSERT_TRUE(node);
  const auto port = (*node)->add_port("a", "memory:");
  (*node)->graph().connect(*port, (*node)->graph().stage("s", [](Flow& flow) { return flow.flood(); }));
  ASSERT_TRUE((*node)->prepare());
  EXPECT_THAT((*node)->add_port("b", "memory:").error().message, HasSubstr("Graph::connect_ports"));
  EXPECT_EQ((*node)->port_count(), 1U);
}

TEST(NodePortsNumbers, AFailedDeviceLeavesNothing) {
  auto node = idle_node();
  ASSERT_TRUE(node->prepare());
  EXPECT_FALSE(node->add_port("a", "pcap:/nowhere/x.pcap"));
  EXPECT_EQ(node->port_count(), 0U);
  EXPECT_EQ(node->add_port("a", "memory:")->number, 0);
}

}  // namespace
}  // namespace weir
