#include <weir/flow/table.h>

#include <functional>
#include <map>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>
#include <weir/flow/update.h>

namespace weir {
namespace {

using Ports = Table<std::uint32_t, std::uint16_t>;
constexpr Nanoseconds second = 1'000'000'000;

class TableTest : public ::testing::Test {
 protected:
  Ports& table(TableOptions options) { return state_.table<std::uint32_t, std::uint16_t>("ports", options); }

  // What `use` does as a decision at `now`; the rule it becomes.
  const Rule& decide(std::function<void(Flow&)> use, Nanoseconds now = 0) {
    graph_ = TestGraph::of(state_, [use = std::move(use)](Flow& flow) {
      use(flow);
      return flow.drop({"done", ""});
    });
    return graph_->decide(TestPacket(PacketBuilder()), now);
  }
  Learned learn(Ports& ports, std::uint32_t key, std::uint16_t value, Nanoseconds now = 0) {
    Learned learned{};
    decide([&](Flow& flow) { learned = flow.learn(ports, key, value); }, now);
    return learned;
  }
  // The value, or -1.
  int lookup(Ports& ports, std::uint32_t key) {
    int value = -1;
    decide([&](Flow& flow) {
      if (const std::uint16_t* found = flow.lookup(ports, key)) {
        value = *found;
      }
    });
    return value;
  }
  void set(Ports& ports, std::uint32_t key, std::uint16_t value, Nanoseconds now = 0) {
    Update update;
    update.set(ports, key, value);
    ASSERT_TRUE(update.commit(state_, now));
  }
  void erase(Ports& ports, std::uint32_t key) {
    Update update;
    update.erase(ports, key);
    ASSERT_TRUE(update.commit(state_, 0));
  }

  Epochs epochs_;
  State state_{epochs_, 1};
  std::unique_ptr<TestGraph> graph_;
};

TEST_F(TableTest, LearnsAndFinds) {
  Ports& ports = table({.capacity = 4});
  EXPECT_EQ(lookup(ports, 1), -1);
  EXPECT_EQ(learn(ports, 1, 10), Learned::added);
  EXPECT_EQ(learn(ports, 1, 10), Learned::unchanged);
  EXPECT_EQ(learn(ports, 1, 11), Learned::moved);
  EXPECT_EQ(lookup(ports, 1), 11);
  EXPECT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports.capacity(), 4U);
}

TEST_F(TableTest, WhatControlSetStays) {
  Ports& ports = table({.capacity = 4, .idle = second});
  learn(ports, 1, 10);
  set(ports, 1, 20);
  EXPECT_EQ(learn(ports, 1, 10), Learned::pinned);
  EXPECT_EQ(learn(ports, 1, 20), Learned::pinned);
  EXPECT_EQ(lookup(ports, 1), 20);
  state_.expire(100 * second);
  EXPECT_EQ(lookup(ports, 1), 20);
  erase(ports, 1);
  EXPECT_EQ(learn(ports, 1, 10), Learned::added);
}

TEST_F(TableTest, AFullTableSaysSo) {
  Ports& ports = table({.capacity = 2});
  EXPECT_EQ(learn(ports, 1, 1), Learned::added);
  EXPECT_EQ(learn(ports, 2, 2), Learned::added);
  EXPECT_EQ(learn(ports, 3, 3), Learned::full);
  EXPECT_EQ(ports.rejected(), 1U);
  EXPECT_EQ(lookup(ports, 3), -1);
  EXPECT_EQ(learn(ports, 2, 9), Learned::moved) << "those that are there may still move";
  Update update;
  update.set(ports, 3, 3);
  const auto report = update.commit(state_, 0);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("'ports' is full (2 entries)"), std::string::npos) << report.error().message;
  erase(ports, 1);
  EXPECT_EQ(learn(ports, 3, 3), Learned::added);
}

TEST_F(TableTest, OnlyWhatTookEffectKeepsARuleFromTheCache) {
  Ports& ports = table({.capacity = 1});
  const auto learning = [&ports](std::uint32_t key, std::uint16_t value) {
    return [&ports, key, value](Flow& flow) { flow.learn(ports, key, value); };
  };
  EXPECT_FALSE(decide(learning(1, 1)).not_cacheable.empty());
  EXPECT_TRUE(decide(learning(1, 1)).not_cacheable.empty());
  EXPECT_FALSE(decide(learning(1, 2)).not_cacheable.empty());
  EXPECT_TRUE(decide(learning(2, 2)).not_cacheable.empty()) << "the table is full";
}

TEST_F(TableTest, EveryChangeClearsTheRulesThatSawTheKey) {
  Ports& ports = table({.capacity = 1'024});
  const auto looking = [&ports](Flow& flow) { flow.lookup(ports, 1); };
  struct Case {
    const char* description;
    std::function<void()> change;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"learned", [&] { learn(ports, 1, 10); }},
           {"moved", [&] { learn(ports, 1, 11); }},
           {"set", [&] { set(ports, 1, 12); }},
           {"set again", [&] { set(ports, 1, 13); }},
           {"erased", [&] { erase(ports, 1); }},
       }) {
    const TestRule rule(decide(looking));
    EXPECT_TRUE(rule.valid());
    lookup(ports, 1);
    learn(ports, 1'000, 1);  // another key; if it shares the stripe, the first round clears the rule, which is allowed
    const TestRule second_rule(decide(looking));
    EXPECT_TRUE(second_rule.valid());
    c.change();
    EXPECT_FALSE(rule.valid()) << c.description;
    EXPECT_FALSE(second_rule.valid()) << c.description;
  }
}

TEST_F(TableTest, AChangeDuringTheTraceIsNotMissed) {
  Ports& ports = table({.capacity = 16});
  const Rule rule = decide([&ports](Flow& flow) { flow.lookup(ports, 1); });
  learn(ports, 1, 10);
  EXPECT_FALSE(TestRule(rule).valid());
}

TEST_F(TableTest, LearningWhatIsThereChangesNothing) {
  Ports& ports = table({.capacity = 16, .idle = second});
  learn(ports, 1, 10);
  const TestRule rule(decide([&ports](Flow& flow) { flow.lookup(ports, 1); }));
  EXPECT_EQ(learn(ports, 1, 10), Learned::unchanged);
  EXPECT_TRUE(rule.valid());
}

TEST_F(TableTest, ARuleThatFoundTheTableFullGoesWithTheFirstRoom) {
  for (const bool by_age : {false, true}) {
    Ports& ports = table({.capacity = 1, .idle = second});
    learn(ports, 1, 1);
    const TestRule rule(decide([&ports](Flow& flow) { flow.learn(ports, 2, 2); }));
    EXPECT_TRUE(rule.rule().not_cacheable.empty());
    EXPECT_TRUE(rule.valid());
    if (by_age) {
      state_.expire(2 * second);
    } else {
      erase(ports, 1);
    }
    EXPECT_FALSE(rule.valid());
    EXPECT_EQ(learn(ports, 2, 2), Learned::added);
  }
}

TEST_F(TableTest, IdleEntriesGo) {
  Ports& ports = table({.capacity = 16, .idle = 10 * second});
  learn(ports, 1, 1, 0);
  learn(ports, 2, 2, 5 * second);
  learn(ports, 1, 1, 3 * second);  // seen again
  state_.expire(10 * second);
  EXPECT_EQ(ports.size(), 2U);
  const TestRule rule(decide([&ports](Flow& flow) { flow.lookup(ports, 1); }));
  state_.expire(13 * second - 1);
  EXPECT_EQ(ports.size(), 2U);
  EXPECT_TRUE(rule.valid());
  state_.expire(13 * second);
  EXPECT_EQ(lookup(ports, 1), -1);
  EXPECT_EQ(lookup(ports, 2), 2);
  EXPECT_FALSE(rule.valid());
  state_.expire(15 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, LookingUpDoesNotKeepAnEntryAlive) {
  Ports& ports = table({.capacity = 16, .idle = second});
  learn(ports, 1, 1, 0);
  TestRule rule(decide([&ports](Flow& flow) { flow.lookup(ports, 1); }));
  rule.use(5 * second);
  state_.expire(5 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, LearningRulesInUseKeepTheirEntryAlive) {
  Ports& ports = table({.capacity = 16, .idle = 10 * second});
  learn(ports, 1, 1, 0);
  auto rule = std::make_unique<TestRule>(decide([&ports](Flow& flow) { flow.learn(ports, 1, 1); }, second));
  EXPECT_TRUE(rule->rule().not_cacheable.empty());
  rule->use(8 * second);
  state_.expire(12 * second);
  EXPECT_EQ(ports.size(), 1U);
  rule->use(17 * second);
  rule.reset();  // what it has seen counts after it is gone
  state_.expire(26 * second);
  EXPECT_EQ(ports.size(), 1U);
  state_.expire(27 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, UseCountsAlsoWhereAChangeClearsTheRule) {
  Ports& ports = table({.capacity = 1, .idle = 10 * second});  // one entry: all keys share its fate
  learn(ports, 1, 1, 0);
  TestRule rule(decide([&ports](Flow& flow) { flow.learn(ports, 1, 1); }, 0));
  rule.use(9 * second);
  learn(ports, 1, 2, 1 * second);  // moved: the rule is cleared and has handed its use over
  EXPECT_FALSE(rule.valid());
  state_.expire(18 * second);
  EXPECT_EQ(ports.size(), 1U);
  state_.expire(19 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, ASlotUsedAgainHasAnAgeOfItsOwn) {
  Ports& ports = table({.capacity = 1, .idle = 10 * second});
  learn(ports, 1, 1, 0);
  erase(ports, 1);
  learn(ports, 2, 2, 9 * second);
  state_.expire(10 * second);  // the first entry's date
  EXPECT_EQ(lookup(ports, 2), 2);
  state_.expire(19 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, AnEntryThatARollbackUnpinsAges) {
  Ports& ports = table({.capacity = 1, .idle = 10 * second});
  learn(ports, 1, 1, 0);
  Update update;
  update.set(ports, 1, 2);
  update.set(ports, 2, 2);  // no room
  EXPECT_FALSE(update.commit(state_, 5 * second));
  EXPECT_EQ(lookup(ports, 1), 1);
  EXPECT_EQ(learn(ports, 1, 3, 6 * second), Learned::moved) << "not pinned any more";
  state_.expire(16 * second);
  EXPECT_EQ(ports.size(), 0U);
}

TEST_F(TableTest, ForEachSeesAll) {
  Ports& ports = table({.capacity = 500});
  std::map<std::uint32_t, std::uint16_t> expected;
  for (std::uint16_t i = 0; i < 500; ++i) {
    learn(ports, i * 7U, i);
    expected[i * 7U] = i;
  }
  std::map<std::uint32_t, std::uint16_t> seen;
  ports.for_each([&](std::uint32_t key, std::uint16_t value) { seen[key] = value; });
  EXPECT_EQ(seen, expected);
}

TEST_F(TableTest, RandomUseEqualsAMap) {
  Ports& ports = table({.capacity = 40, .idle = 100});
  struct Entry {
    std::uint16_t value;
    bool pinned;
    Nanoseconds used;
  };
  std::map<std::uint32_t, Entry> model;
  Random random(17);
  Nanoseconds now = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += random.below(4);
    const std::uint32_t key = random.below(60);
    const auto value = static_cast<std::uint16_t>(random.below(3));
    const auto place = model.find(key);
    switch (random.below(6)) {
      case 0: {
        Update update;
        update.set(ports, key, value);
        ASSERT_EQ(update.commit(state_, now).has_value(), place != model.end() || model.size() < 40);
        if (place != model.end()) {
          place->second = {value, true, place->second.used};
        } else if (model.size() < 40) {
          model[key] = {value, true, now};
        }
        break;
      }
      case 1:
        erase(ports, key);
        model.erase(key);
        break;
      case 2:
        state_.expire(now);
        std::erase_if(model, [&](const auto& e) { return !e.second.pinned && e.second.used + 100 <= now; });
        break;
      default: {
        Learned expected = Learned::added;
        if (place != model.end()) {
          Entry& entry = place->second;
          expected = entry.pinned ? Learned::pinned : entry.value == value ? Learned::unchanged : Learned::moved;
          if (!entry.pinned) {
            entry = {value, false, now};
          }
        } else if (model.size() == 40) {
          expected = Learned::full;
        } else {
          model[key] = {value, false, now};
        }
        ASSERT_EQ(learn(ports, key, value, now), expected) << "step " << step;
      }
    }
    ASSERT_EQ(ports.size(), model.size()) << "step " << step;
    const std::uint32_t probe = random.below(60);
    ASSERT_EQ(lookup(ports, probe), model.contains(probe) ? model[probe].value : -1) << "step " << step;
  }
}

TEST_F(TableTest, ThreadsLearnExpireAndErase) {
  Ports& ports = table({.capacity = 64, .idle = 50});
  std::atomic<Nanoseconds> now{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    threads.emplace_back([this, &ports, &now, seed] {
      Random random(seed);
      const auto graph = TestGraph::of(state_, [&](Flow& flow) {
        flow.learn(ports, random.below(100), static_cast<std::uint16_t>(random.below(2)));
        flow.lookup(ports, random.below(100));
        return flow.drop({"done", ""});
      });
      std::deque<TestRule> rules;
      for (int i = 0; i < 3'000; ++i) {
        const Nanoseconds at = now.fetch_add(1) + 1;
        rules.emplace_back(graph->decide(TestPacket(PacketBuilder()), at));
        rules.back().use(at);
        if (rules.size() > 20) {
          rules.pop_front();
        }
        state_.expire(at);
      }
    });
  }
  threads.emplace_back([this, &ports, &now] {
    Random random(9);
    for (int i = 0; i < 2'000; ++i) {
      Update update;
      const std::uint32_t key = random.below(100);
      random.one_in(2) ? update.erase(ports, key) : update.set(ports, key, 7);
      (void)update.commit(state_, now);
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::size_t count = 0;
  ports.for_each([&](std::uint32_t, std::uint16_t) { ++count; });
  EXPECT_EQ(ports.size(), count);
  EXPECT_LE(count, 64U);
}

/// Runs something when it is compared: in the middle of an update.
struct HookedKey {
  std::uint32_t number = 0;
  static inline std::function<void()> hook;
  bool operator==(const HookedKey& other) const {
    if (hook) {
      std::exchange(hook, nullptr)();
    }
    return number == other.number;
  }
};

TEST_F(TableTest, UndoneEraseFindsItsPlaceAgain) {
  Ports& ports = table({.capacity = 2});
  auto& full = state_.table<HookedKey, std::uint16_t>("full", {.capacity = 1});
  Update fill;
  fill.set(full, {1}, 1);
  fill.set(ports, 1, 10);
  fill.set(ports, 2, 20);
  ASSERT_TRUE(fill.commit(state_, 0));

  Update update;
  update.erase(ports, 1);
  update.set(full, {1}, 2);  // the moment
  for (std::uint32_t key = 2; key < 1000; ++key) {
    update.set(full, {key}, 1);  // has no room
  }
  Learned meanwhile{};
  HookedKey::hook = [&] { meanwhile = learn(ports, 3, 30); };
  EXPECT_FALSE(update.commit(state_, 0));
  EXPECT_EQ(meanwhile, Learned::full) << "the place is kept until the update stands";
  EXPECT_EQ(lookup(ports, 1), 10);
  EXPECT_EQ(lookup(ports, 2), 20);
  EXPECT_EQ(ports.size(), 2U);

  erase(ports, 1);
  EXPECT_EQ(ports.size(), 1U);
  EXPECT_EQ(learn(ports, 3, 30), Learned::added) << "and free when it does";
}

TEST_F(TableTest, AnUpdateMayUseThePlaceItEmptied) {
  Ports& ports = table({.capacity = 1});
  set(ports, 1, 10);
  Update update;
  update.erase(ports, 1);
  update.set(ports, 2, 20);
  ASSERT_TRUE(update.commit(state_, 0));
  EXPECT_EQ(lookup(ports, 1), -1);
  EXPECT_EQ(lookup(ports, 2), 20);
}

}  // namespace
}  // namespace weir
