#include <weir/engine/engine.h>

#include <map>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::uint32_t bit(ActionKind kind) { return 1U << static_cast<unsigned>(kind); }
constexpr std::uint32_t bit(GuardKind kind) { return 1U << static_cast<unsigned>(kind); }

constexpr Capabilities nic{"nic", 2, 2, bit(ActionKind::output) | bit(ActionKind::drop), 0};
constexpr Capabilities kernel{"kernel", 100, 3,
                              bit(ActionKind::output) | bit(ActionKind::drop) | bit(ActionKind::decrement_ttl),
                              bit(GuardKind::ttl_above)};

Rule rule(const std::vector<ActionKind>& actions, std::vector<Guard> guards = {}) {
  Rule made;
  for (const ActionKind kind : actions) {
    made.actions.push_back({.kind = kind});
  }
  made.guards = std::move(guards);
  return made;
}

TEST(Placement, SaysWhereAndWhyNotHigher) {
  struct Case {
    const char* description;
    Rule rule;
    const char* engine;
    const char* reason;
  };
  const Guard ttl{GuardKind::ttl_above, true, 1};
  Rule learned = rule({ActionKind::output});
  learned.not_cacheable = "state was learned by this packet";
  const std::vector<Capabilities> above{nic, kernel};
  for (const Case& c : std::initializer_list<Case>{
           {"simple enough for the highest", rule({ActionKind::output}), "nic", ""},
           {"an action that it cannot do", rule({ActionKind::decrement_ttl, ActionKind::output}, {ttl}), "kernel",
            "nic: cannot decrement_ttl"},
           {"too many actions", rule({ActionKind::output, ActionKind::output, ActionKind::output, ActionKind::output}),
            "core", "nic: 2 actions over the limit"},
           {"a guard that none can test", rule({ActionKind::drop}, {{GuardKind::flags, true, 1}}), "core",
            "nic: cannot test tcp_flags"},
           {"a packet stage", rule({ActionKind::enter}), "core", "nic: needs a packet stage or a second look-up"},
           {"a decision that is not kept", learned, "none", "state was learned by this packet"},
       }) {
    const Placement placement = place(c.rule, above);
    EXPECT_EQ(placement.engine, c.engine) << c.description;
    EXPECT_EQ(placement.reason, c.reason) << c.description;
  }
  EXPECT_EQ(place(rule({ActionKind::output}), {}).reason, "this node has no engine above it");
}

/// The smallest engine there can be: shows that the interface is enough to install, count and revoke by.
class FakeEngine final : public Engine {
 public:
  [[nodiscard]] Capabilities capabilities() const override { return nic; }
  std::expected<RuleHandle, std::string> install(const Rule& made, std::uint64_t epoch) override {
    if (epoch < revoked_at_) {
      return std::unexpected("decided before a revocation");
    }
    if (rules_.size() == nic.rules) {
      return std::unexpected("full: 2 rules");
    }
    rules_[++last_] = made.actions.size();
    return last_;
  }
  void revoke(RuleHandle handle) override {
    rules_.erase(handle);
    ++revoked_at_;
  }
  [[nodiscard]] RuleStatistics statistics(RuleHandle handle) const override {
    return {.packets = rules_.contains(handle) ? 1U : 0U};
  }
  void barrier() override {}

 private:
  std::map<RuleHandle, std::size_t> rules_;
  RuleHandle last_ = 0;
  std::uint64_t revoked_at_ = 0;
};

TEST(Engine, InstallsCountsAndRevokes) {
  FakeEngine fake;
  Engine& engine = fake;
  const auto first = engine.install(rule({ActionKind::output}), 0);
  ASSERT_TRUE(first);
  ASSERT_TRUE(engine.install(rule({ActionKind::drop}), 0));
  EXPECT_EQ(engine.install(rule({ActionKind::drop}), 0).error(), "full: 2 rules");
  EXPECT_EQ(engine.statistics(*first).packets, 1U);
  engine.revoke(*first);
  engine.barrier();
  EXPECT_EQ(engine.statistics(*first).packets, 0U);
  EXPECT_EQ(engine.install(rule({ActionKind::drop}), 0).error(), "decided before a revocation");
  EXPECT_TRUE(engine.install(rule({ActionKind::drop}), 1));
}

}  // namespace
}  // namespace weir
