#include <weir/flow/paths.h>

#include <gtest/gtest.h>

#include <weir/flow/update.h>

namespace weir {
namespace {

const IpAddress one = *IpAddress::parse("192.0.2.1");
const IpAddress two = *IpAddress::parse("2001:db8::2");

PathKey key(std::uint16_t port, const IpAddress& address = one) { return {PortId{port}, address}; }
PathWish watched(std::uint16_t port, Nanoseconds interval = 300'000'000) {
  return {key(port), BfdSettings{.interval = interval}};
}

class PathsOfANode : public testing::Test {
 protected:
  /// What stages find; nothing: no entry.
  std::optional<bool> found(const PathKey& wanted) {
    std::optional<bool> up;
    paths.table().for_each([&](const PathKey& each, const PathState& value) {
      if (each == wanted) {
        up = value.up;
      }
    });
    return up;
  }

  Epochs epochs;
  State state{epochs, 1};
  Paths& paths = state.paths();
};

TEST_F(PathsOfANode, FollowTheirLink) {
  EXPECT_TRUE(paths.up(key(0))) << "nobody has said otherwise";
  paths.want("router", {{key(0)}, {key(1)}});
  EXPECT_EQ(found(key(0)), true);
  paths.link(PortId{0}, false);
  EXPECT_EQ(found(key(0)), false);
  EXPECT_EQ(found(key(1)), true);
  paths.session(key(0), true);
  EXPECT_EQ(found(key(0)), false) << "it has no session";
  paths.link(PortId{0}, true);
  EXPECT_EQ(found(key(0)), true);
  paths.want("router", {});
  EXPECT_EQ(found(key(0)), std::nullopt);
}

TEST_F(PathsOfANode, FollowTheirSession) {
  paths.want("router", {watched(0)});
  EXPECT_EQ(found(key(0)), true) << "a session that was never up says nothing";
  paths.session(key(0), false);
  EXPECT_EQ(found(key(0)), false);
  paths.link(PortId{0}, false);
  paths.session(key(0), true);
  EXPECT_EQ(found(key(0)), false) << "both must be up";
  paths.link(PortId{0}, true);
  EXPECT_EQ(found(key(0)), true);
  paths.session(key(0), false);
  paths.want("router", {{key(0)}});
  EXPECT_EQ(found(key(0)), true) << "the session is no longer asked for";
}

TEST_F(PathsOfANode, ServicesShareThem) {
  const std::uint64_t before = paths.version();
  paths.want("router", {watched(0, 300'000'000)});
  paths.want("vswitch", {watched(0, 10'000'000), {key(1, two)}});
  EXPECT_EQ(paths.wanted(), (std::vector<PathWish>{watched(0, 10'000'000), {key(1, two)}}));
  EXPECT_EQ(paths.version(), before + 2);
  paths.want("vswitch", {});
  EXPECT_EQ(paths.wanted(), std::vector<PathWish>{watched(0, 300'000'000)});
  paths.want("vswitch", {});
  EXPECT_EQ(paths.version(), before + 3) << "nothing new";
}

TEST_F(PathsOfANode, GoWithTheirPort) {
  paths.want("router", {watched(0), {key(1)}});
  ASSERT_TRUE(Update().commit(state, 1));
  Update update;
  update.forget(PortId{0});
  ASSERT_TRUE(update.commit(state, 2));
  EXPECT_EQ(found(key(0)), std::nullopt);
  EXPECT_EQ(paths.wanted(), std::vector<PathWish>{{key(1)}});
}

TEST_F(PathsOfANode, AreBounded) {
  std::vector<PathWish> many;
  for (std::uint32_t i = 0; i <= Paths::capacity; ++i) {
    many.push_back({key(0, Ipv4Address{{10, 0, static_cast<std::uint8_t>(i / 256), static_cast<std::uint8_t>(i)}})});
  }
  paths.want("router", many);
  EXPECT_EQ(paths.wanted().size(), Paths::capacity);
  EXPECT_EQ(paths.table().size(), Paths::capacity);
  EXPECT_EQ(paths.table().rejected(), 0U);
}

Member member(std::uint16_t port, bool follows = true) {
  return {.port = PortId{port}, .dst = {}, .src = {}, .path = follows ? std::optional(one) : std::nullopt};
}

class Group4 : public PathsOfANode {
 protected:
  void SetUp() override {
    std::vector<PathWish> wishes;
    std::vector<Member> members;
    for (std::uint16_t port = 0; port < 4; ++port) {
      wishes.push_back(watched(port));
      members.push_back(member(port));
    }
    paths.want("test", wishes);
    Update update;
    update.set_members(group, members);
    ASSERT_TRUE(update.commit(state, 1));
  }
  void set(std::uint16_t port, bool up) { paths.session(key(port), up); }
  std::vector<std::uint16_t> owners() {
    const EpochScope scope(epochs);
    std::vector<std::uint16_t> all;
    for (std::uint64_t flow = 0; flow < 10'000; ++flow) {
      const Member* picked = group.members().pick(hash_value(flow, 5));
      all.push_back(picked != nullptr ? picked->port.number : 99);
    }
    return all;
  }

  Group& group = state.group("g");
};

TEST_F(Group4, AMembersFailureMovesItsOwnFlowsAndItsReturnMovesThemBack) {
  const auto all = owners();
  for (std::uint16_t first = 0; first < 4; ++first) {
    set(first, false);
    const auto without = owners();
    std::array<unsigned, 4> moved{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_NE(without[i], first);
      ASSERT_TRUE(all[i] == first || without[i] == all[i]);
      moved[without[i]] += all[i] == first ? 1 : 0;
    }
    for (std::uint16_t other = 0; other < 4; ++other) {
      EXPECT_TRUE(other == first || moved[other] > 500) << "they spread: " << moved[other];
    }
    for (std::uint16_t second = 0; second < 4; ++second) {
      if (second == first) {
        continue;
      }
      set(second, false);
      const auto two_left = owners();
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(without[i] == second || two_left[i] == without[i]);
      }
      set(first, true);  // in the other order than they went
      const auto without_second = owners();
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(without_second[i] == first || two_left[i] == without_second[i]);
      }
      set(first, false);
      set(second, true);
      ASSERT_EQ(owners(), without);
    }
    set(first, true);
    ASSERT_EQ(owners(), all);
  }
}

TEST_F(Group4, NobodyIsLeft) {
  for (std::uint16_t port = 0; port < 3; ++port) {
    set(port, false);
  }
  EXPECT_EQ(owners(), std::vector<std::uint16_t>(10'000, 3));
  paths.link(PortId{3}, false);
  EXPECT_EQ(owners(), std::vector<std::uint16_t>(10'000, 99));
}

TEST_F(Group4, MembersWithoutAPathStay) {
  Update update;
  update.set_members(group, {member(0), member(1, false)});
  ASSERT_TRUE(update.commit(state, 2));
  set(0, false);
  paths.link(PortId{1}, false);
  EXPECT_EQ(owners(), std::vector<std::uint16_t>(10'000, 1));
}

}  // namespace
}  // namespace weir
