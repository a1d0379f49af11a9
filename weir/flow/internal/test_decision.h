#pragma once
// For tests: decisions without a node, and a holder that keeps rules as the engines must.

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <weir/base/random.h>
#include <weir/flow/stage.h>
#include <weir/flow/traced_flow.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/parse.h>

namespace weir {

/// A packet as the tracer is given it.
struct TestPacket {
  Key key;
  PacketFacts facts;

  TestPacket() = default;
  explicit TestPacket(std::vector<std::uint8_t> bytes, std::uint16_t ingress = 1) {
    Packet packet{};
    packet.data = bytes.data();
    packet.length = static_cast<std::uint32_t>(bytes.size());
    packet.segment = static_cast<std::uint16_t>(bytes.size());
    parse(packet, key);
    key.ingress = ingress;
    facts = {l3_length(packet), frame_length(packet)};
  }
  explicit TestPacket(const PacketBuilder& builder, std::uint16_t ingress = 1) : TestPacket(builder.bytes(), ingress) {}
};

/// A graph of function stages in a row (stage i passes on to i + 1) and the tracer on it.
class TestGraph {
 public:
  explicit TestGraph(State& state) : state_(state) {}

  template <class... F>
  static std::unique_ptr<TestGraph> of(State& state, F... decide) {
    auto graph = std::make_unique<TestGraph>(state);
    (graph->add(std::move(decide)), ...);
    return graph;
  }

  template <class F>
  void add(F decide) {
    stages_.push_back(std::make_unique<FunctionStage<F>>(std::move(decide)));
    connect("stage", stages_.back().get(), nullptr);
  }
  void add_packet_stage(PacketStage& stage) { connect("packet-stage", nullptr, &stage); }

  const FlowStage& stage(std::size_t i) const { return *pipeline_.stages[i].flow; }

  /// Valid until the next decision.
  const Rule& decide(const TestPacket& packet, Nanoseconds now = 0) {
    const EpochScope scope(state_.epochs());
    flow_.decide(packet.key, packet.facts, now);
    return flow_.rule();
  }

 private:
  void connect(const char* name, const FlowStage* flow, PacketStage* packet) {
    const auto number = static_cast<std::uint8_t>(pipeline_.stages.size());
    if (number > 0) {
      pipeline_.stages[number - 1U].outputs = {number};
    }
    pipeline_.stages.push_back({name, flow, packet, {Pipeline::nowhere}});
  }

  State& state_;
  std::vector<std::unique_ptr<FlowStage>> stages_;
  Pipeline pipeline_;
  TracedFlow flow_{state_, pipeline_};
};

/// A rule that was decided, linked to what it depends on.
class TestRule {
 public:
  /// Like an engine: valid first, then linked; invalid again if a dependency did not hold any more.
  explicit TestRule(const Rule& rule) : rule_(rule), links_(rule.keyed.size()) {
    anchor_.valid.store(1);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const KeyedDependency& keyed = rule.keyed[i];
      links_[i].rule = &anchor_;
      links_[i].refreshed = keyed.refreshed;
      links_[i].token = keyed.token;
      if (!keyed.stripe->link(links_[i], keyed.generation)) {
        anchor_.valid.store(0);
      }
    }
    for (const RegionDependency& region : rule.regions) {
      if (!region.state->holds(region.generation)) {
        anchor_.valid.store(0);
      }
    }
  }
  ~TestRule() {
    for (DependencyLink& link : links_) {
      Dependents::unlink(link);
    }
  }
  TestRule(const TestRule&) = delete;
  TestRule& operator=(const TestRule&) = delete;

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] bool valid() const { return anchor_.valid.load() != 0; }
  void use(Nanoseconds now) { anchor_.last_used.store(now); }

  std::size_t revoke(std::uint64_t sources, std::span<const KeyRegion> regions) {
    for (const RegionDependency& dependency : rule_.regions) {
      if ((dependency.state->bit() & sources) == 0) {
        continue;
      }
      for (const KeyRegion& region : regions) {
        OverlapPlan plan;
        plan.assign({&region, 1}, rule_.mask, dependency.parts);
        if (plan.overlaps([this](std::size_t word) { return rule_.value.word(word); })) {
          return anchor_.valid.exchange(0);
        }
      }
    }
    return 0;
  }

 private:
  Rule rule_;
  RuleAnchor anchor_;
  std::vector<DependencyLink> links_;
};

/// Holds rules for as long as it lives.
class TestHolder final : public RuleHolder {
 public:
  explicit TestHolder(State& state) : state_(state) { state_.add(*this); }
  ~TestHolder() { state_.remove(*this); }

  TestRule& hold(const Rule& rule) { return rules_.emplace_back(rule); }
  void clear() { rules_.clear(); }

  std::size_t revoke(std::uint64_t sources, std::span<const KeyRegion> regions) override {
    std::size_t cleared = 0;
    for (TestRule& rule : rules_) {
      cleared += rule.revoke(sources, regions);
    }
    return cleared;
  }

 private:
  State& state_;
  std::deque<TestRule> rules_;
};

/// A random word with one bit in eight set.
inline std::uint64_t few_bits(Random& random) {
  std::uint64_t bits = random();
  bits &= random();
  bits &= random();
  return bits;
}

}  // namespace weir
