#include <weir/flow/group.h>

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

Member member(std::uint16_t port) { return {.port = PortId{port}, .dst = {{2, 0, 0, 0, 0, 1}}, .src = {}}; }

std::vector<Member> members(std::uint16_t count, std::uint16_t from = 0) {
  std::vector<Member> all;
  for (std::uint16_t i = 0; i < count; ++i) {
    all.push_back(member(static_cast<std::uint16_t>(from + i)));
  }
  return all;
}

std::array<std::uint16_t, Members::buckets> owners(const Members& group) {
  std::array<std::uint16_t, Members::buckets> owner{};
  for (std::size_t i = 0; i < Members::buckets; ++i) {
    owner[i] = group.pick(i)->port.number;
  }
  return owner;
}

void expect_fair(const Members& group) {
  std::map<std::uint16_t, std::size_t> share;
  for (const Member& each : group.all()) {
    share[each.port.number] = 0;
  }
  for (const std::uint16_t owner : owners(group)) {
    ++share.at(owner);
  }
  const std::size_t least = Members::buckets / group.all().size();
  for (const auto& [port, buckets] : share) {
    EXPECT_GE(buckets, least) << "port " << port << " of " << group.all().size();
    EXPECT_LE(buckets, (Members::buckets + group.all().size() - 1) / group.all().size())
        << "port " << port << " of " << group.all().size();
  }
}

TEST(Members, NobodyToPick) {
  EXPECT_EQ(Members().pick(7), nullptr);
  EXPECT_EQ(Members({}, Members(members(3), {})).pick(7), nullptr);
  EXPECT_EQ(Members(members(1), Members({}, {})).pick(7)->port.number, 0);
}

TEST(Members, SharesAreFair) {
  for (std::uint16_t n = 1; n <= Members::limit; ++n) {
    expect_fair(Members(members(n), {}));
  }
}

TEST(Members, WhoLeavesMovesOnlyItsOwnFlows) {
  for (std::uint16_t n = 2; n <= Members::limit; ++n) {
    for (const std::uint16_t leaving :
         {std::uint16_t{0}, static_cast<std::uint16_t>(n / 2), static_cast<std::uint16_t>(n - 1)}) {
      const Members before(members(n), {});
      auto left = members(n);
      left.erase(left.begin() + leaving);
      const Members after(left, before);
      const auto was = owners(before);
      const auto is = owners(after);
      for (std::size_t i = 0; i < Members::buckets; ++i) {
        if (was[i] != leaving) {
          ASSERT_EQ(is[i], was[i]) << n << " members, bucket " << i;
        }
      }
      expect_fair(after);
    }
  }
}

TEST(Members, WhoJoinsTakesOnlyItsShare) {
  for (std::uint16_t n = 1; n < Members::limit; ++n) {
    const Members before(members(n), {});
    const Members after(members(static_cast<std::uint16_t>(n + 1)), before);
    const auto was = owners(before);
    const auto is = owners(after);
    std::size_t moved = 0;
    for (std::size_t i = 0; i < Members::buckets; ++i) {
      if (is[i] != was[i]) {
        ASSERT_EQ(is[i], n) << "a bucket moved between members that stay";
        ++moved;
      }
    }
    EXPECT_GE(moved, Members::buckets / (n + 1U)) << n;
    EXPECT_LE(moved, Members::buckets / (n + 1U) + 1) << n;
    expect_fair(after);
  }
}

TEST(Members, FairThroughManyChanges) {
  Random random(9);
  std::vector<Member> current = members(5);
  Members group(current, {});
  std::uint16_t next = 5;
  for (int step = 0; step < 2'000; ++step) {
    if (current.size() > 1 && (random.one_in(2) || current.size() == Members::limit)) {
      current.erase(current.begin() + random.below(static_cast<std::uint32_t>(current.size())));
    } else {
      current.insert(current.begin() + random.below(static_cast<std::uint32_t>(current.size() + 1)), member(next++));
    }
    group = Members(current, group);
    ASSERT_NO_FATAL_FAILURE(expect_fair(group)) << "step " << step;
  }
}

TEST(Members, OrderAndRewritesDoNotMoveFlows) {
  const Members before(members(7), {});
  auto reversed = members(7);
  std::ranges::reverse(reversed);
  EXPECT_EQ(owners(Members(reversed, before)), owners(before));
}

TEST(FloodDomains, AVlanWithoutPortsReachesAll) {
  FloodDomains domains{.all = {PortId{1}, PortId{2}, PortId{3}}, .by_vlan = {{7, {PortId{2}}}}};
  EXPECT_EQ(domains.ports(7).size(), 1U);
  EXPECT_EQ(domains.ports(8).size(), 3U);
}

}  // namespace
}  // namespace weir
