// BFD on the wire, through all engines: what the node sends, hears and refuses, and what becomes of paths.

#include <weir/engine/host/path_monitor.h>

#include <gmock/gmock.h>

#include <weir/engine/host/bfd_datagram.h>
#include <weir/engine/testing/differential.h>
#include <weir/packet/packet_builder.h>

namespace weir::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Nanoseconds ms = 1'000'000;
constexpr Nanoseconds second = 1'000 * ms;
constexpr const char* own_mac = "02:00:00:00:ff:02";  // of port 1
constexpr const char* peer_mac = "02:00:00:00:00:0a";

struct Family {
  const char* own;
  const char* peer;
  std::size_t udp_at;
};
constexpr Family v4{"192.0.2.2", "192.0.2.10", 34};
constexpr Family v6{"2001:db8:ff00::2", "2001:db8:ff00::a", 54};

PathKey path(const Family& family) { return {port(1), ip_address(family.peer)}; }

// BFD and ARP for the node; other packets by port 1 while the path there is up, else by port 2.
Build graph(const Family& family) {
  return [family](GraphBuilder& graph) {
    graph.stage([family](Flow& flow) {
      if (!flow.has(layers::udp) || flow[l4::dst_port] == bfd_port) {
        return flow.to_host();
      }
      return flow.output(port(flow.path_up(port(1), ip_address(family.peer)) ? 1 : 2));
    });
    graph.apply([&](Update& update) {
      update.set(graph.state.neighbours().table(), path(family), *MacAddress::parse(peer_mac));
    });
    graph.state.paths().want("test", {{path(family), BfdSettings{.interval = 10 * ms}}});
    graph.event("slower", [&state = graph.state, family](Update&) {
      state.paths().want("test", {{path(family), BfdSettings{.interval = 50 * ms}}});
    });
    graph.event("unwanted", [&state = graph.state](Update&) { state.paths().want("test", {}); });
    graph.event("cut", [&graph](Update&) { graph.set_up(port(1), false); });
  };
}

class Watched : public ::testing::TestWithParam<Family> {
 protected:
  void send(const Bytes& packet, std::uint16_t ingress = 1) {
    ASSERT_EQ(nodes_.send(port(ingress), std::vector<TestPacket>{{packet}}, now_), "");
    note();
  }
  void pass(Nanoseconds time = 0) {
    now_ += time;
    ASSERT_EQ(nodes_.idle(now_), "");
    note();
  }
  void happen(const std::string& event) { ASSERT_EQ(nodes_.happen(event, now_), ""); }
  void note() {
    for (const auto& [out, packets] : nodes_.observed().sent) {
      for (const Sent& sent : packets) {
        EXPECT_EQ(wrong_checksum(sent.bytes), "");
        sent_[out].push_back(sent.bytes);
      }
    }
  }

  [[nodiscard]] PacketBuilder peer() const {
    const PacketBuilder frame = PacketBuilder().eth(peer_mac, own_mac);
    return family().udp_at == v4.udp_at ? PacketBuilder(frame).ipv4(family().peer, family().own)
                                        : PacketBuilder(frame).ipv6(family().peer, family().own);
  }
  [[nodiscard]] Bytes datagram(const BfdPacket& packet, unsigned ttl = 255, std::uint16_t to = bfd_port) const {
    const auto bytes = write_bfd(packet);
    return peer()
        .ttl(static_cast<std::uint8_t>(ttl))
        .udp(50'000, to)
        .payload(Bytes(bytes.begin(), bytes.end()))
        .bytes();
  }
  [[nodiscard]] BfdPacket says(BfdState state) const {
    return {.state = state,
            .multiplier = 3,
            .my_discriminator = 77,
            .your_discriminator = discriminator_,
            .desired_transmit = 10'000,
            .required_receive = 10'000};
  }
  /// The packets that the node sent to the peer.
  std::vector<BfdPacket> heard() {
    std::vector<BfdPacket> all;
    for (const Bytes& frame : std::exchange(sent_[1], {})) {
      const auto read = read_bfd(std::span(frame).subspan(family().udp_at + 8));
      EXPECT_TRUE(read);
      EXPECT_GE(load_big<std::uint16_t>(frame.data() + family().udp_at), bfd_first_source_port);
      EXPECT_EQ(load_big<std::uint16_t>(frame.data() + family().udp_at + 2), bfd_port);
      EXPECT_EQ(frame[family().udp_at == v4.udp_at ? 22 : 21], 255);
      all.push_back(*read);
      discriminator_ = read->my_discriminator;
    }
    return all;
  }
  void come_up() {
    pass();
    ASSERT_THAT(heard(), SizeIs(1));
    send(datagram(says(BfdState::init)));
    const auto told = heard();
    ASSERT_THAT(told, SizeIs(1)) << "at once";
    EXPECT_EQ(told[0].state, BfdState::up);
    EXPECT_TRUE(told[0].poll);
    BfdPacket final = says(BfdState::up);
    final.final = true;
    send(datagram(final));
  }
  /// Which port other packets leave by.
  std::uint16_t way() {
    const Bytes packet = PacketBuilder().ipv4("198.51.100.1", "198.51.100.2").udp(1, 2).payload(20).bytes();
    send(packet, 0);
    std::uint16_t out = 0;
    for (const std::uint16_t each : {std::uint16_t{1}, std::uint16_t{2}}) {
      out = std::erase(sent_[each], packet) != 0 ? each : out;
    }
    return out;
  }
  [[nodiscard]] std::uint64_t dropped(const std::string& reason) const {
    const auto place = nodes_.observed().drops.find(reason);
    return place == nodes_.observed().drops.end() ? 0 : place->second;
  }
  [[nodiscard]] static const Family& family() { return GetParam(); }

  Differential nodes_{graph(GetParam())};
  Nanoseconds now_ = 1;
  std::map<std::uint16_t, std::vector<Bytes>> sent_;
  std::uint32_t discriminator_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Bfd, Watched, ::testing::Values(v4, v6),
                         [](const auto& each) { return each.param.udp_at == v4.udp_at ? "IPv4" : "IPv6"; });

TEST_P(Watched, ComesUpAndGoesDown) {
  EXPECT_EQ(way(), 1);
  pass();
  const auto first = heard();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].state, BfdState::down);
  EXPECT_EQ(first[0].your_discriminator, 0U);
  EXPECT_EQ(first[0].desired_transmit, 1'000'000U);
  const std::uint32_t own = std::exchange(discriminator_, 0);
  send(datagram(says(BfdState::down)));
  const auto second_one = heard();
  ASSERT_THAT(second_one, SizeIs(1));
  EXPECT_EQ(second_one[0].state, BfdState::init);
  EXPECT_EQ(second_one[0].your_discriminator, 77U);
  discriminator_ = own;
  send(datagram(says(BfdState::up)));
  ASSERT_THAT(heard(), SizeIs(1));
  EXPECT_EQ(way(), 1);
  EXPECT_EQ(way(), 1) << "by the rule";

  // Silence: believed only after some rounds, in which what waits in ports would be found.
  for (Nanoseconds time = 0; time < 29 * ms; time += ms) {
    pass(ms);
  }
  EXPECT_EQ(way(), 1);
  EXPECT_GE(heard().size(), 2U);
  pass(ms);
  pass();
  EXPECT_EQ(way(), 1);
  for (int round = 0; round < 64; ++round) {
    pass();
  }
  EXPECT_EQ(way(), 2);
  const auto last = heard();
  ASSERT_THAT(last, ::testing::Not(IsEmpty()));
  EXPECT_EQ(last.back().diagnostic, BfdDiagnostic::detection_expired);

  discriminator_ = 0;
  send(datagram(says(BfdState::down)));
  EXPECT_EQ(way(), 2);
  ASSERT_THAT(heard(), SizeIs(1));
  send(datagram(says(BfdState::init)));
  EXPECT_EQ(way(), 1);
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, TheOtherSideSaysThatItIsDown) {
  come_up();
  send(datagram(says(BfdState::down)));
  EXPECT_EQ(way(), 2);
  ASSERT_THAT(heard(), SizeIs(1));
  send(datagram(says(BfdState::admin_down)));
  EXPECT_EQ(way(), 1) << "an administrator's wish is no failure";
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, APacketThatIsLateIsFoundInTime) {
  come_up();
  heard();
  pass(100 * ms);  // the worker had to wait for its processor
  for (int round = 0; round < 10; ++round) {
    pass();
  }
  send(datagram(says(BfdState::up)));
  for (int round = 0; round < 200; ++round) {
    pass();
  }
  EXPECT_EQ(way(), 1);
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, WhoseSettingsChange) {
  come_up();
  happen("slower");
  heard();
  pass();
  const auto told = heard();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_TRUE(told[0].poll);
  EXPECT_EQ(told[0].desired_transmit, 50'000U);
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, NoLongerSaysSoAndEnds) {
  come_up();
  heard();
  happen("unwanted");
  pass();
  const auto told = heard();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].state, BfdState::admin_down);
  pass(3 * second);
  heard();
  for (int i = 0; i < 10; ++i) {
    pass(second);
  }
  EXPECT_THAT(heard(), IsEmpty());
  EXPECT_EQ(way(), 1);
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, WhoseLinkIsCut) {
  come_up();
  heard();
  happen("cut");
  pass(11 * ms);
  EXPECT_EQ(way(), 2);
  EXPECT_THAT(heard(), IsEmpty());
  EXPECT_EQ(nodes_.close(), "");
}

struct Refused {
  const char* name;
  Bytes packet;
  const char* reason;
};

TEST_P(Watched, Refuses) {
  come_up();
  const auto changed = [&](auto change) {
    BfdPacket packet = says(BfdState::up);
    change(packet);
    return packet;
  };
  const auto byte = [&](std::size_t at, std::uint8_t value) {  // of the BFD packet
    const auto bytes = write_bfd(says(BfdState::up));
    Bytes payload(bytes.begin(), bytes.end());
    payload.resize(28);
    payload[at] = value;
    return peer().ttl(255).udp(50'000, bfd_port).payload(payload).bytes();
  };
  Bytes bad_sum = datagram(says(BfdState::down));
  bad_sum.back() ^= 1U;
  std::vector<Refused> table{
      {"from beyond a router", datagram(says(BfdState::down), 254), "bfd_not_adjacent"},
      {"of another version", byte(0, 0x40), "bfd_malformed"},
      {"without a multiplier", byte(2, 0), "bfd_malformed"},
      {"multipoint", byte(1, 0xc1), "bfd_malformed"},
      {"longer than it is", byte(3, 29), "bfd_malformed"},
      {"cut short", peer().ttl(255).udp(50'000, bfd_port).payload(23).bytes(), "bfd_malformed"},
      {"from no source port", peer().ttl(255).udp(0, bfd_port).payload(24).bytes(), "bfd_malformed"},
      {"for another session", datagram(changed([](BfdPacket& p) { ++p.your_discriminator; })), "bfd_no_session"},
      {"Up for no session", datagram(changed([](BfdPacket& p) { p.your_discriminator = 0; })), "bfd_malformed"},
      {"with a wrong checksum", bad_sum, "host_bad_checksum"},
  };
  for (const Refused& each : table) {
    SCOPED_TRACE(each.name);
    const std::uint64_t before = dropped(each.reason);
    send(each.packet);
    EXPECT_EQ(dropped(each.reason), before + 1);
    EXPECT_EQ(way(), 1);
  }
  const auto bytes = write_bfd(says(BfdState::down));
  Bytes authenticated(bytes.begin(), bytes.end());
  authenticated.resize(28);
  authenticated[1] |= 4;
  authenticated[3] = 28;
  send(peer().ttl(255).udp(50'000, bfd_port).payload(authenticated).bytes());
  EXPECT_EQ(dropped("bfd_authenticated"), 1U);
  send(datagram(says(BfdState::down)), 0);
  EXPECT_EQ(dropped("bfd_no_session"), 2U) << "by another port";
  send(PacketBuilder(peer()).vlan(7).ttl(255).udp(50'000, bfd_port).payload(24).bytes());
  EXPECT_EQ(dropped("no_listener"), 1U);
  EXPECT_EQ(way(), 1) << "none of them had an effect";
  EXPECT_EQ(nodes_.close(), "");
}

TEST_P(Watched, RandomPayloadsAreRefusedOrHeard) {
  come_up();
  Random random(11);
  for (int i = 0; i < 3'000; ++i) {
    Bytes packet = datagram(says(static_cast<BfdState>(random.below(4))));
    const std::size_t payload = family().udp_at + 8;
    for (std::uint32_t n = random.below(4); n != 0; --n) {
      packet[payload + random.below(24)] = static_cast<std::uint8_t>(random.below(256));
    }
    packet[family().udp_at + 6] = packet[family().udp_at + 7] = 0;  // IPv6 refuses that: both ways are tried
    ASSERT_NO_FATAL_FAILURE(send(packet));
    ASSERT_NO_FATAL_FAILURE(pass(random.below(4) * ms));
  }
  EXPECT_EQ(nodes_.close(), "");
}

}  // namespace
}  // namespace weir::testing
