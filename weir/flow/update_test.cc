#include <weir/flow/update.h>

#include <functional>

#include <gtest/gtest.h>

#include <weir/flow/internal/test_decision.h>

namespace weir {
namespace {

using Ports = Table<std::uint32_t, std::uint16_t>;

IpPrefix prefix(const char* text) { return *IpPrefix::parse(text); }

class UpdateTest : public ::testing::Test {
 protected:
  // Everything the state says, in one line.
  std::string look() {
    std::string text;
    const auto graph = TestGraph::of(state_, [&](Flow& flow) {
      for (std::uint32_t key = 1; key <= 3; ++key) {
        const std::uint16_t* port = flow.lookup(ports_, key);
        text += port != nullptr ? fmt::format("{} ", *port) : "- ";
      }
      const int* route = flow.lookup(routes_, ip::dst);
      text += route != nullptr ? fmt::format("route {} ", *route) : "no route ";
      const int* policy = flow.match(policies_);
      text += policy != nullptr ? fmt::format("policy {} ", *policy) : "no policy ";
      text += "mode " + flow.read(mode_);
      return flow.drop({"done", ""});
    });
    graph->decide(packet_);
    const EpochScope scope(epochs_);
    return fmt::format("{}, {} members, flood {} {}", text, group_.members().all().size(),
                       state_.flood_domains().ports(5).size(), state_.flood_domains().ports(6).size());
  }
  void commit(const std::function<void(Update&)>& fill) {
    Update update;
    fill(update);
    const auto report = update.commit(state_, 0);
    ASSERT_TRUE(report) << report.error().message;
  }

  Epochs epochs_;
  State state_{epochs_, 1};
  Ports& ports_ = state_.table<std::uint32_t, std::uint16_t>("ports", {.capacity = 2});
  Prefixes<int>& routes_ = state_.prefixes<int>("routes");
  Classifier<int>& policies_ = state_.classifier<int>("policies");
  Versioned<std::string>& mode_ = state_.versioned<std::string>("mode", "off");
  Group& group_ = state_.group("uplinks");
  TestPacket packet_{PacketBuilder().ipv4("10.0.0.1", "10.1.0.2").udp(1, 2)};
};

TEST_F(UpdateTest, NothingHappensBeforeCommit) {
  const std::string before = look();
  Update update;
  EXPECT_TRUE(update.empty());
  update.set(ports_, 1, 10);
  update.set(routes_, prefix("10.0.0.0/8"), 1);
  EXPECT_FALSE(update.empty());
  EXPECT_EQ(look(), before);
  ASSERT_TRUE(update.commit(state_, 0));
  EXPECT_TRUE(update.empty());
  EXPECT_EQ(look(), "10 - - route 1 no policy mode off, 0 members, flood 0 0");
}

TEST_F(UpdateTest, AppliesInOrder) {
  commit([&](Update& update) {
    update.set(ports_, 1, 10);
    update.set(ports_, 2, 20);
    update.erase(ports_, 1);
    update.set(ports_, 3, 30);  // fits: 1 has gone
    update.set(ports_, 2, 21);
    update.set(mode_, "on");
    update.set(mode_, "strict");
    update.set(policies_, 7, Match(), 1);
    update.set(policies_, 7, Match(), 2);
    update.set_members(group_, {{.port = PortId{1}}, {.port = PortId{2}}});
    update.set_flood_ports({PortId{1}, PortId{2}, PortId{3}});
    update.set_flood_domain(5, {PortId{1}});
  });
  EXPECT_EQ(look(), "- 21 30 no route policy 2 mode strict, 2 members, flood 1 3");
  commit([&](Update& update) { update.set_flood_domain(5, {}); });
  EXPECT_EQ(look(), "- 21 30 no route policy 2 mode strict, 2 members, flood 3 3");
}

TEST_F(UpdateTest, AFailureUndoesEverythingInReverse) {
  commit([&](Update& update) {
    update.set(ports_, 1, 10);
    update.set(routes_, prefix("10.0.0.0/8"), 8);
    update.set(routes_, prefix("10.1.0.0/16"), 16);
    update.set(policies_, 1, Match().with(Layer::udp), 1);
    update.set(policies_, 2, Match(), 2);
    update.set(mode_, "on");
    update.set_members(group_, {{.port = PortId{1}}});
    update.set_flood_ports({PortId{1}});
    update.set_flood_domain(5, {PortId{1}, PortId{2}});
  });
  const std::string before = look();
  Update update;
  update.set(ports_, 1, 11);
  update.erase(ports_, 1);
  update.set(ports_, 1, 12);
  update.set(ports_, 2, 22);
  update.erase(routes_, prefix("10.1.0.0/16"));
  update.set(routes_, prefix("10.0.0.0/8"), 9);
  update.set(routes_, prefix("10.1.0.0/24"), 24);
  update.erase(routes_, prefix("10.1.0.0/24"));
  update.erase(policies_, 1);
  update.set(policies_, 2, Match().with(Layer::tcp), 3);
  update.set(policies_, 1, Match(), 4);
  update.set(mode_, "strict");
  update.set_members(group_, {{.port = PortId{7}}, {.port = PortId{8}}});
  update.set_flood_domain(5, {});
  update.set_flood_ports({});
  update.set(ports_, 3, 33);  // full
  update.set(mode_, "never reached");
  const auto report = update.commit(state_, 0);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("is full"), std::string::npos);
  EXPECT_EQ(look(), before);
  EXPECT_EQ(routes_.size(), 2U);
  EXPECT_EQ(policies_.size(), 2U);
  EXPECT_EQ(ports_.size(), 1U);
  EXPECT_TRUE(update.empty()) << "an update is applied once";
}

TEST_F(UpdateTest, RulesDecidedBetweenAChangeAndItsUndoingDoNotStay) {
  TestHolder holder(state_);
  const auto graph = TestGraph::of(state_, [&](Flow& flow) {
    flow.lookup(ports_, 1);
    flow.lookup(routes_, ip::dst);
    flow.match(policies_);
    return flow.drop({"done", ""});
  });
  const TestRule& rule = holder.hold(graph->decide(packet_));
  EXPECT_TRUE(rule.valid());
  Update update;
  update.set(routes_, prefix("10.0.0.0/8"), 1);
  update.set_members(group_, std::vector<Member>(Members::limit + 1));
  const auto report = update.commit(state_, 0);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("limit is 128"), std::string::npos) << report.error().message;
  EXPECT_FALSE(rule.valid());
}

TEST_F(UpdateTest, MayBeMovedAndReturned) {
  const auto make = [&](std::uint16_t port) {
    Update first;
    first.set(ports_, 1, port);
    first.set(routes_, prefix("10.0.0.0/8"), port);
    first.set(mode_, "moved");
    Update second = std::move(first);
    return std::make_unique<Update>(std::move(second));
  };
  const auto update = make(9);
  ASSERT_TRUE(update->commit(state_, 0));
  EXPECT_EQ(look(), "9 - - route 9 no policy mode moved, 0 members, flood 0 0");
}

TEST_F(UpdateTest, ClearsTheRulesItConcernsAndNoOthers) {
  TestHolder holder(state_);
  const auto route = TestGraph::of(state_, [&](Flow& flow) {
    flow.lookup(routes_, ip::dst);
    return flow.drop({"done", ""});
  });
  commit([&](Update& update) {
    update.set(routes_, prefix("10.0.0.0/8"), 1);
    update.set(routes_, prefix("192.168.0.0/16"), 2);
  });
  const auto to = [&](const char* address) -> const TestRule& {
    return holder.hold(route->decide(TestPacket(PacketBuilder().ipv4("10.0.0.1", address).udp(1, 2))));
  };
  const TestRule& ten = to("10.1.0.2");
  const TestRule& other = to("192.168.0.1");
  const TestRule& nowhere = to("172.16.0.1");
  Update update;
  update.set(routes_, prefix("10.1.0.0/16"), 3);
  const auto report = update.commit(state_, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rules_cleared, 1U);
  EXPECT_FALSE(ten.valid());
  EXPECT_TRUE(other.valid());
  EXPECT_TRUE(nowhere.valid());
}

TEST_F(UpdateTest, ManyRegionsClearAllRatherThanCompare) {
  TestHolder holder(state_);
  const auto route = TestGraph::of(state_, [&](Flow& flow) {
    flow.lookup(routes_, ip::dst);
    return flow.drop({"done", ""});
  });
  commit([&](Update& update) { update.set(routes_, prefix("10.0.0.0/8"), 1); });
  const TestRule& rule = holder.hold(route->decide(packet_));
  Update update;
  for (std::uint8_t i = 0; i < 100; ++i) {
    update.set(routes_, IpPrefix(IpAddress(Ipv4Address{{192, 168, i, 0}}), 24), i);
  }
  ASSERT_TRUE(update.commit(state_, 0));
  EXPECT_FALSE(rule.valid());
}

TEST_F(UpdateTest, SaysWhenEverythingWasApplied) {
  unsigned called = 0;
  const auto record = [&](Update& update) {
    update.assign(mode_, "on");
    update.afterwards([&] { ++called; });
  };
  Update shown;
  record(shown);
  (void)shown.preview(state_);
  EXPECT_EQ(called, 0U);
  commit(record);
  EXPECT_EQ(called, 1U);
  Update failing;
  record(failing);
  for (std::uint32_t port = 1; port <= 3; ++port) {  // there is room for two
    failing.set(ports_, port, 10);
  }
  EXPECT_FALSE(failing.commit(state_, 0));
  EXPECT_EQ(called, 1U);
}

TEST_F(UpdateTest, VersionedValuesClearTheirReaders) {
  const auto reading = TestGraph::of(
      state_, [&](Flow& flow) { return flow.read(mode_) == "off" ? flow.drop({"off", ""}) : flow.drop({"on", ""}); });
  const TestRule rule(reading->decide(packet_));
  const Rule before = reading->decide(packet_);
  EXPECT_TRUE(rule.valid());
  Update update;
  update.set(mode_, "on");
  const auto report = update.commit(state_, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->rules_cleared, 1U);
  EXPECT_FALSE(rule.valid());
  EXPECT_FALSE(TestRule(before).valid()) << "a trace from before the change is not installed";
  EXPECT_NE(reading->decide(packet_).actions[0].reason, before.actions[0].reason);
}

}  // namespace
}  // namespace weir
