// The switch, frame by frame: networks, VLANs, tunnels, limits, changes.

#include <set>

#include <gmock/gmock.h>

#include <weir/service/vswitch/internal/switch_node.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using vswitch_testing::alice;
using vswitch_testing::bob;
using vswitch_testing::Bytes;
using vswitch_testing::carol;
using vswitch_testing::everybody;
using vswitch_testing::frame;
using vswitch_testing::Leaves;
using vswitch_testing::uplink_mac;
using vswitch_testing::vtep_mac;

class VSwitchNode : public vswitch_testing::SwitchNode {};

INSTANTIATE_TEST_SUITE_P(Engines, VSwitchNode, testing::Values(EngineKind::core, EngineKind::reference),
                         [](const auto& each) { return each.param == EngineKind::core ? "core" : "reference"; });

TEST_P(VSwitchNode, LearnsAndFloods) {
  build("networks: {100: }");
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("b", "c", "t")) << "host ports are in the only network";
  EXPECT_THAT(send("b", frame(bob, alice)), ElementsAre("a"));
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("b"));
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("b", "c", "t"));
  EXPECT_THAT(send("c", frame(bob, alice)), ElementsAre("a")) << "bob has moved";
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("c"));
  EXPECT_THAT(send("c", frame(carol, bob)), ElementsAre("dropped: same_port"));
  EXPECT_THAT(send("a", frame(everybody, bob)), ElementsAre("dropped: bad_source"));
  EXPECT_THAT(send("a", Bytes{1, 2, 3}), ElementsAre("dropped: no_ethernet"));
  EXPECT_THAT(send("up", frame(alice, bob)), ElementsAre("dropped: not_ours"));
}

TEST_P(VSwitchNode, NetworksAreIsolated) {
  build("networks: {100: {ports: [a, b]}, 200: {ports: [c]}}");
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("b"));
  EXPECT_THAT(send("c", frame(alice, everybody)), ElementsAre("dropped: flood_empty"));
  EXPECT_THAT(send("b", frame(bob, alice)), ElementsAre("a")) << "not moved by the frame of the other network";
  EXPECT_THAT(send("t", frame(alice, everybody)), ElementsAre("dropped: no_network"));
}

TEST_P(VSwitchNode, TrunksCarryTags) {
  build("networks: {100: {vlan: 10, ports: [a], trunks: [t, c]}, 200: {vlan: 20, ports: [b], trunks: [t]}}");
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("c", "t"));
  EXPECT_EQ(out_[0][15], 10);
  EXPECT_EQ(out_[0].size(), frame(alice, everybody).bytes().size() + 4);
  EXPECT_THAT(send("b", frame(alice, everybody)), ElementsAre("t"));
  EXPECT_EQ(out_[0][15], 20);
  EXPECT_THAT(send("t", frame(bob, alice).vlan(10)), ElementsAre("a"));
  EXPECT_EQ(out_[0], frame(bob, alice).bytes());
  EXPECT_THAT(send("t", frame(bob, alice).vlan(20)), ElementsAre("b"));
  EXPECT_THAT(send("t", frame(bob, alice).vlan(30)), ElementsAre("dropped: no_network"));
  EXPECT_THAT(send("t", frame(bob, alice)), ElementsAre("dropped: no_network"));
  EXPECT_THAT(send("a", frame(alice, bob).vlan(10)), ElementsAre("dropped: no_network"));
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("t"));
  EXPECT_THAT(send("b", frame(carol, everybody).vlan(0, 5)), ElementsAre("t")) << "a tag for its priority alone";
  EXPECT_EQ(out_[0], frame(carol, everybody).vlan(20).bytes());
  EXPECT_THAT(send("c", frame(carol, bob).vlan(10)), ElementsAre("t")) << "from trunk to trunk";
  EXPECT_EQ(out_[0], frame(carol, bob).vlan(10).bytes());
}

TEST_P(VSwitchNode, TunnelsBothWays) {
  build("networks: {100: {ports: [a, b], vteps: [192.0.2.2, 192.0.2.3]}, 200: {ports: [c], vteps: [192.0.2.2]}}");
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("b", "up", "up"));
  EXPECT_EQ(out_[1].size(), frame(alice, everybody).bytes().size() + 50);
  EXPECT_EQ(MacAddress::parse(vtep_mac)->bytes[5], out_[1][5]);
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, alice))), ElementsAre("a"));
  EXPECT_EQ(out_[0], frame(carol, alice).bytes());
  EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("up"));
  EXPECT_EQ(out_[0][33], 2) << "to the node that carol is on";
  EXPECT_EQ(out_[0][48], 100);
  EXPECT_EQ(out_[0][47] | out_[0][46] | out_[0][49] | out_[0][43], 0) << "reserved bits";
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, everybody))), ElementsAre("a", "b")) << "split horizon";
  EXPECT_THAT(send("up", tunnelled(100, frame(bob, carol), "192.0.2.3")), ElementsAre("dropped: split_horizon"));
  EXPECT_THAT(send("c", frame(alice, carol)), ElementsAre("up")) << "the other network does not know carol";
  EXPECT_EQ(out_[0][48], 200);
}

TEST_P(VSwitchNode, TunnelsOverIpv6) {
  build("local: '2001:db8::1'\nnetworks: {100: {ports: [a], vteps: ['2001:db8::2']}}");
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("up"));
  EXPECT_EQ(out_[0].size(), frame(alice, everybody).bytes().size() + 70);
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, alice), "2001:db8::2")), ElementsAre("a"));
  EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("up"));
}

TEST_P(VSwitchNode, ReservedBitsAreIgnored) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2]}}");
  Bytes bytes = tunnelled(100, frame(carol, everybody)).bytes();
  bytes[42] |= 0xf7;
  bytes[43] = bytes[44] = bytes[45] = bytes[49] = 0xff;
  EXPECT_THAT(send("up", bytes), ElementsAre("a"));
  bytes[42] = 0;
  EXPECT_THAT(send("up", bytes), ElementsAre("dropped: not_vxlan"));
}

TEST_P(VSwitchNode, WhoIsNotOfTheNetworkIsDroppedByName) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2]}, 200: {ports: [b], vteps: [192.0.2.3]}}");
  EXPECT_THAT(send("up", tunnelled(200, frame(carol, everybody))), ElementsAre("dropped: unknown_vtep"));
  EXPECT_THAT(send("up", tunnelled(101, frame(carol, everybody))), ElementsAre("dropped: unknown_vni"));
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, everybody).vlan(5))), ElementsAre("dropped: inner_tagged"));
  EXPECT_THAT(send("up", tunnelled(100, frame(everybody, alice))), ElementsAre("dropped: bad_source"));
}

// Regression: a storm of VNIs that nobody has must not fill the rule cache.
TEST_P(VSwitchNode, UnknownVniStorm) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2]}, 70000: {ports: [b], vteps: [192.0.2.2]}}");
  send("up", tunnelled(100, frame(carol, everybody)));
  const std::uint64_t before = rules();
  std::uint64_t sent = 0;
  for (std::uint32_t vni = 1; vni < vswitch_internal::vni_limit; vni = vni * 9 / 8 + 977) {
    for (std::uint32_t near = vni; near < vni + 20 && near < vswitch_internal::vni_limit; ++near) {
      EXPECT_THAT(send("up", tunnelled(near, frame(carol, everybody))), ElementsAre("dropped: unknown_vni"));
      ++sent;
    }
  }
  EXPECT_LT(rules() - before, sent / 10);
}

// Regression: what a packet out of a tunnel is known by is its own tunnel, whatever came before, and whatever rules
// there are: the same inner frame from two nodes, in turn.
TEST_P(VSwitchNode, DecapsulationDoesNotTrustTheLastTunnel) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2, 192.0.2.3]}, 200: {ports: [b], vteps: [192.0.2.2]}}");
  for (int round = 0; round < 4; ++round) {
    for (const unsigned node : {2, 3}) {
      const std::string from = fmt::format("192.0.2.{}", node);
      EXPECT_THAT(send("up", tunnelled(100, frame(carol, everybody), from.c_str())), ElementsAre("a"));
      EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("up"));
      EXPECT_EQ(out_[0][33], node);
    }
    EXPECT_THAT(send("up", tunnelled(200, frame(carol, everybody))), ElementsAre("b"));
  }
}

// Regression: a packet that is too big for the tunnel.
TEST_P(VSwitchNode, TooBigForTheTunnel) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2]}}");
  send("up", tunnelled(100, frame(carol, alice)));
  EXPECT_THAT(send("a", frame(alice, carol, 1450 - 28)), ElementsAre("up"));
  EXPECT_THAT(send("a", frame(alice, carol, 1451 - 28)), ElementsAre("a", "dropped: too_big"));
  const Bytes& told = out_[0];
  EXPECT_EQ(told[34], 3) << "destination unreachable";
  EXPECT_EQ(told[35], 4) << "fragmentation needed";
  EXPECT_EQ(load_big<std::uint16_t>(&told[40]), 1450);
  EXPECT_EQ(told[29], 2) << "in the name of the destination";
  const auto v6 = PacketBuilder().eth(alice, carol).ipv6("2001:db8:1::1", "2001:db8:1::2").udp(1, 2).payload(1403);
  EXPECT_THAT(send("a", v6), ElementsAre("a", "dropped: too_big"));
  EXPECT_EQ(out_[0][54], 2) << "packet too big";
  EXPECT_EQ(load_big<std::uint32_t>(&out_[0][58]), 1450);
  EXPECT_THAT(send("a", PacketBuilder().eth(alice, carol).eth_type(0x1234).payload(1451)),
              ElementsAre("dropped: too_big_for_tunnel"));
  EXPECT_THAT(send("a", frame(alice, everybody, 1451 - 28)), ElementsAre("dropped: flood_empty")) << "not into tunnels";
}

TEST_P(VSwitchNode, NeighboursOfTheUnderlayAreAsked) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.7]}}");
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, alice), "192.0.2.7")), ElementsAre("a", "up"));
  EXPECT_EQ(out_[1][12] << 8U | out_[1][13], 0x0806) << "who has it?";
  EXPECT_THAT(send("a", frame(alice, carol)), IsEmpty());
  EXPECT_THAT(
      send("up", PacketBuilder().eth(vtep_mac, uplink_mac).arp(2, vtep_mac, "192.0.2.7", uplink_mac, "192.0.2.1")),
      ElementsAre("up"));
  EXPECT_EQ(out_[0].size(), frame(alice, carol).bytes().size() + 50) << "it waited";
}

TEST_P(VSwitchNode, NextHopsSpreadAndFollowTheirNeighbours) {
  build(
      "networks: {100: {ports: [a], vteps: [198.51.100.1]}}\n"
      "next_hops: [192.0.2.254, {mac: '02:00:00:00:bb:99'}]");
  std::set<std::uint8_t> macs;
  for (std::uint16_t flow = 0; flow < 32; ++flow) {
    EXPECT_THAT(send("a", PacketBuilder().eth(alice, carol).ipv4("10.0.0.1", "10.0.0.2").udp(flow, 7).payload(10)),
                ElementsAre("up"));
    macs.insert(out_[0][5]);
    EXPECT_EQ(out_[0][11], 1) << "from the uplink's address";
  }
  EXPECT_THAT(macs, ElementsAre(2, 0x99));
  (void)node_->update([&](Update& update) {
    update.erase(node_->state().neighbours().table(), {PortId{4}, *IpAddress::parse("192.0.2.254")});
  });
  service_->tend();
  for (std::uint16_t flow = 0; flow < 8; ++flow) {
    send("a", PacketBuilder().eth(alice, carol).ipv4("10.0.0.1", "10.0.0.2").udp(flow, 7).payload(10));
    EXPECT_EQ(out_[0][5], 0x99);
  }
}

// Their flows take the others at once, by no rule of their own.
TEST_P(VSwitchNode, NextHopsWhosePathIsDownAreLeftOut) {
  build(
      "networks: {100: {ports: [a], vteps: [198.51.100.1]}}\n"
      "next_hops: [192.0.2.254, {mac: '02:00:00:00:bb:99'}]\nbfd: {interval: 10ms}");
  const PathKey path{PortId{4}, *IpAddress::parse("192.0.2.254")};
  EXPECT_THAT(node_->state().paths().wanted(),
              ElementsAre(PathWish{path, BfdSettings{.interval = 10'000'000, .multiplier = 3}}));
  const auto macs = [&] {
    std::set<std::uint8_t> seen;
    for (std::uint16_t flow = 0; flow < 32; ++flow) {
      send("a", PacketBuilder().eth(alice, carol).ipv4("10.0.0.1", "10.0.0.2").udp(flow, 7).payload(10));
      seen.insert(out_[0][5]);
    }
    return seen;
  };
  EXPECT_THAT(macs(), ElementsAre(2, 0x99));
  const std::uint64_t before = rules();
  node_->state().paths().session(path, false);
  EXPECT_THAT(macs(), ElementsAre(0x99));
  EXPECT_EQ(service_->state()["next_hops"]["reachable"], 1);
  node_->state().paths().session(path, true);
  EXPECT_THAT(macs(), ElementsAre(2, 0x99));
  EXPECT_EQ(rules(), before);
}

TEST_P(VSwitchNode, ConfiguredAddresses) {
  build(
      "networks: {100: {ports: [a, b], vteps: [192.0.2.2], unknown: drop, macs: {'02:00:00:00:00:0a': a, "
      "'02:00:00:00:00:0c': 192.0.2.2}}}");
  EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("up"));
  EXPECT_THAT(send("b", frame(bob, alice)), ElementsAre("a"));
  EXPECT_THAT(send("b", frame(alice, carol)), ElementsAre("dropped: mac_fixed"));
  EXPECT_THAT(send("b", frame(carol, alice)), ElementsAre("dropped: mac_fixed"));
  EXPECT_THAT(send("a", frame(alice, "02:00:00:00:00:0d")), ElementsAre("dropped: unknown_mac"));
}

TEST_P(VSwitchNode, APortHasOnlySoManyAddresses) {
  build("networks: {100: {ports: [a, b]}}\nports: {a: {macs: 2}}");
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("b"));
  EXPECT_THAT(send("a", frame(bob, everybody)), ElementsAre("b"));
  EXPECT_THAT(send("a", frame(carol, everybody)), ElementsAre("dropped: mac_limit"));
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("b"));
  EXPECT_THAT(send("b", frame(carol, alice)), ElementsAre("a"));
}

TEST_P(VSwitchNode, MirrorsAndLimitsWhatAPortSends) {
  build("networks: {100: }\nports: {a: {rate: 1000, mirror: t}, b: {mirror: t}}");
  EXPECT_THAT(send("b", frame(bob, everybody)), ElementsAre("a", "c", "t")) << "a mirror is in no network by itself";
  unsigned dropped = 0;
  for (int i = 0; i < 60; ++i) {
    const Leaves leaves = send("a", frame(alice, bob, 1400));
    EXPECT_EQ(leaves.front() == "t" || leaves.back() == "t" || leaves.size() == 2, true);
    dropped += leaves.back() == "dropped: metered" ? 1 : 0;
  }
  EXPECT_GT(dropped, 5U);
  EXPECT_LT(dropped, 30U);
}

TEST_P(VSwitchNode, AnswersForKnownHosts) {
  build(
      "networks: {100: {vlan: 10, ports: [a, b], trunks: [t], bindings: {10.0.0.2: '02:00:00:00:00:0b', "
      "'2001:db8:1::2': '02:00:00:00:00:0b'}}}");
  const auto request = PacketBuilder().eth(alice, everybody).arp(1, alice, "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2");
  const auto reply = PacketBuilder().eth(bob, alice).arp(2, bob, "10.0.0.2", alice, "10.0.0.1");
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(send("a", request), ElementsAre("a"));
    EXPECT_EQ(out_[0], reply.bytes());
  }
  auto tagged = request;
  auto tagged_reply = reply;
  EXPECT_THAT(send("t", tagged.vlan(10)), ElementsAre("t"));
  EXPECT_EQ(out_[0], tagged_reply.vlan(10).bytes());
  EXPECT_THAT(
      send("a", PacketBuilder().eth(alice, everybody).arp(1, alice, "10.0.0.1", "00:00:00:00:00:00", "10.0.0.9")),
      ElementsAre("b", "t"))
      << "not known";
  EXPECT_THAT(send("b", PacketBuilder().eth(bob, everybody).arp(1, bob, "0.0.0.0", "00:00:00:00:00:00", "10.0.0.2")),
              ElementsAre("a", "t"))
      << "looks whether its own address is taken";
}

/// A neighbour solicitation with a source address option, or `option` in its place.
PacketBuilder solicitation(const Bytes& option) {
  Bytes body(16);
  const auto target = IpAddress::parse("2001:db8:1::2")->to_v6();
  std::ranges::copy(target.bytes, body.begin());
  body.insert(body.end(), option.begin(), option.end());
  return PacketBuilder()
      .eth(alice, "33:33:ff:00:00:02")
      .ipv6("2001:db8:1::1", "ff02::1:ff00:2")
      .ttl(255)
      .icmpv6(135)
      .payload(body);
}

// Regression: neighbour discovery with a wrong length is passed on as it is, never answered.
TEST_P(VSwitchNode, NeighbourDiscoveryOfWrongLength) {
  build("networks: {100: {ports: [a, b], bindings: {'2001:db8:1::2': '02:00:00:00:00:0b'}}}");
  EXPECT_THAT(send("a", solicitation({1, 1, 2, 0, 0, 0, 0, 0x0a})), ElementsAre("a"));
  EXPECT_EQ(out_[0][54], 136) << "an advertisement";
  EXPECT_EQ(out_[0][85], 0x0b);
  EXPECT_EQ(out_[0][21], 255);
  for (const Bytes& option :
       {Bytes{}, Bytes{1, 0, 2, 0, 0, 0, 0, 0x0a}, Bytes{1, 2, 2, 0, 0, 0, 0, 0x0a}, Bytes{1, 1, 2, 0, 0, 0, 0},
        Bytes{1, 1, 2, 0, 0, 0, 0, 0x0a, 1}, Bytes{1, 1, 2, 0, 0, 0, 0, 0x0a, 14, 1, 0, 0, 0, 0, 0, 0}}) {
    EXPECT_THAT(send("a", solicitation(option)), ElementsAre("b")) << option.size();
  }
}

TEST_P(VSwitchNode, ChangesLive) {
  build("networks: {100: {ports: [a, b], vteps: [192.0.2.2]}}");
  send("up", tunnelled(100, frame(carol, alice)));
  EXPECT_THAT(send("b", frame(bob, alice)), ElementsAre("a", "up"));
  EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("up"));
  ASSERT_TRUE(configure("networks: {100: {ports: [a, b], vteps: [192.0.2.3]}}"));
  EXPECT_THAT(send("a", frame(alice, carol)), ElementsAre("b", "up")) << "carol's node has left: she may be anywhere";
  EXPECT_EQ(out_[1][33], 3);
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, alice))), ElementsAre("dropped: unknown_vtep"));
  ASSERT_TRUE(configure("networks: {100: {ports: [a], vteps: [192.0.2.3]}, 200: {ports: [b]}}"));
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("up"));
  EXPECT_THAT(send("b", frame(bob, alice)), ElementsAre("dropped: flood_empty"));
  ASSERT_TRUE(configure("networks: {200: {ports: [a, b]}}"));
  EXPECT_THAT(send("a", frame(alice, bob)), ElementsAre("b"));
  EXPECT_THAT(send("up", tunnelled(100, frame(carol, alice))), ElementsAre("dropped: unknown_vni"));
  EXPECT_EQ(configure("networks: {200: {ports: [a, b]}}")->rules_cleared, 0U) << "nothing has changed";
}

TEST_P(VSwitchNode, ErrorsNameEveryMistake) {
  build("networks: {100: {ports: [a]}}");
  for (const auto& [settings, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"networks: {0: }", "n.yaml:1:12: expected a whole number from 1 to 16777215"},
           {"networks: {1: {ports: [a], trunks: [b]}}",
            "a trunk carries a network with a tag; give the network a 'vlan'"},
           {"networks: {1: {ports: [a]}, 2: {ports: [a]}}", "port 'a' is in two networks"},
           {"networks: {1: {vlan: 5, trunks: [t]}, 2: {vlan: 5, trunks: [t]}}",
            "VLAN 5 of trunk 't' is in two networks"},
           {"networks: {1: {port: [a]}}", "unknown key 'port'"},
           {"networks: {1: {ports: [x]}}", "no port 'x'"},
           {"networks: {1: {vteps: [198.51.100.1]}}", "198.51.100.1 is on no network of an uplink; give 'next_hops'"},
           {"networks: {1: {vteps: [192.0.2.1]}}", "192.0.2.1 is this node itself"},
           {"networks: {1: {vteps: ['2001:db8::2']}}", "are of two families"},
           {"networks: {1: {vteps: [192.0.2.2, 192.0.2.2]}}", "192.0.2.2 is there twice"},
           {"networks: {1: {ports: [a], macs: {'02:00:00:00:00:0a': b}}}", "port 'b' is not in this network"},
           {"networks: {1: {macs: {'02:00:00:00:00:0a': 192.0.2.9}}}", "192.0.2.9 is none of the network's vteps"},
           {"local: 192.0.2.77\nnetworks: {1: }", "192.0.2.77 is no address of an uplink"},
       }) {
    const auto done = configure(settings);
    ASSERT_FALSE(done) << settings;
    EXPECT_THAT(done.error().message, HasSubstr(message));
  }
  EXPECT_THAT(send("a", frame(alice, everybody)), ElementsAre("dropped: flood_empty")) << "as it was";
}

std::string many(unsigned vteps, unsigned skip) {
  std::string text = "networks: {100: {ports: [a], vteps: [";
  for (unsigned i = 0; i < vteps; ++i) {
    text += i == skip ? "" : fmt::format("10.1.{}.{},", i / 250, i % 250 + 1);
  }
  return text + "]}}\nnext_hops: [{mac: '02:00:00:00:bb:99'}]";
}

TEST_P(VSwitchNode, EightThousandNodes) {
  constexpr unsigned vteps = 8'192;
  build(many(1, 1));
  const auto timed = [&](const char* what, const std::string& settings) {
    settings_ = *Config::parse(settings, "n.yaml");
    const std::vector<ServicePort> ports = service_ports(*node_);
    const ServiceContext context(*node_, kind_, settings_, folder_, ports, {});
    const Nanoseconds before = SystemClock::read();
    Nanoseconds read = 0;
    const auto done = node_->update([&](Update& update) {
      EXPECT_TRUE(service_->configure(context, update));
      read = SystemClock::read();
    });
    EXPECT_TRUE(done);
    const Nanoseconds after = SystemClock::read();
    fmt::print("{}: settings {:.2f} ms, update {:.2f} ms\n", what, static_cast<double>(read - before) / 1e6,
               static_cast<double>(after - read) / 1e6);
  };
  timed("8,192 VTEPs", many(vteps, vteps));
  timed("one of them gone", many(vteps, 4'000));
  timed("and back", many(vteps, vteps));
  EXPECT_THAT(send("a", frame(alice, everybody)), SizeIs(vteps));
  EXPECT_THAT(drop_counts(), IsEmpty());
}

TEST_P(VSwitchNode, FourThousandNetworks) {
  std::string text = "networks:\n";
  for (unsigned i = 1; i <= 4'096; ++i) {
    text += fmt::format("  {}: {{vlan: {}, trunks: [{}], vteps: [192.0.2.2]}}\n", 100 * i, i % 4'000 + 1,
                        i < 4'000 ? "t" : "c");
  }
  build(text);
  EXPECT_THAT(send("t", frame(alice, everybody).vlan(8)), ElementsAre("up"));
  EXPECT_EQ(load_big<std::uint16_t>(&out_[0][47]), 700);
  EXPECT_THAT(send("up", tunnelled(700, frame(carol, everybody))), ElementsAre("t"));
  EXPECT_EQ(out_[0][15], 8);
}

}  // namespace
}  // namespace weir
