#include <weir/runtime/graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;

Verdict pass(Flow& flow) { return flow.next(); }

class Splitter final : public PacketStage {
 public:
  void process(Batch& /*batch*/) override {}
  [[nodiscard]] unsigned outputs() const override { return 2; }
};

TEST(Graph, CompilesWhatIsConnected) {
  Graph graph;
  const FlowStage& first = graph.stage("first", pass);
  const FlowStage& second = graph.stage("second", pass);
  Splitter& splitter = graph.add<Splitter>("splitter");
  graph.connect(PortId{0}, first);
  graph.connect(PortId{1}, splitter);
  graph.connect(first, splitter);
  graph.connect(splitter, second, 0);
  graph.connect(splitter, second, 1);
  const std::vector<std::string> ports{"a", "b"};
  const auto pipeline = graph.compile(ports);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  EXPECT_EQ(pipeline->entry_of(PortId{0}), 0);
  EXPECT_EQ(pipeline->entry_of(PortId{1}), 2);
  EXPECT_EQ(pipeline->entry_of(PortId{2}), Pipeline::nowhere);
  EXPECT_EQ(pipeline->stages[0].outputs, (std::vector<std::uint8_t>{2}));
  EXPECT_EQ(pipeline->stages[1].outputs, (std::vector<std::uint8_t>{Pipeline::nowhere}));
  EXPECT_EQ(pipeline->stages[2].outputs, (std::vector<std::uint8_t>{1, 1}));
}

TEST(Graph, PortsWithoutAnEdgeOfTheirOwnEnterWhereAllDo) {
  Graph graph;
  const FlowStage& own = graph.stage("own", pass);
  const FlowStage& all = graph.stage("all", pass);
  graph.connect(PortId{1}, own);
  graph.connect_ports(all);
  const std::vector<std::string> ports{"a", "b"};
  const auto pipeline = graph.compile(ports);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  EXPECT_EQ(pipeline->entry_of(PortId{0}), 1);
  EXPECT_EQ(pipeline->entry_of(PortId{1}), 0);
  EXPECT_EQ(pipeline->entry_of(PortId{max_ports - 1}), 1) << "of ports to come, too";
}

TEST(Graph, ReportsEverythingThatIsWrongAtOnce) {
  Graph graph;
  Graph other;
  const FlowStage& a = graph.stage("a", pass);
  const FlowStage& b = graph.stage("b", pass);
  const FlowStage& again = graph.stage("a", pass);
  const FlowStage& stranger = other.stage("stranger", pass);
  Splitter& splitter = graph.add<Splitter>("splitter");
  graph.connect(PortId{0}, a);
  graph.connect(PortId{0}, b);
  graph.connect(PortId{7}, a);
  graph.connect(a, b);
  graph.connect(b, again);
  graph.connect(again, a);
  graph.connect(b, stranger);
  graph.connect(splitter, a, 1);
  graph.connect(splitter, a, 5);
  const std::vector<std::string> ports{"in", "lonely"};
  const auto pipeline = graph.compile(ports);
  ASSERT_FALSE(pipeline);
  for (const char* part :
       {"two stages are named 'a'", "port 'in' is connected twice", "port number 7", "port 'lonely' is not connected",
        "a connection to a stage that was not added", "output 0 of packet stage 'splitter' is not connected",
        "stage 'splitter' has no output 5; it has 2", "packets would go round in circles: a -> b -> a"}) {
    EXPECT_THAT(pipeline.error().message, HasSubstr(part));
  }
}

}  // namespace
}  // namespace weir
