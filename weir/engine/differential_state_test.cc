// Tables, prefixes, classifiers, groups and versioned values, with changes while packets run.

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

struct MacKey {
  Maybe<std::uint16_t> vlan;
  MacAddress mac;
  bool operator==(const MacKey&) const = default;
};

Build learning_switch(TableOptions options) {
  return [options](GraphBuilder& graph) {
    auto& macs = graph.state.table<MacKey, PortId>("macs", options);
    graph.stage([&macs](Flow& flow) {
      const auto vlan = flow[vlan::id];
      flow.learn(macs, {vlan, flow[eth::src].value_or({})}, flow.ingress());
      if (const PortId* out = flow.lookup(macs, {vlan, flow[eth::dst].value_or({})})) {
        return flow.output(*out);
      }
      return flow.flood(vlan);
    });
    graph.apply([](Update& update) { update.set_flood_ports({port(0), port(1), port(2)}); });
    graph.event("pin", [&macs](Update& update) { update.set(macs, {{}, {{2, 0, 0, 0, 0, 2}}}, port(4)); });
    graph.event("unpin", [&macs](Update& update) { update.erase(macs, {{}, {{2, 0, 0, 0, 0, 2}}}); });
    graph.event("domain", [](Update& update) { update.set_flood_domain(0x64, {port(0), port(3)}); });
    graph.event("ports", [](Update& update) { update.set_flood_ports({port(1), port(5)}); });
  };
}

Build firewall() {
  return [](GraphBuilder& graph) {
    auto& policies = graph.state.classifier<std::uint16_t>("policies");
    graph.stage([&policies](Flow& flow) {
      if (flow.has(layers::udp)) {
        flow.set(l4::src_port, 1'000);  // policies see what was written
      }
      if (flow.has(layers::vlan) && !flow.has(layers::vlan_inner)) {
        flow.push_vlan(0x0007);
      }
      const std::uint16_t* out = flow.match(policies);
      return out == nullptr ? flow.drop(refused) : flow.output(port(*out));
    });
    graph.apply([&policies](Update& update) {
      update.set(policies, 10, Match().with(layers::tcp).with(l4::dst_port, 443), 1);
      update.set(policies, 20, Match().with(ip::dst, *IpPrefix::parse("10.0.0.0/9")).with(ip::protocol, 17), 2);
      update.set(policies, 30, Match().with(ip::src, *IpPrefix::parse("2001:db8::/33")), 3);
      update.set(policies, 40, Match().with(vlan::id, 7), 4);
    });
    graph.event("earlier", [&policies](Update& update) {
      update.set(policies, 5, Match().with(layers::udp).with(l4::src_port, 1'000), 5);
    });
    graph.event("gone", [&policies](Update& update) { update.erase(policies, 20); });
    graph.event("all", [&policies](Update& update) { update.set(policies, 90, Match(), 0); });
  };
}

Build router() {
  return [](GraphBuilder& graph) {
    auto& routes = graph.state.prefixes<NextHops>("routes");
    auto& mode = graph.state.versioned<int>("mode", 0);
    Group& near = graph.state.group("near");
    Group& far = graph.state.group("far");
    graph.stage([&](Flow& flow) {
      // What it reads of the address and what it then looks up lie in different prefixes.
      if (flow.read(mode) == 1 && flow.test(ip::dst, inside(*IpPrefix::parse("10.0.1.0/25")))) {
        flow.set(ip::dst, ip_address("10.0.1.200"));
      }
      const NextHops* hops = flow.lookup(routes, ip::dst);
      if (hops == nullptr) {
        return flow.reject(no_route);
      }
      if (!flow.decrement_ttl()) {
        return flow.reject(time_exceeded);
      }
      return flow.fits(hops->mtu) ? flow.select(*hops) : flow.reject(too_big(hops->mtu));
    });
    const auto member = [](std::uint16_t number) {
      return Member{port(number), mac(static_cast<std::uint8_t>(number)), mac(100), true};
    };
    graph.apply([&](Update& update) {
      update.set_members(near, {member(1), member(2)});
      update.set_members(far, {member(3)});
      update.set(routes, *IpPrefix::parse("10.0.0.0/8"), {near.id(), 1'500});
      update.set(routes, *IpPrefix::parse("2001:db8::/32"), {far.id(), 1'400});
    });
    graph.event("more specific", [&routes, &far](Update& update) {
      update.set(routes, *IpPrefix::parse("10.0.1.128/25"), {far.id(), 60});
      update.set(routes, *IpPrefix::parse("2001:db8:1::/64"), {far.id(), 100});
    });
    graph.event("less", [&routes](Update& update) { update.erase(routes, *IpPrefix::parse("10.0.0.0/8")); });
    graph.event("members", [&, member](Update& update) {
      update.set_members(near, {member(2), member(4), member(5)});
      update.set_members(far, {});
    });
    graph.event("mode", [&mode](Update& update) { update.set(mode, 1); });
  };
}

// Packets in random order, some changed, with the events and quiet times in between.
std::string run(const Build& build, const std::vector<std::string>& events, std::uint64_t seed, Nanoseconds step) {
  Random random(seed);
  const std::vector<Specimen> specimens = corpus();
  Differential nodes(build);
  Nanoseconds now = 1;
  for (unsigned batch = 0; batch < 300; ++batch) {
    std::vector<TestPacket> packets;
    for (std::uint32_t i = random.below(24); i > 0; --i) {
      TestPacket packet = specimens[random.below(static_cast<std::uint32_t>(specimens.size()))].packet;
      if (random.one_in(3) && packet.bytes.size() > 14) {
        packet.bytes[5] = static_cast<std::uint8_t>(random.below(4));
        packet.bytes[11] = static_cast<std::uint8_t>(random.below(4));
      }
      packets.push_back(random.one_in(5) ? mutation(packet, random) : packet);
    }
    std::string text = nodes.send(port(static_cast<std::uint16_t>(random.below(3))), packets, now);
    now += step;
    if (text.empty() && random.one_in(8)) {
      text = nodes.idle(now);
    }
    if (text.empty() && random.one_in(10)) {
      text = nodes.happen(events[random.below(static_cast<std::uint32_t>(events.size()))], now);
    }
    if (!text.empty()) {
      return fmt::format("seed {}, batch {}: {}", seed, batch, text);
    }
  }
  return nodes.close();
}

void expect_alike(const Build& build, const std::vector<std::string>& events, Nanoseconds step) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(run(build, events, seed, step), "");
  }
}

const std::vector<std::string> switch_events = {"pin", "unpin", "domain", "ports"};

TEST(DifferentialState, LearningSwitch) { expect_alike(learning_switch({}), switch_events, 1'000'000); }

TEST(DifferentialState, LearningSwitchThatForgets) {
  expect_alike(learning_switch({.idle = 20'000'000}), switch_events, 3'000'000);
}

TEST(DifferentialState, LearningSwitchThatIsFull) {
  expect_alike(learning_switch({.capacity = 6, .idle = 30'000'000}), {"domain", "ports"}, 3'000'000);
}

TEST(DifferentialState, Firewall) { expect_alike(firewall(), {"earlier", "gone", "all"}, 1'000'000); }

TEST(DifferentialState, Router) { expect_alike(router(), {"more specific", "less", "members", "mode"}, 1'000'000); }

TEST(DifferentialState, WholeCorpus) {
  EXPECT_EQ(check({"switch", learning_switch({})}), "");
  EXPECT_EQ(check({"firewall", firewall()}), "");
  EXPECT_EQ(check({"router", router()}), "");
}

}  // namespace
}  // namespace weir::testing
