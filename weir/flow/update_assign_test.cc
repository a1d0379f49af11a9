#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>
#include <weir/flow/update.h>

namespace weir {
namespace {

using Rules = std::vector<std::pair<Match, int>>;
using Routes = std::vector<std::pair<IpPrefix, int>>;

Match to_port(std::uint16_t port) { return Match().with(Layer::udp).with(l4::dst_port, port); }

class AssignTest : public ::testing::Test {
 protected:
  std::size_t commit(const std::function<void(Update&)>& fill) {
    Update update;
    fill(update);
    const auto report = update.commit(state_, 0);
    EXPECT_TRUE(report) << report.error().message;
    return report ? report->rules_cleared : 0;
  }
  /// What the ordered rules and the routes say of a packet; -1: nothing.
  std::pair<int, int> found(std::uint16_t port, std::string_view dst = "10.1.0.2") {
    std::pair<int, int> result{-1, -1};
    const auto graph = TestGraph::of(state_, [&](Flow& flow) {
      const int* rule = flow.match(rules_);
      const int* route = flow.lookup(routes_, ip::dst);
      result = {rule != nullptr ? *rule : -1, route != nullptr ? *route : -1};
      return flow.drop({"done", ""});
    });
    graph->decide(TestPacket(PacketBuilder().ipv4("10.0.0.1", std::string(dst)).udp(1, port)));
    return result;
  }
  Difference preview(const Rules& rules) {
    Update update;
    update.assign(rules_, rules);
    const auto differences = update.preview(state_);
    return differences.empty() ? Difference{} : differences.front();
  }

  Epochs epochs_;
  State state_{epochs_, 1};
  Classifier<int>& rules_ = state_.classifier<int>("rules");
  Prefixes<int>& routes_ = state_.prefixes<int>("routes");
  Versioned<int>& mode_ = state_.versioned("mode", 1);
};

// As if the list had been set from nothing, whatever it was before; and the preview says how many rules differ.
TEST_F(AssignTest, RandomListsAreWhatTheySay) {
  constexpr std::uint64_t seed = 4;
  Random random(seed);
  Rules now;
  for (unsigned round = 0; round < 300; ++round) {
    Rules next = now;
    switch (random.below(4)) {
      case 0:  // anew
        next.clear();
        for (unsigned i = random.below(30); i > 0; --i) {
          next.emplace_back(to_port(static_cast<std::uint16_t>(random.below(8))), static_cast<int>(random.below(3)));
        }
        break;
      case 1:  // one more, often at the front: orders run out there
        next.emplace(next.begin() + static_cast<std::ptrdiff_t>(random.one_in(2) ? 0 : random.below(next.size() + 1)),
                     to_port(static_cast<std::uint16_t>(random.below(8))), static_cast<int>(random.below(3)));
        break;
      case 2:
        if (!next.empty()) {
          next.erase(next.begin() + static_cast<std::ptrdiff_t>(random.below(next.size())));
        }
        break;
      default:
        if (!next.empty()) {
          next[random.below(next.size())].second = static_cast<int>(random.below(3));
        }
    }
    const Difference difference = preview(next);
    EXPECT_EQ(now.size() + difference.added - difference.removed, next.size());
    commit([&](Update& update) { update.assign(rules_, next); });
    ASSERT_EQ(rules_.size(), next.size()) << "seed " << seed << ", round " << round;
    for (std::uint16_t port = 0; port < 8; ++port) {
      const auto first = std::ranges::find(next, to_port(port), &Rules::value_type::first);
      ASSERT_EQ(found(port).first, first == next.end() ? -1 : first->second) << "seed " << seed << ", round " << round;
    }
    now = next;
    EXPECT_EQ(preview(now).name, "") << "nothing differs any more";
  }
}

TEST_F(AssignTest, OneRuleMoreTouchesNoOther) {
  Rules rules;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    rules.emplace_back(to_port(i), i);
  }
  commit([&](Update& update) { update.assign(rules_, rules); });
  for (const std::size_t place : {std::size_t{0}, std::size_t{500}, rules.size()}) {
    Rules more = rules;
    more.emplace(more.begin() + static_cast<std::ptrdiff_t>(place), to_port(2000), 1);
    const Difference difference = preview(more);
    EXPECT_EQ(std::tuple(difference.added, difference.removed, difference.changed), std::tuple(1U, 0U, 0U)) << place;
  }
}

TEST_F(AssignTest, RoutesBecomeTheList) {
  const auto prefix = [](const char* text) { return *IpPrefix::parse(text); };
  const Routes first{{prefix("10.0.0.0/8"), 1}, {prefix("10.1.0.0/16"), 2}, {prefix("2001:db8::/32"), 3}};
  commit([&](Update& update) { update.assign(routes_, first); });
  EXPECT_EQ(found(1).second, 2);
  const Routes second{{prefix("10.0.0.0/8"), 1}, {prefix("10.2.0.0/16"), 4}, {prefix("2001:db8::/32"), 5}};
  Update update;
  update.assign(routes_, second);
  const auto differences = update.preview(state_);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(std::tuple(differences[0].name, differences[0].added, differences[0].removed, differences[0].changed),
            std::tuple("routes", 1U, 1U, 1U));
  ASSERT_TRUE(update.commit(state_, 0));
  EXPECT_EQ(found(1).second, 1);
  EXPECT_EQ(found(1, "10.2.3.4").second, 4);
  EXPECT_EQ(routes_.size(), 3U);
}

TEST_F(AssignTest, AnEqualValueIsNoChange) {
  Update same;
  same.assign(mode_, 1);
  EXPECT_TRUE(same.preview(state_).empty());
  Update other;
  other.assign(mode_, 2);
  EXPECT_EQ(other.preview(state_).size(), 1U);
  ASSERT_TRUE(other.commit(state_, 0));
  int read = 0;
  const auto graph = TestGraph::of(state_, [&](Flow& flow) {
    read = flow.read(mode_);
    return flow.drop({"done", ""});
  });
  graph->decide(TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 1)));
  EXPECT_EQ(read, 2);
}

TEST_F(AssignTest, AFailedUpdateLeavesTheList) {
  auto& small = state_.table<std::uint32_t, std::uint32_t>("small", {.capacity = 1});
  commit([&](Update& update) { update.assign(rules_, Rules{{to_port(1), 1}, {to_port(2), 2}}); });
  Update update;
  update.assign(rules_, Rules{{to_port(2), 3}});
  update.set(small, 1, 1);
  update.set(small, 2, 1);
  EXPECT_FALSE(update.commit(state_, 0));
  EXPECT_EQ(found(1).first, 1);
  EXPECT_EQ(found(2).first, 2);
  EXPECT_EQ(preview({{to_port(1), 1}, {to_port(2), 2}}).name, "");
}

struct PortKey {
  PortId port;
  std::uint32_t address = 0;
  bool operator==(const PortKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t hash_seed) const { return hash_value(address, port.hash(hash_seed)); }
  [[nodiscard]] bool mentions(PortId other) const { return port == other; }
};

TEST_F(AssignTest, ForgettingAPortLeavesNothingThatNamesIt) {
  auto& by_value = state_.table<std::uint32_t, PortId>("by value", {.capacity = 8});
  auto& by_key = state_.table<PortKey, std::uint32_t>("by key", {.capacity = 8});
  Group& group = state_.group("group");
  commit([&](Update& update) {
    for (std::uint16_t port = 0; port < 4; ++port) {
      update.set(by_value, port, PortId{port});
      update.set(by_key, {PortId{port}, 7}, port);
      update.flood_to(PortId{port});
    }
    update.set_flood_domain(5, {PortId{2}});
    update.set_members(group, {{.port = PortId{1}}, {.port = PortId{2}}});
  });
  commit([&](Update& update) { update.forget(PortId{2}); });
  EXPECT_EQ(by_value.size(), 3U);
  EXPECT_EQ(by_key.size(), 3U);
  const EpochScope scope(epochs_);
  EXPECT_EQ(group.members().all().size(), 1U);
  EXPECT_THAT(state_.flood_domains().ports(0), testing::ElementsAre(PortId{0}, PortId{1}, PortId{3}));
  EXPECT_TRUE(state_.flood_domains().ports(5).empty()) << "not all ports again";
}

TEST_F(AssignTest, FloodDomains) {
  constexpr DomainId first{5'000};
  constexpr DomainId end{6'000};
  const auto domain = [](std::uint16_t port) {
    return std::make_shared<const FloodDomain>(FloodDomain{.ports = {PortId{port}}, .tagged = {}, .remotes = {}});
  };
  const auto ports = [&](std::uint32_t number) {
    const EpochScope scope(epochs_);
    const FloodDomain* found = state_.flood_domains().find({number});
    return found == nullptr ? std::string("none")
                            : fmt::format("{}", found->ports.size() == 1 ? found->ports[0].number : 0);
  };
  const auto assign = [&](std::vector<FloodDomains::Numbered> domains) {
    Update update;
    update.assign("floods", first, end, domains);
    const auto differences = update.preview(state_);
    commit([&](Update& change) { change.assign("floods", first, end, domains); });
    return differences.empty() ? std::string("nothing")
                               : fmt::format("{} +{} -{} ~{}", differences[0].name, differences[0].added,
                                             differences[0].removed, differences[0].changed);
  };
  commit([&](Update& update) {
    update.set_flood_domain({4'999}, domain(1));
    update.set_flood_domain(end, domain(2));
  });
  EXPECT_EQ(assign({{{5'000}, domain(3)}, {{5'001}, domain(4)}, {{5'999}, domain(5)}}), "floods +3 -0 ~0");
  EXPECT_EQ(assign({{{5'000}, domain(3)}, {{5'001}, domain(4)}, {{5'999}, domain(5)}}), "nothing");
  EXPECT_EQ(assign({{{5'000}, domain(3)}, {{5'001}, domain(6)}, {{5'002}, domain(7)}}), "floods +1 -1 ~1");
  EXPECT_EQ(ports(5'000) + ports(5'001) + ports(5'002) + ports(5'999), "367none");
  EXPECT_EQ(ports(4'999) + ports(6'000), "12") << "others are left alone";
  Update failing;
  failing.set_flood_domain({5'000}, nullptr);
  failing.set_flood_domain({5'500}, domain(8));
  failing.set_members(state_.group("too large"), std::vector<Member>(Members::limit + 1));
  EXPECT_FALSE(failing.commit(state_, 0));
  EXPECT_EQ(ports(5'000) + ports(5'500), "3none");
  commit([&](Update& update) { update.forget(PortId{6}); });
  EXPECT_EQ(ports(5'001), "0") << "there is none any more";
  commit([&](Update& update) { update.set_flood_domain({5'000}, nullptr); });
  EXPECT_EQ(ports(5'000), "none");
}

TEST_F(AssignTest, TemporaryCountersAreListedWhileTheyAreHeld) {
  const auto names = [&] {
    std::vector<std::string> list;
    state_.for_each_counter([&](const Counter& counter) { list.push_back(counter.name()); });
    return list;
  };
  auto first = state_.temporary_counter("x");
  auto again = state_.temporary_counter("x");
  EXPECT_EQ(first, again);
  EXPECT_THAT(names(), testing::ElementsAre("x"));
  first.reset();
  EXPECT_THAT(names(), testing::ElementsAre("x"));
  again.reset();
  EXPECT_TRUE(names().empty());
  for (unsigned i = 0; i < 10'000; ++i) {
    (void)state_.temporary_counter(fmt::format("{}", i));
  }
  EXPECT_TRUE(names().empty());
}

}  // namespace
}  // namespace weir
