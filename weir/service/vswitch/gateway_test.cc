// Routing between the switch's networks, and what hosts say about their addresses.

#include <gmock/gmock.h>

#include <weir/service/vswitch/internal/switch_node.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using vswitch_testing::alice;
using vswitch_testing::bob;
using vswitch_testing::Bytes;
using vswitch_testing::carol;
using vswitch_testing::everybody;
using vswitch_testing::frame;
using vswitch_testing::gateway_mac;
using vswitch_testing::Leaves;
using vswitch_testing::uplink_mac;

constexpr const char* nobody = "00:00:00:00:00:00";
constexpr const char* their_router = "02:00:00:00:cc:02";

const std::string two_networks =
    "networks: {100: {ports: [a], gateway: gw1}, 200: {vlan: 20, ports: [b], trunks: [t], gateway: gw2}}";

PacketBuilder packet(const char* from_mac, const char* from, const char* to, std::uint8_t ttl = 64) {
  return PacketBuilder().eth(from_mac, gateway_mac).ipv4(from, to).ttl(ttl).udp(1000, 2000).payload(20);
}
PacketBuilder packet6(const char* from_mac, const char* from, const char* to) {
  return PacketBuilder().eth(from_mac, gateway_mac).ipv6(from, to).ttl(64).udp(1000, 2000).payload(20);
}
PacketBuilder who_has(const char* mac, const char* address, const char* target) {
  return PacketBuilder().eth(mac, everybody).arp(1, mac, address, nobody, target);
}
PacketBuilder is_at(const char* mac, const char* address, const char* to_mac, const char* to) {
  return PacketBuilder().eth(mac, to_mac).arp(2, mac, address, to_mac, to);
}
/// A neighbour solicitation; `with_address`: with the sender's Ethernet address.
PacketBuilder solicitation(const char* mac, const char* address, const char* group, const char* target,
                           bool with_address = true) {
  Bytes body(16);
  std::ranges::copy(IpAddress::parse(target)->to_v6().bytes, body.begin());
  if (with_address) {
    const MacAddress own = *MacAddress::parse(mac);
    body.insert(body.end(), {1, 1});
    body.insert(body.end(), own.bytes.begin(), own.bytes.end());
  }
  return PacketBuilder().eth(mac, "33:33:ff:00:00:01").ipv6(address, group).ttl(255).icmpv6(135).payload(body);
}
PacketBuilder advertisement(const char* mac, const char* address, const char* to_mac, const char* to,
                            const char* from = nullptr) {
  Bytes body(16);
  std::ranges::copy(IpAddress::parse(address)->to_v6().bytes, body.begin());
  const MacAddress own = *MacAddress::parse(mac);
  body.insert(body.end(), {2, 1});
  body.insert(body.end(), own.bytes.begin(), own.bytes.end());
  return PacketBuilder()
      .eth(mac, to_mac)
      .ipv6(from != nullptr ? from : address, to)
      .ttl(255)
      .icmpv6(136, 0, 0x60000000)
      .payload(body);
}

class GatewayNode : public vswitch_testing::SwitchNode {
 protected:
  void build_two() {
    build(two_networks, {{"gw1", {"10.1.0.1/24", "fd00:1::1/64"}}, {"gw2", {"10.2.0.1/24", "fd00:2::1/64"}}});
  }
  /// Bob, who has port b to himself, has said who he is.
  void bob_is_known() { EXPECT_THAT(send("b", who_has(bob, "10.2.0.7", "10.2.0.1")), ElementsAre("b")); }
  static std::string mac_at(const Bytes& bytes, std::size_t at) {
    MacAddress mac;
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 6, mac.bytes.begin());
    return mac.to_string();
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, GatewayNode, testing::Values(EngineKind::core, EngineKind::reference),
                         [](const auto& each) { return each.param == EngineKind::core ? "core" : "reference"; });

TEST_P(GatewayNode, AnswersForItself) {
  build_two();
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(send("a", who_has(alice, "10.1.0.5", "10.1.0.1")), ElementsAre("a"));
    EXPECT_EQ(out_[0], is_at(gateway_mac, "10.1.0.1", alice, "10.1.0.5").pad_to(60).bytes());
  }
  EXPECT_THAT(send("a", PacketBuilder().eth(alice, gateway_mac).arp(1, alice, "10.1.0.5", gateway_mac, "10.1.0.1")),
              ElementsAre("a"))
      << "asked itself";
  EXPECT_THAT(send("t", who_has(carol, "10.2.0.5", "10.2.0.1").vlan(20)), ElementsAre("t"));
  EXPECT_EQ(out_[0], is_at(gateway_mac, "10.2.0.1", carol, "10.2.0.5").pad_to(64).vlan(20).bytes());
  EXPECT_THAT(send("a", solicitation(alice, "fd00:1::5", "ff02::1:ff00:1", "fd00:1::1")), ElementsAre("a"));
  EXPECT_EQ(out_[0][54], 136);
  EXPECT_EQ(mac_at(out_[0], 80), gateway_mac);
  EXPECT_THAT(send("a", solicitation(alice, "fd00:1::5", "fd00:1::1", "fd00:1::1", false)), ElementsAre("a"))
      << "without its own Ethernet address";
  EXPECT_THAT(send("a", solicitation(alice, "::", "ff02::1:ff00:1", "fd00:1::1", false)), ElementsAre("a"))
      << "the address is taken";
  EXPECT_EQ(mac_at(out_[0], 0), "33:33:00:00:00:01");
  const auto ping = PacketBuilder().eth(alice, gateway_mac).ipv4("10.1.0.5", "10.1.0.1").icmp(8, 0, 7).payload(20);
  EXPECT_THAT(send("a", ping), ElementsAre("a"));
  EXPECT_EQ(out_[0][34], 0) << "an echo reply";
  EXPECT_THAT(send("a", PacketBuilder().eth(alice, gateway_mac).ipv4("10.1.0.5", "10.2.0.1").icmp(8, 0, 7).payload(20)),
              ElementsAre("a"))
      << "of the other network";
}

TEST_P(GatewayNode, RoutesBetweenNetworks) {
  build_two();
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("b", "t")) << "who has it?";
  EXPECT_EQ(out_[0], PacketBuilder()
                         .eth(gateway_mac, everybody)
                         .arp(1, gateway_mac, "10.2.0.1", nobody, "10.2.0.7")
                         .pad_to(60)
                         .bytes());
  EXPECT_THAT(send("b", is_at(bob, "10.2.0.7", gateway_mac, "10.2.0.1")), ElementsAre("b")) << "it waited";
  const Bytes routed =
      PacketBuilder().eth(gateway_mac, bob).ipv4("10.1.0.5", "10.2.0.7").ttl(63).udp(1000, 2000).payload(20).bytes();
  EXPECT_EQ(out_[0], routed);
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("b"));
    EXPECT_EQ(out_[0], routed);
  }
  // Back, into a network whose host has not been asked for, but was heard.
  EXPECT_THAT(send("b", packet(bob, "10.2.0.7", "10.1.0.5")), ElementsAre("a")) << "who has it?";
  EXPECT_THAT(send("a", who_has(alice, "10.1.0.5", "10.1.0.1")), ElementsAre("a", "a")) << "an answer, and what waited";
  EXPECT_THAT(send("b", packet(bob, "10.2.0.7", "10.1.0.5")), ElementsAre("a"));
  EXPECT_EQ(mac_at(out_[0], 0), alice);
  // To and from a trunk.
  EXPECT_THAT(send("t", who_has(carol, "10.2.0.9", "10.2.0.1").vlan(20)), ElementsAre("t"));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.9")), ElementsAre("t"));
  EXPECT_EQ(out_[0], PacketBuilder()
                         .eth(gateway_mac, carol)
                         .vlan(20)
                         .ipv4("10.1.0.5", "10.2.0.9")
                         .ttl(63)
                         .udp(1000, 2000)
                         .payload(20)
                         .bytes());
  EXPECT_THAT(send("t", packet(carol, "10.2.0.9", "10.1.0.5").vlan(20)), ElementsAre("a"));
  EXPECT_EQ(out_[0].size(), routed.size());
  // Frames that are not for the gateway are not routed.
  EXPECT_THAT(send("a", PacketBuilder().eth(alice, bob).ipv4("10.1.0.5", "10.2.0.7").udp(1, 2)),
              ElementsAre("dropped: flood_empty"));
}

TEST_P(GatewayNode, RoutesIpv6) {
  build_two();
  EXPECT_THAT(send("a", packet6(alice, "fd00:1::5", "fd00:2::7")), ElementsAre("b", "t"));
  EXPECT_EQ(out_[0][54], 135) << "a solicitation";
  EXPECT_THAT(send("b", advertisement(bob, "fd00:2::7", gateway_mac, "fd00:2::1")), ElementsAre("b"));
  EXPECT_EQ(
      out_[0],
      PacketBuilder().eth(gateway_mac, bob).ipv6("fd00:1::5", "fd00:2::7").ttl(63).udp(1000, 2000).payload(20).bytes());
}

TEST_P(GatewayNode, RefusesInItsOwnName) {
  build_two();
  bob_is_known();
  struct Case {
    const char* description;
    PacketBuilder sent;
    Leaves leaves;
    int type = -1, code = -1;
  };
  const std::vector<Case> cases{
      {"its time is up", packet(alice, "10.1.0.5", "10.2.0.7", 1), {"a", "dropped: time_exceeded"}, 11, 0},
      {"no route", packet(alice, "10.1.0.5", "10.9.0.7"), {"a", "dropped: no_route"}, 3, 0},
      {"too big",
       PacketBuilder().eth(alice, gateway_mac).ipv4("10.1.0.5", "10.2.0.7").udp(1, 2).payload(1473),
       {"a", "dropped: too_big"},
       3,
       4},
      {"a broadcast", packet(alice, "10.1.0.5", "10.2.0.255"), {"dropped: broadcast"}},
      {"loopback", packet(alice, "10.1.0.5", "127.0.0.1"), {"dropped: martian_destination"}},
      {"from a group", packet(alice, "224.0.0.5", "10.2.0.7"), {"dropped: martian_source"}},
      {"not IP", PacketBuilder().eth(alice, gateway_mac).eth_type(0x1234).payload(20), {"dropped: not_ip"}},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(send("a", each.sent), each.leaves) << each.description;
    if (each.type >= 0) {
      EXPECT_EQ(out_[0][34], each.type) << each.description;
      EXPECT_EQ(out_[0][35], each.code) << each.description;
      EXPECT_EQ(out_[0][26] << 24U | out_[0][27] << 16U | out_[0][28] << 8U | out_[0][29], 10 << 24 | 1 << 16 | 1)
          << each.description << ": from the gateway's address";
      EXPECT_EQ(mac_at(out_[0], 6), gateway_mac) << each.description;
    }
  }
}

TEST_P(GatewayNode, VrfsAreApart) {
  build(
      "networks: {100: {ports: [a], gateway: gw1, vrf: blue}, 200: {ports: [b], gateway: gw2, vrf: red}}\n"
      "vrfs: {blue: , red: {routes: {10.9.0.0/16: blackhole}}}",
      {{"gw1", {"10.1.0.1/24"}}, {"gw2", {"10.1.0.1/24"}}});
  EXPECT_THAT(send("b", who_has(bob, "10.1.0.7", "10.1.0.1")), ElementsAre("b"));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.1.0.7")), ElementsAre("a")) << "asked for in its own network";
  EXPECT_THAT(send("b", packet(bob, "10.1.0.7", "10.9.0.5")), ElementsAre("dropped: blackhole"));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.9.0.7")), ElementsAre("a", "dropped: no_route"));
}

TEST_P(GatewayNode, RoutedPacketsHaveANetworkOfTheirOwn) {
  build(
      "networks: {100: {ports: [a], vteps: [192.0.2.2], gateway: gw1, vrf: blue}}\n"
      "vrfs: {blue: {vni: 5000, routes: {10.3.0.0/16: {vtep: 192.0.2.2, mac: '02:00:00:00:cc:02'}}}}",
      {{"gw1", {"10.1.0.1/24"}}});
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.3.0.7")), ElementsAre("up"));
    EXPECT_EQ(load_big<std::uint32_t>(&out_[0][46]) >> 8U, 5000U);
    const Bytes inner(out_[0].begin() + 50, out_[0].end());
    EXPECT_EQ(inner, PacketBuilder()
                         .eth(uplink_mac, their_router)
                         .ipv4("10.1.0.5", "10.3.0.7")
                         .ttl(63)
                         .udp(1000, 2000)
                         .payload(20)
                         .bytes())
        << "from this node's router to that node's";
  }
  EXPECT_THAT(send("a", who_has(alice, "10.1.0.5", "10.1.0.1")), ElementsAre("a"));
  const auto back = [](const char* to, std::uint8_t ttl) {
    return PacketBuilder().eth(their_router, to).ipv4("10.3.0.7", "10.1.0.5").ttl(ttl).udp(1000, 2000).payload(20);
  };
  EXPECT_THAT(send("up", tunnelled(5000, back(uplink_mac, 63))), ElementsAre("a"));
  EXPECT_EQ(
      out_[0],
      PacketBuilder().eth(gateway_mac, alice).ipv4("10.3.0.7", "10.1.0.5").ttl(62).udp(1000, 2000).payload(20).bytes());
  EXPECT_THAT(send("up", tunnelled(5000, back(uplink_mac, 1))), ElementsAre("dropped: time_exceeded"))
      << "nobody is told: the way back is another's";
  EXPECT_THAT(send("up", tunnelled(5000, back(alice, 63))), ElementsAre("dropped: not_for_router"));
  EXPECT_THAT(send("up", tunnelled(5000, back(uplink_mac, 63), "192.0.2.3")), ElementsAre("dropped: unknown_vtep"));
  EXPECT_THAT(send("a", PacketBuilder().eth(alice, gateway_mac).ipv4("10.1.0.5", "10.3.0.7").udp(1, 2).payload(1423)),
              ElementsAre("a", "dropped: too_big"));
  EXPECT_EQ(load_big<std::uint16_t>(&out_[0][40]), 1450);
}

TEST_P(GatewayNode, HostsOfOtherNodesUseItOutOfTunnels) {
  build("networks: {100: {ports: [a], vteps: [192.0.2.2], gateway: gw1}, 200: {ports: [b], gateway: gw2}}",
        {{"gw1", {"10.1.0.1/24"}}, {"gw2", {"10.2.0.1/24"}}});
  bob_is_known();
  EXPECT_THAT(send("up", tunnelled(100, who_has(carol, "10.1.0.9", "10.1.0.1"))), ElementsAre("up"));
  EXPECT_EQ(Bytes(out_[0].begin() + 50, out_[0].end()),
            is_at(gateway_mac, "10.1.0.1", carol, "10.1.0.9").pad_to(60).bytes());
  EXPECT_THAT(send("up", tunnelled(100, packet(carol, "10.1.0.9", "10.2.0.7"))), ElementsAre("b"));
  EXPECT_THAT(send("b", packet(bob, "10.2.0.7", "10.1.0.9")), ElementsAre("up"));
  EXPECT_EQ(mac_at(out_[0], 50), carol);
  EXPECT_EQ(mac_at(out_[0], 56), gateway_mac);
  // Other nodes are the network's gateway, too, and send from its address.
  EXPECT_THAT(
      send("up", tunnelled(100, PacketBuilder().eth(gateway_mac, alice).ipv4("10.3.0.1", "10.1.0.5").udp(1, 2))),
      ElementsAre("a"));
  EXPECT_THAT(send("a", who_has(alice, "10.1.0.5", "10.1.0.1")), ElementsAre("a")) << "and yet it is still here";
}

TEST_P(GatewayNode, ItsAddressesAreNobodyElses) {
  build_two();
  EXPECT_THAT(send("a", PacketBuilder().eth(gateway_mac, bob).ipv4("10.1.0.1", "10.1.0.5").udp(1, 2)),
              ElementsAre("dropped: mac_fixed"));
  EXPECT_THAT(send("a", is_at(alice, "10.1.0.1", everybody, "10.1.0.1")), ElementsAre("dropped: address_fixed"));
  EXPECT_THAT(send("a", who_has(alice, "10.1.0.1", "10.1.0.9")), ElementsAre("dropped: address_fixed"));
  EXPECT_THAT(send("b", advertisement(bob, "fd00:2::1", carol, "fd00:2::9")), ElementsAre("dropped: address_fixed"));
  EXPECT_THAT(send("b", advertisement(bob, "fd00:2::1", carol, "fd00:2::9", "fd00:2::7")),
              ElementsAre("dropped: address_fixed"))
      << "from an address of its own";
}

TEST_P(GatewayNode, AnswersForHostsThatWereHeard) {
  build("networks: {100: {ports: [a, b], vteps: [192.0.2.2]}, 200: {ports: [c, t], suppress: false}}");
  EXPECT_THAT(send("up", tunnelled(100, who_has(carol, "10.0.0.9", "10.0.0.5"))), ElementsAre("a", "b"));
  EXPECT_THAT(send("b", is_at(bob, "10.0.0.7", everybody, "10.0.0.7")), ElementsAre("a", "up"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(send("a", who_has(alice, "10.0.0.5", "10.0.0.9")), ElementsAre("a"));
    EXPECT_EQ(out_[0], is_at(carol, "10.0.0.9", alice, "10.0.0.5").bytes());
  }
  EXPECT_THAT(send("a", who_has(alice, "10.0.0.5", "10.0.0.7")), ElementsAre("a"));
  EXPECT_EQ(out_[0], is_at(bob, "10.0.0.7", alice, "10.0.0.5").bytes());
  EXPECT_THAT(send("b", who_has(carol, "10.0.0.8", "10.0.0.7")), ElementsAre("a", "up"))
      << "who asks on the same link can be heard there";
  EXPECT_THAT(send("a", who_has(alice, "0.0.0.0", "10.0.0.7")), ElementsAre("b", "up"))
      << "who looks whether an address is taken hears from its host";
  // It has moved to another host.
  EXPECT_THAT(send("b", is_at(bob, "10.0.0.9", everybody, "10.0.0.9")), ElementsAre("a", "up"));
  EXPECT_THAT(send("a", who_has(alice, "10.0.0.5", "10.0.0.9")), ElementsAre("a"));
  EXPECT_EQ(out_[0], is_at(bob, "10.0.0.9", alice, "10.0.0.5").bytes());
  // Not where it is not wanted, nor out of tunnels.
  EXPECT_THAT(send("up", tunnelled(100, who_has(carol, "10.0.0.9", "10.0.0.7"))), ElementsAre("a", "b"));
  EXPECT_THAT(send("t", is_at(bob, "10.0.0.7", everybody, "10.0.0.7")), ElementsAre("c"));
  EXPECT_THAT(send("c", who_has(alice, "10.0.0.5", "10.0.0.7")), ElementsAre("t"));
}

TEST_P(GatewayNode, APortHasOnlySoManyIpAddresses) {
  build("networks: {100: {ports: [a, b]}}\nports: {b: {macs: 1}}");
  for (int host = 1; host <= 17; ++host) {
    const std::string address = fmt::format("10.0.0.{}", host);
    EXPECT_THAT(send("b", is_at(bob, address.c_str(), everybody, address.c_str())), ElementsAre("a"))
        << "passes, noted or not";
  }
  EXPECT_THAT(send("a", who_has(alice, "10.0.0.99", "10.0.0.16")), ElementsAre("a"));
  EXPECT_THAT(send("a", who_has(alice, "10.0.0.99", "10.0.0.17")), ElementsAre("b"));
}

TEST_P(GatewayNode, ChangesLive) {
  build_two();
  bob_is_known();
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("b"));
  EXPECT_EQ(configure(two_networks)->rules_cleared, 0U) << "nothing has changed";
  ASSERT_TRUE(configure("networks: {100: {ports: [a], gateway: gw1}, 200: {ports: [b]}}"));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("a", "dropped: no_route"));
  ASSERT_TRUE(configure("networks: {100: {ports: [a]}, 200: {ports: [b], gateway: gw2}}"));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("dropped: flood_empty"))
      << "nobody has that Ethernet address";
  ASSERT_TRUE(configure(two_networks));
  EXPECT_THAT(send("a", packet(alice, "10.1.0.5", "10.2.0.7")), ElementsAre("b"));
}

TEST_P(GatewayNode, SaysWhatItKnows) {
  build_two();
  bob_is_known();
  const Json state = service_->state();
  EXPECT_EQ(state["networks"]["100"], Json({{"ports", 1}, {"vteps", 0}, {"gateway", "gw1"}, {"vrf", "default"}}));
  const Json addresses = (*service_->call("addresses", {}))["addresses"];
  const Json bobs{{"network", 200}, {"address", "10.2.0.7"}, {"mac", bob}, {"known", "heard"}};
  EXPECT_THAT(addresses, testing::Contains(bobs));
  EXPECT_EQ(addresses.size(), 5U);
  const Json routes = (*service_->call("routes", {}))["routes"]["default"];
  EXPECT_EQ(routes["10.2.0.0/24"], "a host of network 200");
  EXPECT_EQ(routes["10.2.0.1/32"], "the gateway itself");
  EXPECT_EQ(routes.size(), 8U);
}

TEST_P(GatewayNode, ErrorsNameEveryMistake) {
  build_two();
  for (const auto& [settings, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"networks: {1: {gateway: a}}", "no port 'a' has the device 'gateway'"},
           {"networks: {1: {gateway: gw1}, 2: {gateway: gw1}}", "'gw1' is the gateway of two networks"},
           {"networks: {1: {vrf: x}}", "a network without a gateway is in no VRF"},
           {"networks: {1: {gateway: gw1, vrf: x}}", "there is no VRF 'x'"},
           {"networks: {1: {gateway: gw1}}\nvrfs: {x: {vni: 1}}", "1 is the VNI of another network"},
           {"networks: {1: {gateway: gw1}}\nvrfs: {x: {routes: {10.0.0.0/8: {vtep: 192.0.2.2, mac: "
            "'02:00:00:00:00:01'}}}}",
            "needs the VRF's 'vni'"},
           {"networks: {1: {gateway: gw1}}\nvrfs: {x: {vni: 7, routes: {10.0.0.0/8: {vtep: 198.51.100.1, mac: "
            "'02:00:00:00:00:01'}}}}",
            "198.51.100.1 is on no network of an uplink"},
           {"networks: {1: {gateway: gw1}}\nvrfs: {x: {routes: {10.0.0.0/8: nowhere}}}", "blackhole"},
       }) {
    const auto done = configure(settings);
    ASSERT_FALSE(done) << settings;
    EXPECT_THAT(done.error().message, HasSubstr(message));
  }
}

}  // namespace
}  // namespace weir
