#include <weir/engine/core/rule_slots.h>

#include <map>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

// Tags collide often, and tables grow and shrink, as against a map.
TEST(RuleSlots, RandomUseEqualsAMap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    RuleSlots slots;
    std::map<RuleIndex, std::uint32_t> model;  // tags
    const auto wanted = [](RuleIndex rule) { return [rule](RuleIndex there) { return there == rule; }; };
    std::uint32_t growing = 3;
    for (int step = 0; step < 20'000; ++step) {
      if (step % 2'000 == 0) {
        growing = 1 + random.below(4);
      }
      const RuleIndex rule = random.below(5'000);
      const auto known = model.find(rule);
      if (known == model.end()) {
        if (random.below(4) < growing) {
          // Few distinct places, so that runs are long and wrap around.
          const std::uint32_t tag =
              RuleSlots::tag_of(std::uint64_t{random.below(64) << 4U | random.below(2) << 30U} << 32U);
          slots.insert(tag, rule);
          model[rule] = tag;
        }
      } else if (random.below(4) >= growing) {
        RuleSlots::Slot* slot = slots.find(known->second, wanted(rule));
        ASSERT_NE(slot, nullptr) << "seed " << seed << ", step " << step;
        slots.erase(slot);
        model.erase(known);
      } else {
        const RuleSlots::Slot* slot = slots.find(known->second, wanted(rule));
        ASSERT_NE(slot, nullptr) << "seed " << seed << ", step " << step;
        ASSERT_EQ(slot->tag, known->second);
      }
      ASSERT_EQ(slots.find(RuleSlots::tag_of(random()), [](RuleIndex) { return false; }), nullptr);
    }
    for (const auto& [rule, tag] : model) {
      ASSERT_NE(slots.find(tag, wanted(rule)), nullptr) << "seed " << seed;
    }
  }
}

TEST(RuleSlots, ClearForgetsEverything) {
  RuleSlots slots;
  for (RuleIndex rule = 0; rule < 100; ++rule) {
    slots.insert(RuleSlots::tag_of(std::uint64_t{rule} << 33U), rule);
  }
  slots.clear();
  for (RuleIndex rule = 0; rule < 100; ++rule) {
    EXPECT_EQ(slots.find(RuleSlots::tag_of(std::uint64_t{rule} << 33U), [](RuleIndex) { return true; }), nullptr);
  }
}

}  // namespace
}  // namespace weir
