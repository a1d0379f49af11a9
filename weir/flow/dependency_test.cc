#include <weir/flow/dependency.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

std::uint32_t generation_of(Dependents& dependents) {
  const std::lock_guard guard(dependents.lock());
  return dependents.generation();
}

std::size_t change(Dependents& dependents) {
  const std::lock_guard guard(dependents.lock());
  return dependents.changed();
}

struct Touched final : Refreshable {
  void touch(std::uint32_t token, Nanoseconds time) override { seen.emplace_back(token, time); }
  std::vector<std::pair<std::uint32_t, Nanoseconds>> seen;
};

TEST(Dependents, AChangeClearsWhoIsLinked) {
  Dependents stripe;
  std::array<RuleAnchor, 3> rules;
  std::array<DependencyLink, 3> links;
  const std::uint32_t generation = generation_of(stripe);
  for (std::size_t i = 0; i < 3; ++i) {
    rules[i].valid = 1;
    links[i].rule = &rules[i];
    EXPECT_TRUE(stripe.link(links[i], generation));
  }
  Dependents::unlink(links[1]);
  rules[2].valid = 0;
  EXPECT_EQ(change(stripe), 1U) << "of those linked, one was valid";
  EXPECT_EQ(rules[0].valid, 0U);
  EXPECT_EQ(rules[1].valid, 1U);
  EXPECT_EQ(change(stripe), 0U);
  Dependents::unlink(links[0]);  // undone already
}

TEST(Dependents, WhoSawAnOlderGenerationIsNotLinked) {
  Dependents stripe;
  RuleAnchor rule;
  rule.valid = 1;
  DependencyLink link{.rule = &rule};
  const std::uint32_t generation = generation_of(stripe);
  change(stripe);
  EXPECT_FALSE(stripe.link(link, generation));
  EXPECT_EQ(link.list, nullptr);
  EXPECT_TRUE(stripe.link(link, generation + 1));
  Dependents::unlink(link);
}

TEST(Dependents, OneRuleOnManyStripes) {
  std::array<Dependents, 3> stripes;
  RuleAnchor rule;
  rule.valid = 1;
  std::array<DependencyLink, 3> links;
  for (std::size_t i = 0; i < 3; ++i) {
    links[i].rule = &rule;
    EXPECT_TRUE(stripes[i].link(links[i], 0));
  }
  EXPECT_EQ(change(stripes[1]), 1U);
  EXPECT_EQ(change(stripes[0]), 0U) << "cleared once";
  EXPECT_EQ(rule.valid, 0U);
  for (DependencyLink& link : links) {
    Dependents::unlink(link);
  }
}

TEST(Dependents, UnlinksInAnyOrder) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    Dependents stripe;
    std::deque<RuleAnchor> rules(8);
    std::deque<DependencyLink> links(8);
    for (std::size_t i = 0; i < links.size(); ++i) {
      rules[i].valid = 1;
      links[i].rule = &rules[i];
      stripe.link(links[i], 0);
    }
    std::vector<bool> linked(8, true);
    for (int step = 0; step < 5; ++step) {
      const std::uint32_t i = random.below(8);
      Dependents::unlink(links[i]);
      linked[i] = false;
    }
    change(stripe);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(rules[i].valid, linked[i] ? 0U : 1U);
    }
  }
}

TEST(Dependents, UseIsHandedOverOnUnlinkAndOnChange) {
  Dependents stripe;
  Touched table;
  Touched other;
  std::array<RuleAnchor, 3> rules;
  std::array<DependencyLink, 3> links;
  for (std::size_t i = 0; i < 3; ++i) {
    rules[i].last_used = 100 * (i + 1);
    links[i].rule = &rules[i];
    links[i].refreshed = i == 2 ? &other : &table;
    links[i].token = 7;
    stripe.link(links[i], 0);
  }
  {
    const std::lock_guard guard(stripe.lock());
    EXPECT_EQ(stripe.last_used(table, 7), 200U);
    EXPECT_EQ(stripe.last_used(table, 8), 0U);
    EXPECT_EQ(stripe.last_used(other, 7), 300U);
  }
  Dependents::unlink(links[1]);
  ASSERT_EQ(table.seen.size(), 1U);
  EXPECT_EQ(table.seen[0], (std::pair<std::uint32_t, Nanoseconds>{7, 200}));
  change(stripe);
  ASSERT_EQ(table.seen.size(), 2U);
  EXPECT_EQ(table.seen[1], (std::pair<std::uint32_t, Nanoseconds>{7, 100}));
  EXPECT_EQ(other.seen.size(), 1U);
}

TEST(Dependents, AnUnlinkThatAChangeOvertakesDoesNothing) {
  Dependents stripe;
  Touched table;
  RuleAnchor rule;
  rule.valid = 1;
  DependencyLink link{.rule = &rule, .refreshed = &table};
  stripe.link(link, 0);
  std::thread owner;
  {
    const std::lock_guard guard(stripe.lock());
    owner = std::thread([&link] { Dependents::unlink(link); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // by now it most likely waits for the lock
    stripe.changed();
  }
  owner.join();
  EXPECT_EQ(table.seen.size(), 1U);
  EXPECT_EQ(change(stripe), 0U);
}

// One thread changes a value under two stripes, others decide on it, link and unlink: no rule that is linked and valid
// may have been decided on another value than the present one.
TEST(Dependents, NoRuleMissesAChangeOrOutlivesOne) {
  struct Stripe {
    Dependents dependents;
    std::uint64_t value = 0;
  };
  std::array<Stripe, 2> stripes;
  Touched sink;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> installs{0};
  std::atomic<std::uint64_t> wrong{0};

  const auto owner = [&](std::uint64_t seed) {
    Random random(seed);
    struct Held {
      RuleAnchor anchor;
      std::array<DependencyLink, 2> links;
      std::array<std::uint64_t, 2> seen{};
    };
    std::deque<Held> held(16);
    while (!stop.load(std::memory_order_relaxed)) {
      Held& rule = held[random.below(16)];
      for (DependencyLink& link : rule.links) {
        Dependents::unlink(link);
      }
      rule.anchor.valid.store(1, std::memory_order_relaxed);
      bool stands = true;
      for (std::size_t i = 0; i < 2; ++i) {
        std::uint32_t generation = 0;
        {
          const std::lock_guard guard(stripes[i].dependents.lock());
          rule.seen[i] = stripes[i].value;
          generation = stripes[i].dependents.generation();
        }
        rule.links[i].rule = &rule.anchor;
        stands = stripes[i].dependents.link(rule.links[i], generation) && stands;
      }
      if (!stands) {
        rule.anchor.valid.store(0, std::memory_order_relaxed);
        continue;
      }
      installs.fetch_add(1, std::memory_order_relaxed);
      rule.anchor.last_used.store(random(), std::memory_order_relaxed);
      // A hit: what is valid must be as decided, unless it changes right now.
      for (std::size_t i = 0; i < 2; ++i) {
        const std::lock_guard guard(stripes[i].dependents.lock());
        if (rule.anchor.valid.load(std::memory_order_acquire) != 0 && stripes[i].value != rule.seen[i]) {
          wrong.fetch_add(1, std::memory_order_relaxed);
        }
      }
    }
    for (Held& rule : held) {
      for (DependencyLink& link : rule.links) {
        Dependents::unlink(link);
      }
    }
  };

  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    threads.emplace_back(owner, seed);
  }
  for (int i = 0; i < 20'000 || (installs.load() < 1'000 && i < 10'000'000); ++i) {
    Stripe& stripe = stripes[static_cast<std::size_t>(i % 2)];
    const std::lock_guard guard(stripe.dependents.lock());
    ++stripe.value;
    stripe.dependents.changed();
  }
  stop = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(installs, 0U);
  for (Stripe& stripe : stripes) {
    EXPECT_EQ(change(stripe.dependents), 0U) << "everyone unlinked";
  }
}

}  // namespace
}  // namespace weir
