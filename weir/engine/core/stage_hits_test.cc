#include <gtest/gtest.h>

#include <weir/engine/core/rule_cache.h>

namespace weir {
namespace {

// Packets by stage, counted with rules that share sets of stages, leave the cache, and have more sets than there are
// numbers for.
TEST(StageHits, AreThoseOfAllRulesThatTookPart) {
  Epochs epochs;
  State state(epochs, 1);
  WorkerStats stats;
  RuleCache cache(state, stats, 64);
  std::array<std::uint64_t, 64> expected{};
  Rule rule;
  rule.mask.src_port = {0xff, 0xff};
  rule.actions.push_back({.kind = ActionKind::drop});
  for (unsigned i = 1; i <= 1000; ++i) {
    rule.stages = std::uint64_t{i % 600 + 1} << (i % 3) | (i % 7 == 0 ? std::uint64_t{1} << 63U : 0);
    Key key;
    key.src_port = {static_cast<std::uint8_t>(i >> 8U), static_cast<std::uint8_t>(i)};
    const RuleIndex index = cache.install(rule, key, i, 0);
    ASSERT_NE(index, no_rule) << i;
    cache.count_for_stages(cache.body(index));
    cache.count_for_stages(cache.body(index), i);
    for (unsigned stage = 0; stage < 64; ++stage) {
      expected[stage] += (rule.stages >> stage & 1U) != 0 ? 1 + i : 0;
    }
    cache.maintain(0);
  }
  EXPECT_LE(cache.size(), 64U) << "most have left";
  EXPECT_EQ(cache.stage_hits(), expected);
}

}  // namespace
}  // namespace weir
