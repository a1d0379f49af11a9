// The sequences that have to be right by name; each is run cached, uncached and by the reference engine.

#include "scenario.h"
#include <gtest/gtest.h>

#include <weir/packet/packet_builder.h>

namespace weir::property {
namespace {

ProgramNode node(Step step, FieldId field, std::uint32_t number, std::uint32_t no = 0, std::uint32_t yes = 0) {
  return {step, field, {}, number, {no, yes}};
}

/// Programs for all stages; only the first matters.
std::vector<Program> only(std::vector<ProgramNode> nodes) {
  std::vector<Program> programs(World::stages, Program{{node(Step::drop, {}, 0)}});
  programs[0].nodes = std::move(nodes);
  return programs;
}

/// A learning switch: learns source -> ingress in table 1, looks the destination up, sends to port 1 or 0 by what it
/// finds, floods otherwise.
std::vector<Program> learning_switch() {
  return only({
      node(Step::learn, FieldId::eth_src, 5, 1, 1),  // number & 4: the ingress port is the value
      node(Step::table, FieldId::eth_dst, 3, 2, 3),  // found, and its lowest bit is 1
      node(Step::table, FieldId::eth_dst, 1, 4, 5),  // found, and its lowest bit is 0
      node(Step::output, {}, 1),
      node(Step::flood, {}, 0),
      node(Step::output, {}, 0),
  });
}

class Sequence {
 public:
  explicit Sequence(const std::vector<Program>& programs) {
    for (const Kind kind : {Kind::cached, Kind::uncached, Kind::reference}) {
      subjects_.push_back(std::make_unique<Subject>(SubjectOptions{.kind = kind}, programs));
    }
    update([](World&, Update& u) { u.set_flood_ports({PortId{0}, PortId{1}, PortId{2}}); });
  }

  void update(const std::function<void(World&, Update&)>& change) {
    for (const auto& subject : subjects_) {
      Update u;
      change(subject->world(), u);
      subject->apply(u, ++now_);
    }
  }
  void during(PortId port, const std::vector<std::uint8_t>& bytes, const std::function<void(World&, Update&)>& change) {
    for (const auto& subject : subjects_) {
      Update u;
      change(subject->world(), u);
      subject->process_during(0, port, {{bytes}}, u, now_);
    }
    compare();
  }
  void batch(PortId port, const std::vector<std::vector<std::uint8_t>>& packets) {
    std::vector<Frame> frames;
    for (const auto& bytes : packets) {
      frames.push_back({bytes});
    }
    for (const auto& subject : subjects_) {
      subject->process(0, port, frames, now_);
      subject->idle(0, now_);
    }
    compare();
  }
  void pass(Nanoseconds time) { now_ += time; }

  /// Packets that left by each port in the last batch.
  [[nodiscard]] std::vector<std::size_t> sent() const {
    std::vector<std::size_t> counts;
    for (const auto& port : last_.out) {
      counts.push_back(port.size());
    }
    return counts;
  }
  [[nodiscard]] std::uint64_t drops(const std::string& reason) const {
    const auto place = last_.drops.find(reason);
    return place == last_.drops.end() ? 0 : place->second;
  }
  [[nodiscard]] std::uint64_t hits() const { return subjects_[0]->hits(); }

 private:
  void compare() {
    last_ = subjects_[2]->observe();
    for (std::size_t i = 0; i < 2; ++i) {
      const Observed seen = subjects_[i]->observe();
      EXPECT_TRUE(seen == last_) << (i == 0 ? "cached" : "uncached") << " and reference:\n" << seen.difference(last_);
      EXPECT_EQ(subjects_[i]->table_contents(), subjects_[2]->table_contents());
    }
  }

  std::vector<std::unique_ptr<Subject>> subjects_;
  Observed last_;
  Nanoseconds now_ = 1'000'000;
};

std::vector<std::uint8_t> frame(const char* src, const char* dst) {
  return PacketBuilder().eth(src, dst).payload(20).bytes();
}

constexpr const char* a = "02:00:00:00:00:01";
constexpr const char* b = "02:00:00:00:00:02";
using Counts = std::vector<std::size_t>;

TEST(Sequences, LearningInsideOneBatch) {
  Sequence s(learning_switch());
  // B is unknown when the first packet is looked up, together with the others; the second one, in the same batch, makes
  // it known; the third must already go straight to it.
  s.batch(PortId{1}, {frame(b, a)});
  s.batch(PortId{0}, {frame(a, "02:00:00:00:00:03"), frame("02:00:00:00:00:03", a), frame(a, "02:00:00:00:00:03")});
  EXPECT_EQ(s.sent(), (Counts{2, 1, 1, 0}));  // flooded to 1 and 2; then A and the third are both behind port 0
}

TEST(Sequences, AMacThatMovesAndMovesBack) {
  Sequence s(learning_switch());
  s.batch(PortId{0}, {frame(a, b)});
  s.batch(PortId{1}, {frame(b, a), frame(b, a)});
  EXPECT_EQ(s.sent(), (Counts{2, 0, 0, 0}));
  s.batch(PortId{1}, {frame(a, b)});  // A is now behind port 1
  s.batch(PortId{1}, {frame(b, a)});
  EXPECT_EQ(s.sent(), (Counts{0, 1, 0, 0}));
  s.batch(PortId{0}, {frame(a, b)});  // and back
  s.batch(PortId{1}, {frame(b, a), frame(b, a)});
  EXPECT_EQ(s.sent(), (Counts{2, 0, 0, 0}));
}

TEST(Sequences, ARuleTracedBeforeAnUpdateAndInstalledAfterIt) {
  // Classifier 1: the lowest bit of what matches decides between port 1 and a drop.
  Sequence s(only({node(Step::classify, {}, 3, 1, 2), node(Step::drop, {}, 0), node(Step::output, {}, 1)}));
  s.update([](World& w, Update& u) { u.set(*w.classifiers[1], 0, Match(), 1U); });
  const auto packet = frame(a, b);
  s.during(PortId{0}, packet, [](World& w, Update& u) { u.set(*w.classifiers[1], 0, Match(), 0U); });
  EXPECT_EQ(s.sent(), (Counts{0, 1, 0, 0}));  // it was decided before
  s.batch(PortId{0}, {packet, packet});
  EXPECT_EQ(s.sent(), (Counts{0, 0, 0, 0}));
  EXPECT_EQ(s.drops("random_a"), 2U);
}

TEST(Sequences, Ttl1InAFlowOfTtl64) {
  Sequence s(only({node(Step::decrement_ttl, {}, 0, 1, 2), node(Step::reject, {}, 0), node(Step::output, {}, 1)}));
  const auto ttl = [](std::uint8_t n) { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").ttl(n).udp(1, 2).bytes(); };
  s.batch(PortId{0}, {ttl(64), ttl(64), ttl(1), ttl(64), ttl(1), ttl(2), ttl(0)});
  EXPECT_EQ(s.sent(), (Counts{3, 4, 0, 0}));  // three ICMP errors back to port 0
  EXPECT_EQ(s.drops("time_exceeded"), 3U);
  EXPECT_GT(s.hits(), 0U);
}

TEST(Sequences, OversizedPacketInAFlowOfSmallOnes) {
  // fits(60 + 50 * 10)
  Sequence s(only({node(Step::fits, {}, 10, 1, 2), node(Step::reject, {}, 2), node(Step::output, {}, 1)}));
  const auto sized = [](std::size_t n) {
    return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(n).bytes();
  };
  s.batch(PortId{0}, {sized(10), sized(10), sized(1400), sized(10), sized(1400), sized(532), sized(533)});
  EXPECT_EQ(s.sent(), (Counts{3, 4, 0, 0}));
  EXPECT_EQ(s.drops("too_big"), 3U);
}

TEST(Sequences, AnEntryStaysAsLongAsRulesUseIt) {
  Sequence s(learning_switch());
  s.batch(PortId{0}, {frame(a, b)});
  s.batch(PortId{1}, {frame(b, a)});
  for (int i = 0; i < 10; ++i) {  // table 1 forgets after 50 ms
    s.pass(30'000'000);
    s.batch(PortId{0}, {frame(a, b)});
    EXPECT_EQ(s.sent()[1], 1U) << i;
    s.batch(PortId{1}, {frame(b, a)});
    EXPECT_EQ(s.sent(), (Counts{1, 0, 0, 0})) << i;
  }
  s.pass(60'000'000);
  s.batch(PortId{1}, {frame(b, a)});
  EXPECT_EQ(s.sent(), (Counts{1, 0, 1, 0}));  // A is forgotten: flooded
}

}  // namespace
}  // namespace weir::property
