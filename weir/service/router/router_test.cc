// The router between two links, frame by frame.

#include <weir/service/router/router.h>

#include <gmock/gmock.h>

#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Bytes = std::vector<std::uint8_t>;

constexpr const char* left_mac = "02:00:00:00:aa:01";
constexpr const char* right_mac = "02:00:00:00:aa:02";
constexpr const char* alice_mac = "02:00:00:00:00:0a";
constexpr const char* bob_mac = "02:00:00:00:00:0b";
constexpr const char* all_macs = "ff:ff:ff:ff:ff:ff";

class RouterNode : public testing::Test {
 protected:
  void build(const std::string& routes, EngineKind engine = EngineKind::core) {
    node_ = std::move(*Node::create({.engine = engine, .decision_share = {100}, .frames = 1024}));
    add(0, "left", left_mac, {"10.1.0.1/24", "2001:db8:1::1/64"});
    add(1, "right", right_mac, {"10.2.0.1/24", "2001:db8:2::1/64"});
    const auto settings = Config::parse("{routes: {" + routes + "}}", "n.yaml");
    auto built = build_service(*node_, router(), *settings, ".");
    ASSERT_TRUE(built) << built.error().message;
    service_ = std::move(*built);
    node_->graph().connect(PortId{0}, service_->stages().entry);
    node_->graph().connect(PortId{1}, service_->stages().entry);
    ASSERT_TRUE(node_->prepare());
  }

  void add(std::size_t number, const char* name, const char* mac, std::initializer_list<const char*> addresses) {
    const auto spec = *DeviceSpec::parse("memory:record=4096");
    auto device = std::move(*MemoryDevice::make(spec));
    device_[number] = static_cast<MemoryDevice*>(device.get());
    PortOptions options{.mac = *MacAddress::parse(mac)};
    for (const char* text : addresses) {
      options.addresses.push_back(*IpPrefix::parse_interface(text));
    }
    ASSERT_TRUE(node_->add_port(name, std::move(device), options));
  }

  /// What leaves by each port when `frame` comes in by `port`.
  std::array<std::vector<Bytes>, 2> send(std::size_t port, const PacketBuilder& frame) {
    device_[port]->inject(frame.bytes());
    for (int round = 0; round < 3; ++round) {
      node_->poll_once();
    }
    std::array<std::vector<Bytes>, 2> out;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<Bytes> all = device_[i]->recorded();
      out[i].assign(all.begin() + static_cast<std::ptrdiff_t>(seen_[i]), all.end());
      seen_[i] = all.size();
    }
    return out;
  }

  /// Both hosts are known.
  void introduce() {
    send(0, PacketBuilder().eth(alice_mac, all_macs).arp(1, alice_mac, "10.1.0.10", "00:00:00:00:00:00", "10.1.0.1"));
    send(1, PacketBuilder().eth(bob_mac, all_macs).arp(1, bob_mac, "10.2.0.10", "00:00:00:00:00:00", "10.2.0.1"));
  }

  [[nodiscard]] std::string drops() const {
    std::string text;
    for (const Summary::DropLine& line : node_->summary().drops) {
      text += (text.empty() ? "" : " ") + line.reason;
    }
    return text;
  }

  std::unique_ptr<Node> node_;
  std::unique_ptr<Service> service_;
  std::array<MemoryDevice*, 2> device_{};
  std::array<std::size_t, 2> seen_{};
};

PacketBuilder from_alice() { return PacketBuilder().eth(alice_mac, left_mac); }

TEST_F(RouterNode, ForwardsBetweenItsNetworks) {
  for (const EngineKind engine : {EngineKind::core, EngineKind::reference}) {
    seen_ = {};
    build("", engine);
    introduce();
    for (int i = 0; i < 2; ++i) {  // decided, then by the rule
      EXPECT_THAT(send(0, from_alice().ipv4("10.1.0.10", "10.2.0.10").ttl(64).udp(1, 2).payload(30))[1],
                  ElementsAre(PacketBuilder()
                                  .eth(right_mac, bob_mac)
                                  .ipv4("10.1.0.10", "10.2.0.10")
                                  .ttl(63)
                                  .udp(1, 2)
                                  .payload(30)
                                  .bytes()));
    }
  }
}

TEST_F(RouterNode, AsksForAHostAndLosesNothing) {
  build("");
  const auto asked = send(0, from_alice().ipv4("10.1.0.10", "10.2.0.10").udp(1, 2));
  EXPECT_THAT(asked[1], ElementsAre(PacketBuilder()
                                        .eth(right_mac, all_macs)
                                        .arp(1, right_mac, "10.2.0.1", "00:00:00:00:00:00", "10.2.0.10")
                                        .pad_to(60)
                                        .bytes()));
  const auto answered =
      send(1, PacketBuilder().eth(bob_mac, right_mac).arp(2, bob_mac, "10.2.0.10", right_mac, "10.2.0.1"));
  EXPECT_THAT(
      answered[1],
      ElementsAre(PacketBuilder().eth(right_mac, bob_mac).ipv4("10.1.0.10", "10.2.0.10").ttl(63).udp(1, 2).bytes()));
}

TEST_F(RouterNode, TellsItsNeighboursAndForgetsThem) {
  build("");
  introduce();
  const Json known = service_->state()["neighbours"];
  ASSERT_EQ(known.size(), 2U);
  EXPECT_THAT(known, testing::Contains(Json{{"port", "left"}, {"address", "10.1.0.10"}, {"mac", alice_mac}}));
  ASSERT_EQ(service_->metrics().size(), 4U);
  EXPECT_EQ(service_->metrics()[0].value, service_->state()["routes"].size());
  ASSERT_EQ(service_->calls().size(), 1U);
  const auto forgotten = service_->call(service_->calls()[0].name, Json::object());
  ASSERT_TRUE(forgotten) << forgotten.error().message;
  EXPECT_EQ((*forgotten)["forgotten"], 2);
  EXPECT_TRUE(service_->state()["neighbours"].empty());
  const auto asked = send(0, from_alice().ipv4("10.1.0.10", "10.2.0.10").udp(1, 2));
  ASSERT_THAT(asked[1], SizeIs(1));
  EXPECT_EQ(asked[1][0][12] << 8U | asked[1][0][13], 0x0806);
}

TEST_F(RouterNode, AnswersPings) {
  build("");
  EXPECT_THAT(send(0, from_alice().ipv4("10.1.0.10", "10.1.0.1").icmp(8))[0], SizeIs(1));
  EXPECT_THAT(send(0, from_alice().ipv4("10.1.0.10", "10.2.0.1").icmp(8))[0], SizeIs(1)) << "of its other port";
  EXPECT_THAT(send(0, from_alice().ipv6("2001:db8:1::a", "2001:db8:1::1").icmpv6(128))[0], SizeIs(1));
  EXPECT_THAT(send(0, from_alice().ipv6("fe80::a", "2001:db8:1::1").icmpv6(128))[0], SizeIs(1));
  EXPECT_EQ(drops(), "");
}

TEST_F(RouterNode, ByTheLongestPrefixAndSeveralNextHops) {
  build("10.9.0.0/16: {via: [10.2.0.10, 10.2.0.11]}, 10.9.9.0/24: blackhole, default: {via: 10.1.0.10}");
  introduce();
  // One of the two next hops is known: it takes all.
  for (std::uint16_t flow = 0; flow < 8; ++flow) {
    auto out = send(0, from_alice().ipv4("10.1.0.10", "10.9.0.1").udp(flow, 2));
    std::erase_if(out[1], [](const Bytes& frame) { return frame[12] == 8 && frame[13] == 6; });  // asks for the other
    ASSERT_THAT(out[1], SizeIs(1));
    EXPECT_EQ(Bytes(out[1][0].begin(), out[1][0].begin() + 6), (Bytes{2, 0, 0, 0, 0, 0x0b}));
  }
  // With both, each gets some.
  send(1, PacketBuilder()
              .eth("02:00:00:00:00:0c", all_macs)
              .arp(1, "02:00:00:00:00:0c", "10.2.0.11", "00:00:00:00:00:00", "10.2.0.1"));
  std::set<std::uint8_t> used;
  for (std::uint16_t flow = 0; flow < 16; ++flow) {
    const auto out = send(0, from_alice().ipv4("10.1.0.10", "10.9.0.1").udp(flow, 2));
    ASSERT_THAT(out[1], SizeIs(1));
    used.insert(out[1][0][5]);
  }
  EXPECT_THAT(used, ElementsAre(0x0b, 0x0c));
  EXPECT_THAT(send(0, from_alice().ipv4("10.1.0.10", "10.9.9.1").udp(1, 2))[1], IsEmpty());
  EXPECT_EQ(drops(), "blackhole");
  EXPECT_THAT(send(1, PacketBuilder().eth(bob_mac, right_mac).ipv4("10.2.0.10", "8.8.8.8").udp(1, 2))[0], SizeIs(1));
}

class ThreeHops : public RouterNode, public testing::WithParamInterface<EngineKind> {
 protected:
  void SetUp() override {
    build("10.9.0.0/16: {via: [10.2.0.10, 10.2.0.11, 10.2.0.12], bfd: true}", GetParam());
    for (const char last : {'a', 'b', 'c'}) {
      const std::string mac = std::string("02:00:00:00:00:0") + last;
      const std::string address = fmt::format("10.2.0.{}", 10 + last - 'a');
      send(1, PacketBuilder()
                  .eth(mac.c_str(), all_macs)
                  .arp(1, mac.c_str(), address.c_str(), "00:00:00:00:00:00", "10.2.0.1"));
    }
  }

  static PathKey hop(unsigned number) {
    return {PortId{1}, Ipv4Address{{10, 2, 0, static_cast<std::uint8_t>(10 + number)}}};
  }
  /// As a BFD session would.
  void set(unsigned number, bool up) { node_->state().paths().session(hop(number), up); }

  /// Which next hop each flow takes; 99: none.
  std::vector<unsigned> ways() {
    std::vector<unsigned> all;
    for (std::uint16_t flow = 0; flow < 120; ++flow) {
      unsigned way = 99;
      const auto out = send(0, from_alice().ipv4("10.1.0.10", "10.9.0.1").udp(flow, 2));
      for (const Bytes& frame : out[1]) {
        const bool its_own = frame[12] == 8 && frame[13] == 0 && frame[33] == 1;  // not the sessions' packets
        way = its_own ? frame[5] - 0x0aU : way;
      }
      all.push_back(way);
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Router, ThreeHops, testing::Values(EngineKind::core, EngineKind::reference),
                         [](const auto& each) { return each.param == EngineKind::core ? "Core" : "Reference"; });

TEST_P(ThreeHops, OneThatFailsMovesItsOwnFlowsAndTakesThemBack) {
  const auto all = ways();
  for (unsigned first = 0; first < 3; ++first) {
    EXPECT_GT(std::ranges::count(all, first), 20);
    set(first, false);
    const auto without = ways();
    std::set<unsigned> new_ways;
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_NE(without[i], first);
      ASSERT_TRUE(all[i] == first || without[i] == all[i]) << "flow " << i;
      if (all[i] == first) {
        new_ways.insert(without[i]);
      }
    }
    EXPECT_THAT(new_ways, SizeIs(2));
    const unsigned second = (first + 1) % 3;
    set(second, false);
    EXPECT_EQ(ways(), std::vector<unsigned>(all.size(), 3 - first - second));
    set(first, true);
    const auto without_second = ways();
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(without_second[i] == all[i], all[i] != second);
    }
    set(second, true);
    EXPECT_EQ(ways(), all);
  }
}

TEST_P(ThreeHops, AllFail) {
  for (unsigned number = 0; number < 3; ++number) {
    set(number, false);
  }
  const auto out = send(0, from_alice().ipv4("10.1.0.10", "10.9.0.1").udp(1, 2));
  ASSERT_THAT(out[0], SizeIs(1));
  EXPECT_EQ(out[0][0][34], 3);  // unreachable
  EXPECT_EQ(drops(), "next_hop_down");
  const Json paths = service_->state()["paths"];
  ASSERT_EQ(paths.size(), 3U);
  EXPECT_EQ(paths[0]["up"], false);
  EXPECT_EQ(paths[0]["bfd"]["state"], "down");
}

TEST_P(ThreeHops, TheirPortIsDown) {
  ASSERT_TRUE(node_->set_port_up(PortId{1}, false));
  for (unsigned number = 0; number < 3; ++number) {
    EXPECT_FALSE(node_->state().paths().up(hop(number)));
  }
  ASSERT_TRUE(node_->set_port_up(PortId{1}, true));
  EXPECT_TRUE(node_->state().paths().up(hop(0)));
}

TEST(RouterBfd, SettingsThatAreWrong) {
  struct Case {
    const char* settings;
    const char* error;
  };
  const std::vector<Case> table{
      {"{bfd: {interval: 9ms}}", "n.yaml:1:18: expected a time from 10ms to 60s, such as 300ms or 1s, found '9ms'"},
      {"{bfd: {interval: 10}}", "expected a time"},
      {"{bfd: {interval: 61s}}", "expected a time"},
      {"{bfd: {multiplier: 0}}", "n.yaml:1:20"},
      {"{bfd: {intervall: 10ms}}", "unknown key 'intervall'"},
      {"{bfd: true}", "n.yaml:1:7"},
      {"{routes: {10.9.0.0/16: {via: 10.1.0.9, bfd: maybe}}}", "n.yaml:1:45"},
      {"{routes: {10.9.0.0/16: {port: left, bfd: true}}}", "BFD is spoken with next hops; give one ('via')"},
  };
  for (const Case& each : table) {
    SCOPED_TRACE(each.settings);
    const auto node = std::move(*Node::create({.frames = 1024}));
    PortOptions options;
    options.addresses.push_back(*IpPrefix::parse_interface("10.1.0.1/24"));
    ASSERT_TRUE(node->add_port("left", "memory:", options));
    const auto settings = Config::parse(each.settings, "n.yaml");
    const auto built = build_service(*node, router(), *settings, ".");
    ASSERT_FALSE(built);
    EXPECT_THAT(built.error().message, testing::HasSubstr(each.error));
  }
}

struct Refused {
  const char* name;
  PacketBuilder packet;
  const char* reason;
  int icmp_type = -1;  ///< of what the sender is told; -1: nothing
};

TEST_F(RouterNode, Refuses) {
  const std::vector<Refused> table{
      {"no route", from_alice().ipv4("10.1.0.10", "192.0.2.1").udp(1, 2), "no_route", 3},
      {"no route, IPv6", from_alice().ipv6("2001:db8:1::a", "2001:db8:9::1").udp(1, 2), "no_route", 1},
      {"time to live", from_alice().ipv4("10.1.0.10", "10.2.0.10").ttl(1).udp(1, 2), "time_exceeded", 11},
      {"hop limit", from_alice().ipv6("2001:db8:1::a", "2001:db8:2::a").ttl(1).udp(1, 2), "time_exceeded", 3},
      {"too long", from_alice().ipv4("10.1.0.10", "10.2.0.10").udp(1, 2).payload(1480), "too_big", 3},
      {"too long, IPv6", from_alice().ipv6("2001:db8:1::a", "2001:db8:2::a").udp(1, 2).payload(1480), "too_big", 2},
      {"to another station", PacketBuilder().eth(alice_mac, bob_mac).ipv4("10.1.0.10", "10.2.0.10").udp(1, 2),
       "foreign_mac"},
      {"in a frame for all", PacketBuilder().eth(alice_mac, all_macs).ipv4("10.1.0.10", "10.2.0.10").udp(1, 2),
       "broadcast"},
      {"to a network's all", from_alice().ipv4("10.1.0.10", "10.2.0.255").udp(1, 2), "broadcast"},
      {"to all", from_alice().ipv4("10.1.0.10", "255.255.255.255").udp(1, 2), "martian_destination"},
      {"to a loopback", from_alice().ipv4("10.1.0.10", "127.0.0.1").udp(1, 2), "martian_destination"},
      {"to a group", from_alice().ipv4("10.1.0.10", "224.0.0.5").udp(1, 2), "multicast"},
      {"from a loopback", from_alice().ipv4("127.0.0.1", "10.2.0.10").udp(1, 2), "martian_source"},
      {"from the router", from_alice().ipv4("10.1.0.1", "10.2.0.10").udp(1, 2), "martian_source"},
      {"from nobody", from_alice().ipv4("0.0.0.0", "10.2.0.10").udp(1, 2), "martian_source"},
      {"from a group", from_alice().ipv6("ff02::1", "2001:db8:2::a").udp(1, 2), "martian_source"},
      {"from a link to beyond", from_alice().ipv6("fe80::a", "2001:db8:2::a").udp(1, 2), "martian_source"},
      {"tagged", from_alice().vlan(7).ipv4("10.1.0.10", "10.2.0.10").udp(1, 2), "router_tagged"},
      {"not IP", from_alice().payload(40), "not_ip"},
  };
  for (const Refused& each : table) {
    SCOPED_TRACE(each.name);
    seen_ = {};
    build("");
    introduce();
    const auto out = send(0, each.packet);
    EXPECT_THAT(out[1], IsEmpty());
    EXPECT_EQ(drops(), each.reason);
    if (each.icmp_type < 0) {
      EXPECT_THAT(out[0], IsEmpty());
    } else {
      ASSERT_THAT(out[0], SizeIs(1));
      EXPECT_EQ(out[0][0][out[0][0][12] == 0x86 ? 54 : 34], each.icmp_type);
    }
  }
}

}  // namespace
}  // namespace weir
