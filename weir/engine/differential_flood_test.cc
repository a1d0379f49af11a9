// Flood domains: ports, ports with a tag, tunnels; and select behind encapsulate.

#include <algorithm>

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

using ::testing::SizeIs;

constexpr DomainId domain{7'000};

Vxlan tunnel() { return {.vni = 7, .src = ip_address("192.0.2.1"), .dst = ip_address("192.0.2.2"), .dscp = 10}; }

std::vector<Member> members() {
  return {{port(1), mac(1), mac(2), true}, {port(2), mac(3), mac(4), true}, {port(3), mac(5), mac(6), false}};
}

/// What the tests flood to: ports 1 and 2, port 3 with a tag, and remotes by a group, a known and an unknown neighbour.
FloodDomain everything(State& state, bool v6) {
  Vxlan outer = tunnel();
  if (v6) {
    outer.src = ip_address("2001:db8::1");
  }
  const auto remote = [&](unsigned last) {
    return ip_address(fmt::format("{}{}", v6 ? "2001:db8::" : "192.0.2.", last));
  };
  return {.ports = {port(0), port(1), port(2)},
          .tagged = {{port(3), 0x2005}},
          .tunnel = outer,
          .remotes = {{remote(2), &state.group("members")},
                      {.address = remote(3), .port = port(4), .next_hop = ip_address("192.0.2.99")},
                      {.address = remote(4), .port = port(4), .next_hop = ip_address("192.0.2.98")},
                      {.address = remote(5), .group = &state.group("nobody")},
                      {.address = remote(6), .port = port(9), .next_hop = ip_address("192.0.2.99")}}};
}

template <class Make>
Program flooding(std::string name, Make make, bool v6 = false) {
  return {std::move(name), [make, v6](GraphBuilder& graph) {
            FloodDomain all = everything(graph.state, v6);
            Group& group = *all.remotes[0].group;
            graph.stage(make(graph));
            graph.apply([&](Update& update) {
              update.set_members(group, members());
              update.set(graph.state.neighbours().table(), {port(4), ip_address("192.0.2.99")}, mac(9));
              update.set(graph.state.neighbours().table(), {port(9), ip_address("192.0.2.99")}, mac(9));
              update.set_flood_domain(domain, std::make_shared<const FloodDomain>(all));
              update.set_flood_domain({domain.number + 1}, std::make_shared<const FloodDomain>());
            });
          }};
}

std::vector<Program> programs() {
  const auto plain = [](GraphBuilder&) { return [](Flow& flow) { return flow.flood(domain); }; };
  const auto rewritten = [](GraphBuilder&) {
    return [](Flow& flow) {
      if (flow.has(layers::vlan)) {
        flow.pop_vlan();
      }
      if (flow.has(layers::ip)) {
        flow.set(ip::src, flow.has(layers::ipv6) ? ip_address("2001:db8::77") : ip_address("10.7.7.7"));
      }
      return flow.flood(domain);
    };
  };
  return {
      flooding("blind", plain),
      flooding("blind, IPv6 outside", plain, true),
      flooding("rewritten", rewritten),
      flooding("rewritten, IPv6 outside", rewritten, true),
      flooding("out of a tunnel: not into others",
               [](GraphBuilder&) {
                 return [](Flow& flow) {
                   if (flow.has(layers::vxlan)) {
                     flow.decapsulate();
                   }
                   return flow.flood(domain);
                 };
               }),
      flooding("encapsulated: not again",
               [](GraphBuilder&) {
                 return [](Flow& flow) {
                   if (flow.has(layers::ethernet)) {
                     flow.encapsulate(tunnel());
                   }
                   return flow.flood(domain);
                 };
               }),
      flooding("a domain of nothing, and none",
               [](GraphBuilder&) {
                 return
                     [](Flow& flow) { return flow.flood(DomainId{domain.number + (flow.has(layers::ip) ? 1U : 2U)}); };
               }),
      flooding("with delivery",
               [plain](GraphBuilder& graph) {
                 graph.may_deliver();
                 for (const std::uint16_t to : {1, 2, 3, 4}) {
                   graph.apply([&](Update& update) { update.set_delivery(port(to), 1); });
                 }
                 return plain(graph);
               }),
      flooding("select behind encapsulate",
               [](GraphBuilder& graph) {
                 Group& group = graph.state.group("members");
                 graph.apply([&](Update& update) { update.set_members(group, members()); });
                 return [&group](Flow& flow) {
                   if (flow.has(layers::ethernet)) {
                     flow.encapsulate(tunnel());
                   }
                   return flow.select(group);
                 };
               }),
  };
}

TEST(DifferentialFlood, Corpus) {
  for (Program& program : programs()) {
    if (program.name == "with delivery") {
      const Build build = program.build;
      program.build = [build](GraphBuilder& graph) {
        build(graph);
        graph.stage([](Flow& flow) {
          if (flow.has(layers::ethernet)) {
            flow.set(eth::src, mac(static_cast<std::uint8_t>(0x40 + flow.egress().number)));
          }
          return flow.next();
        });
      };
    }
    EXPECT_EQ(check(program), "") << program.name;
    EXPECT_EQ(check_mutations(program, 3, 200), "") << program.name;
  }
}

TestPacket packet(std::size_t bytes = 20) { return {ethernet(ipv4({}, udp(1000, 80, payload(bytes))))}; }

TEST(DifferentialFlood, EachRemoteGetsItsOwnHeaders) {
  const auto sent = reference_output(
      flooding("", [](GraphBuilder&) { return [](Flow& flow) { return flow.flood(domain); }; }).build, packet());
  ASSERT_THAT(sent.at(4), SizeIs(1));
  const Bytes& out = sent.at(4)[0].bytes;
  const MacAddress to = mac(9);
  EXPECT_TRUE(std::equal(to.bytes.begin(), to.bytes.end(), out.begin())) << "the neighbour";
  EXPECT_EQ(out[33], 3) << "the remote end";
  EXPECT_EQ(out.size(), packet().bytes.size() + 50);
  EXPECT_EQ(out[48], 7) << "the VNI";
  EXPECT_EQ(wrong_checksum(out), "");
  ASSERT_FALSE(sent.at(3).empty());
  EXPECT_EQ(sent.at(3)[0].bytes[15], 5) << "the tag";
}

TEST(DifferentialFlood, ToEightThousandRemotesWithAFewFrames) {
  constexpr unsigned remotes = 8'192;
  for (const std::size_t bytes : {20U, 1'400U}) {
    Differential nodes([](GraphBuilder& graph) {
      FloodDomain all{.ports = {port(0)}, .tagged = {}, .tunnel = tunnel(), .remotes = {}};
      Group& group = graph.state.group("members");
      for (unsigned i = 0; i < remotes; ++i) {
        all.remotes.push_back({ip_address(fmt::format("10.1.{}.{}", i / 256, i % 256)), &group});
      }
      graph.stage([](Flow& flow) { return flow.flood(domain); });
      graph.apply([&](Update& update) {
        update.set_members(group, members());
        update.set_flood_domain(domain, std::make_shared<const FloodDomain>(all));
      });
    });
    const std::vector<TestPacket> batch(2, packet(bytes));
    EXPECT_EQ(nodes.send(port(0), batch, 1), "");
    std::size_t sent = 0;
    for (const auto& [to, packets] : nodes.observed().sent) {
      sent += packets.size();
    }
    EXPECT_EQ(sent, 2 * remotes);
    EXPECT_TRUE(nodes.observed().drops.empty());
    EXPECT_EQ(nodes.node(EngineKind::cached).stats().installed.get(), 1U);
    EXPECT_EQ(nodes.close(), "");
  }
}

}  // namespace
}  // namespace weir::testing
