// What the node itself answers, well-formed and hostile: each packet through all engines.

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>
#include <weir/packet/packet_builder.h>

namespace weir::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The node's own addresses on port 0, as GraphBuilder::ports gives them; those of port 1 end in 2.
constexpr const char* own_mac = "02:00:00:00:ff:01";
constexpr const char* own_v4 = "192.0.2.1";
constexpr const char* own_v6 = "2001:db8:ff00::1";
constexpr const char* peer_mac = "02:00:00:00:00:0a";
constexpr const char* peer_v4 = "192.0.2.10";
constexpr const char* peer_v6 = "2001:db8:ff00::a";
constexpr const char* all_macs = "ff:ff:ff:ff:ff:ff";
constexpr const char* solicited_mac = "33:33:ff:00:00:01";
constexpr const char* solicited_v6 = "ff02::1:ff00:1";

constexpr std::uint8_t solicitation = 135;
constexpr std::uint8_t advertisement = 136;
constexpr std::uint32_t router_solicited_override = 0xe0000000;

Build host() {
  return [](GraphBuilder& graph) { graph.stage([](Flow& flow) { return flow.to_host(); }); };
}

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Bytes bytes_of(const char* address) {
  const IpAddress parsed = ip_address(address);
  return {parsed.bytes.begin(), parsed.bytes.begin() + parsed.bits() / 8};
}

Bytes link_option(std::uint8_t type, const char* mac) {
  const MacAddress parsed = *MacAddress::parse(mac);
  return join({{type, 1}, Bytes(parsed.bytes.begin(), parsed.bytes.end())});
}

PacketBuilder from_peer() { return PacketBuilder().eth(peer_mac, own_mac); }
PacketBuilder from_node() { return PacketBuilder().eth(own_mac, peer_mac); }

PacketBuilder arp_request(const char* sender, const char* target) {
  return PacketBuilder().eth(peer_mac, all_macs).arp(1, peer_mac, sender, "00:00:00:00:00:00", target);
}
PacketBuilder nd(PacketBuilder ip, std::uint8_t type, std::uint32_t flags, const Bytes& rest) {
  return ip.ttl(255).icmpv6(type, 0, flags).payload(rest);
}
PacketBuilder asking() { return PacketBuilder().eth(peer_mac, solicited_mac).ipv6(peer_v6, solicited_v6); }
Bytes question() { return join({bytes_of(own_v6), link_option(1, peer_mac)}); }

Bytes with(Bytes bytes, std::size_t at, std::uint8_t value) {
  bytes.at(at) = value;
  return bytes;
}

struct Case {
  std::string name;
  Bytes packet;
  std::string reason;            // why it is dropped; empty: it is consumed
  std::vector<Bytes> answers{};  // by port 0
};

constexpr std::size_t icmp_at_v4 = 34;
constexpr std::size_t icmp_at_v6 = 54;

std::vector<Case> echoes() {
  const auto ask4 = [] { return from_peer().ipv4(peer_v4, own_v4).ttl(3).tos(8).id(7).icmp(8, 0, 0x12345678); };
  const auto ask6 = [] { return from_peer().ipv6(peer_v6, own_v6).ttl(3).icmpv6(128, 0, 0x12345678); };
  return {
      {"IPv4",
       ask4().payload(100).bytes(),
       "",
       {from_node().ipv4(own_v4, peer_v4).ttl(64).tos(8).id(7).icmp(0, 0, 0x12345678).payload(100).bytes()}},
      {"IPv4, an odd length, longer than a frame's buffer",
       ask4().payload(4001).bytes(),
       "",
       {from_node().ipv4(own_v4, peer_v4).ttl(64).tos(8).id(7).icmp(0, 0, 0x12345678).payload(4001).bytes()}},
      {"IPv4, padded",
       ask4().pad_to(60).bytes(),
       "",
       {from_node().ipv4(own_v4, peer_v4).ttl(64).tos(8).id(7).icmp(0, 0, 0x12345678).pad_to(60).bytes()}},
      {"IPv4, to another port's address",
       from_peer().ipv4(peer_v4, "192.0.2.2").icmp(8).bytes(),
       "",
       {from_node().ipv4("192.0.2.2", peer_v4).icmp(0).bytes()}},
      {"IPv4, tagged",
       PacketBuilder(ask4()).vlan(5).bytes(),
       "",
       {from_node().vlan(5).ipv4(own_v4, peer_v4).ttl(64).tos(8).id(7).icmp(0, 0, 0x12345678).bytes()}},
      {"IPv6",
       ask6().payload(100).bytes(),
       "",
       {from_node().ipv6(own_v6, peer_v6).icmpv6(129, 0, 0x12345678).payload(100).bytes()}},
      {"IPv6, an odd length, longer than a frame's buffer",
       ask6().payload(4001).bytes(),
       "",
       {from_node().ipv6(own_v6, peer_v6).icmpv6(129, 0, 0x12345678).payload(4001).bytes()}},
      {"to an address that is not the node's", from_peer().ipv4(peer_v4, "192.0.2.99").icmp(8).bytes(), "not_for_host"},
      {"to the network", from_peer().ipv4(peer_v4, "192.0.2.255").icmp(8).bytes(), "not_for_host"},
      {"to all nodes", from_peer().ipv6(peer_v6, "ff02::1").icmpv6(128).bytes(), "not_for_host"},
      {"in a frame for all", PacketBuilder().eth(peer_mac, all_macs).ipv4(peer_v4, own_v4).icmp(8).bytes(),
       "not_for_host"},
      {"from a group", from_peer().ipv4("224.0.0.1", own_v4).icmp(8).bytes(), "host_malformed"},
      {"from nobody", from_peer().ipv4("0.0.0.0", own_v4).icmp(8).bytes(), "host_malformed"},
      {"from a loopback", from_peer().ipv4("127.0.0.1", own_v4).icmp(8).bytes(), "host_malformed"},
      {"from an IPv6 group", from_peer().ipv6("ff02::1", own_v6).icmpv6(128).bytes(), "host_malformed"},
      {"a fragment", ask4().payload(100).fragment(0, 64).bytes(), "host_fragment"},
      {"a later fragment", ask4().payload(100).fragment(64, 44).bytes(), "host_fragment"},
      {"an IPv6 fragment", from_peer().ipv6(peer_v6, own_v6).fragment(0, 64).icmpv6(128).payload(100).bytes(),
       "host_fragment"},
      {"with options", from_peer().ipv4(peer_v4, own_v4).options(8).icmp(8).bytes(), "host_malformed"},
      {"with an extension header", from_peer().ipv6(peer_v6, own_v6).extension(60).icmpv6(128).bytes(),
       "host_malformed"},
      {"another code", from_peer().ipv4(peer_v4, own_v4).icmp(8, 1).bytes(), "no_listener"},
      {"a wrong ICMP checksum", with(ask4().payload(20).bytes(), icmp_at_v4 + 10, 0xff), "host_bad_checksum"},
      {"a wrong ICMPv6 checksum", with(ask6().payload(20).bytes(), icmp_at_v6 + 10, 0xff), "host_bad_checksum"},
      {"a wrong header checksum", with(ask4().bytes(), 24, 0xff), "host_bad_checksum"},
      {"an echo reply", from_peer().ipv4(peer_v4, own_v4).icmp(0).bytes(), "no_listener"},
      {"ICMPv6 in IPv4", from_peer().ipv4(peer_v4, own_v4).icmpv6(128).bytes(), "no_listener"},
      {"cut off in the ICMP header",
       [&] {
         Bytes bytes = ask4().bytes();
         bytes.erase(bytes.end() - 4, bytes.end());
         return bytes;
       }(),
       "host_malformed"},
  };
}

std::vector<Case> others() {
  return {
      {"TCP", from_peer().ipv4(peer_v4, own_v4).tcp(1000, 80).bytes(), "no_listener"},
      {"SCTP", from_peer().ipv4(peer_v4, own_v4).sctp(1000, 80).bytes(), "no_listener"},
      {"another protocol", from_peer().ipv4(peer_v4, own_v4).protocol(47).payload(20).bytes(), "no_listener"},
      {"no IP", PacketBuilder().eth(peer_mac, own_mac).payload(40).bytes(), "no_listener"},
      {"a router solicitation", from_peer().ipv6(peer_v6, "ff02::2").ttl(255).icmpv6(133).bytes(), "not_for_host"},
      {"half an Ethernet header", Bytes(7), "host_malformed"},
  };
}

std::vector<Case> arps() {
  const Bytes request = arp_request(peer_v4, own_v4).bytes();
  const auto answer = [](const char* to) {
    return from_node().arp(2, own_mac, own_v4, peer_mac, to).pad_to(60).bytes();
  };
  return {
      {"a request", request, "", {answer(peer_v4)}},
      {"a request, padded", arp_request(peer_v4, own_v4).pad_to(60).bytes(), "", {answer(peer_v4)}},
      {"a probe: whether the address is taken", arp_request("0.0.0.0", own_v4).bytes(), "", {answer("0.0.0.0")}},
      {"a request from a stranger", arp_request("10.9.9.9", own_v4).bytes(), "", {answer("10.9.9.9")}},
      {"for another host", arp_request(peer_v4, "192.0.2.77").bytes(), "not_for_host"},
      {"for the node's address on another port", arp_request(peer_v4, "192.0.2.2").bytes(), "not_for_host"},
      {"an announcement", arp_request(peer_v4, peer_v4).bytes(), ""},
      {"a reply", from_peer().arp(2, peer_mac, peer_v4, own_mac, own_v4).bytes(), ""},
      {"the node's own address claimed", arp_request(own_v4, own_v4).bytes(), "address_conflict"},
      {"from a group's Ethernet address",
       PacketBuilder().eth(peer_mac, all_macs).arp(1, "03:00:00:00:00:01", peer_v4, peer_mac, own_v4).bytes(),
       "host_malformed"},
      {"from no Ethernet address",
       PacketBuilder().eth(peer_mac, all_macs).arp(1, "00:00:00:00:00:00", peer_v4, peer_mac, own_v4).bytes(),
       "host_malformed"},
      {"another operation", PacketBuilder().eth(peer_mac, all_macs).arp(3, peer_mac, peer_v4, peer_mac, own_v4).bytes(),
       "host_malformed"},
      {"of other hardware", with(request, 15, 6), "no_listener"},
      {"a wrong address length", with(request, 18, 8), "no_listener"},
      {"cut off", Bytes(request.begin(), request.begin() + 40), "host_malformed"},
      {"tagged", PacketBuilder(arp_request(peer_v4, own_v4)).vlan(5).bytes(), "no_listener"},
  };
}

std::vector<Case> solicitations() {
  const auto answer = [](const char* mac, const char* to, std::uint32_t flags) {
    return nd(PacketBuilder().eth(own_mac, mac).ipv6(own_v6, to), advertisement, flags,
              join({bytes_of(own_v6), link_option(2, own_mac)}))
        .bytes();
  };
  const Bytes good = nd(asking(), solicitation, 0, question()).bytes();
  return {
      {"to the group", good, "", {answer(peer_mac, peer_v6, router_solicited_override)}},
      {"to the node",
       nd(from_peer().ipv6(peer_v6, own_v6), solicitation, 0, question()).bytes(),
       "",
       {answer(peer_mac, peer_v6, router_solicited_override)}},
      {"without the sender's Ethernet address",
       nd(from_peer().ipv6(peer_v6, own_v6), solicitation, 0, bytes_of(own_v6)).bytes(),
       "",
       {answer(peer_mac, peer_v6, router_solicited_override)}},
      {"with an option that nobody knows",
       nd(asking(), solicitation, 0, join({question(), {200, 2}, Bytes(14)})).bytes(),
       "",
       {answer(peer_mac, peer_v6, router_solicited_override)}},
      {"whether the address is taken",
       nd(PacketBuilder().eth(peer_mac, solicited_mac).ipv6("::", solicited_v6), solicitation, 0, bytes_of(own_v6))
           .bytes(),
       "",
       {answer("33:33:00:00:00:01", "ff02::1", 0xa0000000)}},
      {"whether it is taken, but to the node alone",
       nd(from_peer().ipv6("::", own_v6), solicitation, 0, bytes_of(own_v6)).bytes(), "host_malformed"},
      {"whether it is taken, with an Ethernet address",
       nd(PacketBuilder().eth(peer_mac, solicited_mac).ipv6("::", solicited_v6), solicitation, 0, question()).bytes(),
       "host_malformed"},
      {"for another host",
       nd(asking(), solicitation, 0, join({bytes_of("2001:db8:ff00::99"), link_option(1, peer_mac)})).bytes(),
       "not_for_host"},
      {"for a group", nd(asking(), solicitation, 0, join({bytes_of("ff02::1"), link_option(1, peer_mac)})).bytes(),
       "host_malformed"},
      {"from the node's own address",
       nd(PacketBuilder().eth(peer_mac, solicited_mac).ipv6(own_v6, solicited_v6), solicitation, 0, question()).bytes(),
       "address_conflict"},
      {"from a group", nd(from_peer().ipv6("ff02::5", own_v6), solicitation, 0, question()).bytes(), "host_malformed"},
      {"through a router", nd(asking(), solicitation, 0, question()).ttl(254).bytes(), "host_malformed"},
      {"a wrong checksum", with(good, icmp_at_v6 + 2, 0x77), "host_malformed"},
      {"another code", asking().ttl(255).icmpv6(solicitation, 1).payload(question()).bytes(), "host_malformed"},
      {"too short", asking().ttl(255).icmpv6(solicitation, 0).payload(Bytes(15)).bytes(), "host_malformed"},
      {"an option of length 0", nd(asking(), solicitation, 0, join({question(), {1, 0}, Bytes(6)})).bytes(),
       "host_malformed"},
      {"an option beyond the end", nd(asking(), solicitation, 0, join({bytes_of(own_v6), {1, 2}, Bytes(6)})).bytes(),
       "host_malformed"},
      {"half an option", nd(asking(), solicitation, 0, join({question(), {1}})).bytes(), "host_malformed"},
      {"a group's Ethernet address",
       nd(asking(), solicitation, 0, join({bytes_of(own_v6), link_option(1, "33:33:00:00:00:01")})).bytes(),
       "host_malformed"},
      {"too long", nd(asking(), solicitation, 0, join({question(), {200, 160}, Bytes(1278)})).bytes(),
       "host_malformed"},
      {"a fragment", asking().ttl(255).fragment(0, 32).icmpv6(solicitation).payload(question()).bytes(),
       "host_malformed"},
  };
}

std::vector<Case> advertisements() {
  const Bytes said = join({bytes_of(peer_v6), link_option(2, peer_mac)});
  const auto from = [](const char* to) { return from_peer().ipv6(peer_v6, to); };
  return {
      {"that nobody asked for", nd(from("ff02::1"), advertisement, 0x20000000, said).bytes(), ""},
      {"solicited", nd(from(own_v6), advertisement, 0x60000000, said).bytes(), ""},
      {"without an Ethernet address", nd(from(own_v6), advertisement, 0x60000000, bytes_of(peer_v6)).bytes(), ""},
      {"to all, as if solicited", nd(from("ff02::1"), advertisement, 0x60000000, said).bytes(), "host_malformed"},
      {"from nobody", nd(from_peer().ipv6("::", own_v6), advertisement, 0x60000000, said).bytes(), "host_malformed"},
      {"of the node's own address",
       nd(from("ff02::1"), advertisement, 0x20000000, join({bytes_of(own_v6), link_option(2, peer_mac)})).bytes(),
       "address_conflict"},
      {"through a router", nd(from(own_v6), advertisement, 0x60000000, said).ttl(64).bytes(), "host_malformed"},
  };
}

void check(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    Differential nodes(host());
    const TestPacket packet{each.packet};
    ASSERT_EQ(nodes.send(port(0), {{packet}}, 1), "");
    const Observed& seen = nodes.observed();
    EXPECT_EQ(seen.consumed, each.reason.empty() ? 1U : 0U);
    EXPECT_EQ(seen.originated, each.answers.size());
    const auto place = seen.drops.find(each.reason);
    EXPECT_EQ(place == seen.drops.end() ? 0 : place->second, each.reason.empty() ? 0U : 1U)
        << "it was dropped as " << (seen.drops.empty() ? "nothing" : seen.drops.begin()->first);
    std::vector<Bytes> answers;
    for (const auto& [out, packets] : seen.sent) {
      for (const Sent& sent : packets) {
        EXPECT_EQ(out, 0U);
        answers.push_back(sent.bytes);
      }
    }
    EXPECT_EQ(answers, each.answers);
    EXPECT_EQ(nodes.close(), "");
  }
}

TEST(Host, Echo) { check(echoes()); }
TEST(Host, NothingListens) { check(others()); }
TEST(Host, Arp) { check(arps()); }
TEST(Host, NeighbourSolicitations) { check(solicitations()); }
TEST(Host, NeighbourAdvertisements) { check(advertisements()); }

TEST(Host, UdpThatNobodyTakesIsToldSo) {
  Differential nodes(host());
  const TestPacket packet{from_peer().ipv4(peer_v4, own_v4).udp(1000, 4791).payload(20).bytes()};
  ASSERT_EQ(nodes.send(port(0), {{packet}}, 1), "");
  EXPECT_EQ(nodes.observed().drops.at("no_listener"), 1U);
  const auto& sent = nodes.observed().sent.at(0);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].bytes[icmp_at_v4], 3);
  EXPECT_EQ(sent[0].bytes[icmp_at_v4 + 1], 3);
  EXPECT_EQ(wrong_checksum(sent[0].bytes), "");
  EXPECT_EQ(nodes.close(), "");
}

TEST(Host, TakesThePacketAsRewritten) {
  const Build translating = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) {
      flow.set(ip::dst, ip_address(own_v4));
      return flow.to_host();
    });
  };
  Differential nodes(translating);
  const TestPacket packet{from_peer().ipv4(peer_v4, "198.51.100.1").icmp(8).bytes()};
  ASSERT_EQ(nodes.send(port(0), {{packet, packet}}, 1), "");
  EXPECT_EQ(nodes.observed().consumed, 2U);
  EXPECT_THAT(nodes.observed().sent.at(0), SizeIs(2));
  EXPECT_EQ(nodes.close(), "");
}

TEST(Host, AnswersLeaveOnlyByAPortThatIsUp) {
  const Build down = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) { return flow.to_host(); });
    graph.set_up(port(0), false);
  };
  Differential nodes(down);
  const TestPacket packet{from_peer().ipv4(peer_v4, own_v4).icmp(8).bytes()};
  ASSERT_EQ(nodes.send(port(0), {{packet}}, 1), "");
  EXPECT_EQ(nodes.observed().drops.at("port_down"), 1U);
  EXPECT_THAT(nodes.observed().sent, IsEmpty());
  EXPECT_EQ(nodes.close(), "");
}

TEST(Host, PacketsOfEveryKind) {
  EXPECT_EQ(testing::check(one("to_host", [](Flow& flow) { return flow.to_host(); })), "");
  EXPECT_EQ(testing::check(one("to_host after a rewrite",
                               [](Flow& flow) {
                                 if (flow.has(layers::ip)) {
                                   flow.set(ip::dst, flow.has(layers::ipv4) ? ip_address(own_v4) : ip_address(own_v6));
                                   (void)flow.decrement_ttl();
                                 }
                                 return flow.to_host();
                               })),
            "");
  EXPECT_EQ(testing::check(one("to_host inside a tunnel",
                               [](Flow& flow) {
                                 if (flow.has(layers::vxlan)) {
                                   flow.decapsulate();
                                 }
                                 return flow.to_host();
                               })),
            "");
}

TEST(Host, MutatedPackets) {
  EXPECT_EQ(check_mutations(one("to_host",
                                [](Flow& flow) {
                                  if (flow.has(layers::ip)) {
                                    flow.set(ip::dst, flow.has(layers::ipv4) ? ip_address(own_v4) : ip_address(own_v6));
                                  }
                                  return flow.to_host();
                                }),
                            1, 3'000),
            "");
}

}  // namespace
}  // namespace weir::testing
