// The delivery sides of a chain's services: which ports have them, in which order, and that they change live.
#include <weir/control/chains.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/control/managed_node.h>
#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using testing::ElementsAre;

class Through final : public PacketStage {
 public:
  void process(Batch& batch) override { (void)batch; }
};

/// A service that lets all in, and on delivery writes its digit behind those in the DSCP.
template <unsigned digit>
Result<std::unique_ptr<Service>> build_marker(ServiceContext& context) {
  Graph& graph = context.node.graph();
  const auto mark = [](Flow& flow) {
    flow.set(ip::dscp, static_cast<std::uint8_t>(*flow[ip::dscp] * 4 + digit));
    return flow.next();
  };
  const FlowStage& in = graph.stage(context.name(), [](Flow& flow) { return flow.next(); });
  const FlowStage& out = graph.stage(context.name() + " delivery", mark);
  if (digit != 3) {
    return std::make_unique<Service>(ServiceStages{.entry = in, .exit = in, .delivery = out});
  }
  // One that goes by a packet stage of its own.
  auto& through = graph.add<Through>("through");
  const FlowStage& before = graph.stage("before", [&through](Flow& flow) { return flow.to(through); });
  graph.connect(through, out);
  return std::make_unique<Service>(ServiceStages{.entry = in, .exit = in, .delivery = before, .delivery_exit = out});
}

const ServiceRegistry& kinds() {
  static const ServiceRegistry services = [] {
    ServiceRegistry made;
    made.add({"one", "", {}, build_marker<1>});
    made.add({"two", "", {}, build_marker<2>});
    made.add({"three", "", {}, build_marker<3>});
    made.add({"plain", "", {}, [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                const FlowStage& stage = context.node.graph().stage("plain", [](Flow& flow) { return flow.next(); });
                return std::make_unique<Service>(ServiceStages{stage, stage});
              }});
    // Floods broadcast, and sends all else out by the port whose number is the destination's last byte.
    made.add({"end", "", {}, [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                const FlowStage& stage = context.node.graph().stage("end", [](Flow& flow) {
                  const MacAddress to = *flow[eth::dst];
                  return to.bytes[0] == 0xff ? flow.flood() : flow.output(PortId{to.bytes[5]});
                });
                return std::make_unique<Service>(ServiceStages{stage, {}});
              }});
    return made;
  }();
  return services;
}

NodeFile file(const std::string& text) {
  auto parsed = NodeFile::parse("weir: 1\n" + text, "n.yaml", "/", kinds());
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : NodeFile();
}

class DeliveryChains : public testing::Test {
 protected:
  void build(const std::string& text) {
    auto made = ManagedNode::build(file(text));
    ASSERT_TRUE(made) << made.error().message;
    managed_ = std::move(*made);
    ASSERT_TRUE(managed_->node().prepare());
  }
  void apply(const std::string& text) {
    const auto changes = managed_->apply(file(text));
    ASSERT_TRUE(changes) << changes.error().message;
  }
  MemoryDevice& device(PortId port) { return dynamic_cast<MemoryDevice&>(*managed_->node().port(port).device); }

  /// The DSCP in digits base 4 with which a packet from port 0 leaves by `to`; "none" if it does not.
  std::string passed(std::uint16_t to, bool broadcast = false) {
    const std::uint64_t before = device(PortId{to}).packets();
    device(PortId{0}).inject(
        PacketBuilder()
            .eth("02:00:00:00:00:99", broadcast ? "ff:ff:ff:ff:ff:ff" : fmt::format("02:00:00:00:00:{:02x}", to))
            .ipv4("10.0.0.1", "10.0.0.2")
            .udp(1, 2)
            .bytes());
    while (managed_->node().poll_once() == 0) {
    }
    if (device(PortId{to}).packets() != before + 1) {
      return "none";
    }
    std::string digits;
    for (unsigned left = device(PortId{to}).recorded().back()[15] >> 2U; left != 0; left /= 4) {
      digits.insert(digits.begin(), static_cast<char>('0' + left % 4));
    }
    return digits;
  }

  std::unique_ptr<ManagedNode> managed_;
};

constexpr const char* services = "services: {one: , two: , three: , plain: , end: }\n";

std::string ports(const std::string& c = "host") {
  return "ports:\n  in: 'memory:record=1'\n  b: {device: 'memory:record=1', labels: {x: y}}\n  c: {device: "
         "'memory:record=1', role: " +
         c + "}\n";
}

std::string chains(const std::string& of_b, const std::string& of_others) {
  return fmt::format(
      "chains:\n  - {{name: b, selector: {{x: y}}, services: [{}]}}\n"
      "  - {{name: others, selector: {{}}, services: [{}]}}\n",
      of_b, of_others);
}

TEST_F(DeliveryChains, TheServiceNearestThePortComesLast) {
  for (const bool broadcast : {false, true}) {
    build(services + ports() + chains("one, plain, two, end", "plain, two, one, end"));
    EXPECT_EQ(passed(1, broadcast), "21");
    EXPECT_EQ(passed(2, broadcast), "12");
  }
}

TEST_F(DeliveryChains, OneChainForAllPorts) {
  build(services + ports() + "chains: [{name: all, selector: {}, services: [one, two, three, end]}]\n");
  EXPECT_EQ(passed(1), "321") << "by the packet stage, and on";
  EXPECT_EQ(passed(2, true), "321");
}

TEST_F(DeliveryChains, UplinksHaveNone) {
  build(services + ports("uplink") + chains("one, end", "two, end"));
  EXPECT_EQ(passed(1), "1");
  EXPECT_EQ(passed(2), "");
  EXPECT_EQ(passed(2, true), "");
}

TEST_F(DeliveryChains, ChangeLive) {
  build(services + ports() + chains("plain, end", "plain, end"));
  EXPECT_EQ(passed(1), "");
  EXPECT_EQ(passed(2, true), "");
  apply(services + ports() + chains("one, plain, end", "plain, end"));
  EXPECT_EQ(passed(1), "1");
  EXPECT_EQ(passed(1, true), "1");
  EXPECT_EQ(passed(2), "");
  apply(services + ports() + chains("plain, two, end", "three, end"));
  EXPECT_EQ(passed(1), "2");
  EXPECT_EQ(passed(2), "3");
  EXPECT_EQ(passed(2, true), "3");
  apply(services + ports("uplink") + chains("plain, two, end", "three, end"));
  EXPECT_EQ(passed(2), "") << "its role has changed";
  apply(services + ports() + chains("plain, end", "plain, end"));
  EXPECT_EQ(passed(1), "");
  EXPECT_EQ(passed(2, true), "");
}

}  // namespace
}  // namespace weir
