// Packet stages that keep packets back: the same in every engine, and nothing is lost.
#include <weir/engine/packet_stages.h>

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/engine/testing/corpus.h>
#include <weir/engine/testing/test_node.h>

namespace weir::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DropReason expired{"expired", "it was kept too long"};

/// Keeps each packet for `delay_ns`, in order; what it has no room for goes on at once.
class Delay final : public PacketStage {
 public:
  Delay(Nanoseconds delay_ns, unsigned limit) : delay_(delay_ns), limit_(limit) {}

  void process(Batch& batch) override {
    while (!queue_.empty() && (batch.last() || queue_.front().second <= batch.now())) {
      EXPECT_NE(batch.kept(queue_.front().first), nullptr);
      EXPECT_TRUE(batch.hand_back(queue_.front().first, 0));
      EXPECT_FALSE(batch.hand_back(queue_.front().first, 0)) << "it is gone";
      EXPECT_EQ(batch.kept(queue_.front().first), nullptr);
      queue_.pop_front();
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (const auto kept = batch.keep(i)) {
        queue_.emplace_back(*kept, batch.now() + delay_);
        EXPECT_FALSE(batch.keep(i)) << "once is enough";
        batch.drop(i, expired);  // does not concern it any more
      }
    }
  }
  [[nodiscard]] unsigned keep_limit() const override { return limit_; }

 private:
  Nanoseconds delay_;
  unsigned limit_;
  std::deque<std::pair<KeptPacket, Nanoseconds>> queue_;
};

/// Keeps everything, and never hands anything back.
class Hoard final : public PacketStage {
 public:
  void process(Batch& batch) override {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!batch.keep(i)) {
        batch.drop(i, expired);
      }
    }
  }
  [[nodiscard]] unsigned keep_limit() const override { return 5; }
};

Build delayed(unsigned limit) {
  return [limit](GraphBuilder& graph) {
    const auto first = graph.stage([](Flow& flow) { return flow.next(); });
    const auto delay = graph.packet_stage<Delay>(Nanoseconds{1000}, limit);
    const auto again = graph.packet_stage<Delay>(Nanoseconds{500}, limit);
    const auto last = graph.stage([](Flow& flow) { return flow.output(PortId{1}); });
    graph.connect(first, delay);
    graph.connect(delay, again);
    graph.connect(again, last);
  };
}

std::vector<TestPacket> packets(std::size_t count) {
  std::vector<TestPacket> list;
  for (const Specimen& specimen : corpus()) {
    if (list.size() < count) {
      list.push_back(specimen.packet);
    }
  }
  return list;
}

TEST(PacketStages, HandBackWhenTheTimeHasCome) {
  Differential nodes(delayed(100));
  EXPECT_EQ(nodes.send(PortId{0}, packets(20), 1'000), "");
  EXPECT_THAT(nodes.observed().sent, IsEmpty());
  EXPECT_EQ(nodes.idle(1'999), "");
  EXPECT_THAT(nodes.observed().sent, IsEmpty());
  EXPECT_EQ(nodes.send(PortId{0}, packets(3), 2'000), "");  // the first 20 move on to the second stage
  EXPECT_THAT(nodes.observed().sent, IsEmpty());
  EXPECT_EQ(nodes.idle(2'500), "");
  EXPECT_THAT(nodes.observed().sent.at(1), SizeIs(20));
  EXPECT_EQ(nodes.idle(3'000), "");
  EXPECT_THAT(nodes.observed().sent, IsEmpty());
  EXPECT_EQ(nodes.close(), "");  // three are still kept: their frames are given back
}

TEST(PacketStages, LimitIsKept) {
  Differential nodes(delayed(4));
  EXPECT_EQ(nodes.send(PortId{0}, packets(20), 1'000), "");
  EXPECT_THAT(nodes.observed().sent.at(1), SizeIs(20 - 4 - 4));
  EXPECT_EQ(nodes.close(), "");
}

TEST(PacketStages, LastCallEmptiesEveryStage) {
  Differential nodes(delayed(100));
  EXPECT_EQ(nodes.send(PortId{0}, packets(20), 1'000), "");
  EXPECT_EQ(nodes.finish(1'001), "");
  EXPECT_THAT(nodes.observed().sent.at(1), SizeIs(20));
  EXPECT_EQ(nodes.close(), "");
}

TEST(PacketStages, WhatIsNeverHandedBackIsDroppedAtTheEnd) {
  Differential nodes([](GraphBuilder& graph) {
    const auto hoard = graph.packet_stage<Hoard>();
    graph.connect(hoard, graph.stage([](Flow& flow) { return flow.output(PortId{1}); }));
  });
  EXPECT_EQ(nodes.send(PortId{0}, packets(7), 1'000), "");
  EXPECT_EQ(nodes.observed().drops.at("expired"), 2U);
  EXPECT_EQ(nodes.finish(1'001), "");
  EXPECT_EQ(nodes.observed().drops.at("kept_at_end"), 5U);
  EXPECT_EQ(nodes.close(), "");
}

TEST(KeptPackets, NumbersAreUsedAgain) {
  KeptPackets kept(2);
  Packet a{};
  Packet b{};
  const auto first = kept.put(&a);
  ASSERT_TRUE(first);
  ASSERT_TRUE(kept.put(&b));
  EXPECT_FALSE(kept.put(&b)) << "it is full";
  EXPECT_EQ(kept.take(*first), &a);
  EXPECT_EQ(kept.take(*first), nullptr);
  EXPECT_EQ(kept.get({17}), nullptr);
  EXPECT_TRUE(kept.put(&a));
  EXPECT_EQ(kept.size(), 2U);
}

}  // namespace
}  // namespace weir::testing
