// Fragments as part of their flows: the same in every engine; later ones follow the first one, whatever the order.
#include <weir/flow/fragment_tracker.h>

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>
#include <weir/packet/packet_builder.h>

namespace weir::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr DropReason portless{"portless", "by a test"};
constexpr DropReason invalid{"invalid_connection", "by a test"};
constexpr Nanoseconds second = 1'000'000'000;

/// Fragments through a tracker to a stage that lets UDP to port 53 and other protocols pass by connection.
Build guarded(FragmentOptions options, bool translate) {
  return [=](GraphBuilder& graph) {
    const auto tracker = graph.packet_stage<FragmentTracker>(options);
    const auto& stage = static_cast<const FragmentTracker&>(graph.packet_stage_at(tracker));
    const auto gate = graph.stage([&stage](Flow& flow) { return FragmentGate(stage).decide(flow); });
    const auto firewall = graph.stage([translate](Flow& flow) {
      if (flow.has(layers::udp) && !flow.test(l4::dst_port, equals(53))) {
        return flow.drop(refused);
      }
      if (flow.has(layers::later_fragment) && !flow.has(layers::ports) && !flow.has(layers::icmp)) {
        return flow.drop(portless);
      }
      Connection connection = flow.connection(ConnectionZone::shared(0));
      if (connection.invalid()) {
        return flow.drop(invalid);
      }
      Translation translation;
      if (translate) {
        translation.src = ip_address(connection.initiator().src.v6 ? "2001:db8:9::1" : "203.0.113.1");
        translation.src_ports = {5000, 5000};
      }
      connection.commit(translation);
      connection.translate();
      return flow.output(port(1));
    });
    graph.connect(gate, firewall);
    graph.connect(tracker, firewall);
    graph.enter(port(0), gate);
  };
}

struct Piece {
  unsigned from, bytes;
  std::uint16_t dst_port = 53;
  std::uint32_t id = 7;
};

/// A fragment of a datagram of 200 bytes of UDP.
TestPacket fragment(const Piece& piece, bool v6 = false) {
  PacketBuilder packet =
      v6 ? PacketBuilder().ipv6("2001:db8::1", "2001:db8::2") : PacketBuilder().ipv4("10.0.0.1", "10.0.0.2");
  packet.id(piece.id).fragment(piece.from, piece.bytes).udp(4000, piece.dst_port).payload(192);
  return {packet.bytes()};
}

/// Where each packet that left lies in its datagram.
std::vector<unsigned> offsets(const std::vector<Sent>& sent, bool v6) {
  std::vector<unsigned> offsets;
  for (const Sent& each : sent) {
    offsets.push_back(v6 ? load_big<std::uint16_t>(&each.bytes[14 + 40 + 2]) & 0xfff8U
                         : (load_big<std::uint16_t>(&each.bytes[14 + 6]) & 0x1fffU) * 8U);
  }
  return offsets;
}

struct Case {
  std::string name;
  std::vector<Piece> pieces;
  std::vector<unsigned> passed;
  std::map<std::string, std::uint64_t> drops;
};

const std::vector<Case> cases = {
    {"in order", {{0, 80}, {80, 80}, {160, 40}}, {0, 80, 160}, {}},
    {"the first one last", {{160, 40}, {80, 80}, {0, 80}}, {0, 160, 80}, {}},
    {"the first one in between", {{160, 40}, {0, 80}, {80, 80}}, {0, 160, 80}, {}},
    {"two packets at once", {{80, 120}, {80, 120, 53, 8}, {0, 80, 53, 8}, {0, 80}}, {0, 80, 0, 80}, {}},
    {"refused: the later ones follow", {{0, 80, 99}, {80, 80, 99}, {160, 40, 99}}, {}, {{"refused", 3}}},
    {"refused, the first one last", {{80, 120, 99}, {0, 80, 99}}, {}, {{"refused", 2}}},
    {"the first one never comes", {{80, 80}, {160, 40}}, {}, {{"fragment_timeout", 2}}},
    {"twice", {{0, 80}, {0, 80}, {80, 120}}, {0, 80}, {{"fragment_duplicate", 1}}},
    {"overlap: nothing more passes", {{0, 80}, {72, 128}, {80, 120}}, {0}, {{"fragment_overlap", 2}}},
    {"overlap before the first one", {{80, 80}, {152, 48}, {0, 80}}, {}, {{"fragment_overlap", 3}}},
    {"the header again", {{0, 80}, {0, 88}}, {0}, {{"fragment_overlap", 1}}},
    {"two ends", {{0, 80}, {160, 40}, {80, 120}}, {0, 160}, {{"fragment_overlap", 1}}},
    {"a first one without its whole header",
     {{0, 0}, {8, 192}},
     {},
     {{"fragment_malformed", 1}, {"fragment_timeout", 1}}},
};

TEST(FragmentTracker, Table) {
  for (const bool v6 : {false, true}) {
    for (const bool translate : {false, true}) {
      for (const Case& each : cases) {
        const std::string name = fmt::format("{}, IPv{}{}", each.name, v6 ? 6 : 4, translate ? ", translated" : "");
        Differential nodes(guarded({}, translate));
        std::vector<Sent> sent;
        std::map<std::string, std::uint64_t> drops;
        Nanoseconds now = 1;
        const auto look = [&](const std::string& difference) {
          EXPECT_EQ(difference, "") << name;
          const auto& out = nodes.observed().sent;
          if (const auto place = out.find(1); place != out.end()) {
            sent.insert(sent.end(), place->second.begin(), place->second.end());
          }
          drops = nodes.observed().drops;
        };
        for (const Piece& piece : each.pieces) {
          look(nodes.send(port(0), {{fragment(piece, v6)}}, now));
          look(nodes.idle(now += 1000));
        }
        look(nodes.idle(now + 31 * second));
        EXPECT_EQ(offsets(sent, v6), each.passed) << name;
        std::erase_if(drops, [](const auto& drop) { return drop.second == 0; });
        EXPECT_EQ(drops, each.drops) << name;
        EXPECT_EQ(nodes.close(), "") << name;
      }
    }
  }
}

TEST(FragmentTracker, WhatIsPutTogetherHasTheRightChecksum) {
  Differential nodes(guarded({}, true));
  Bytes whole;
  for (const unsigned from : {0U, 80U, 160U}) {
    ASSERT_EQ(nodes.send(port(0), {{fragment({from, from == 160 ? 40U : 80U})}}, 1), "");
    const Sent& sent = nodes.observed().sent.at(1).front();
    EXPECT_EQ(load_big<std::uint32_t>(&sent.bytes[26]), 0xcb007101U);  // 203.0.113.1
    if (from == 0) {
      whole.assign(sent.bytes.begin(), sent.bytes.begin() + 34);
    }
    whole.insert(whole.end(), sent.bytes.begin() + 34, sent.bytes.end());
  }
  EXPECT_EQ(load_big<std::uint16_t>(&whole[34]), 5000);
  store_big<std::uint16_t>(&whole[16], static_cast<std::uint16_t>(whole.size() - 14));
  store_big<std::uint16_t>(&whole[20], 0);
  store_big<std::uint16_t>(&whole[24], 0);
  std::uint32_t sum = 0;
  for (unsigned at = 14; at < 34; at += 2) {
    sum += load_big<std::uint16_t>(&whole[at]);
  }
  sum = (sum & 0xffffU) + (sum >> 16U);
  store_big<std::uint16_t>(&whole[24], static_cast<std::uint16_t>(~((sum & 0xffffU) + (sum >> 16U))));
  EXPECT_EQ(wrong_checksum(whole), "");
  EXPECT_EQ(nodes.close(), "");
}

TEST(FragmentTracker, Bounded) {
  Differential nodes(guarded({.packets = 4, .waiting = 6}, false));
  for (std::uint32_t id = 0; id < 20; ++id) {
    ASSERT_EQ(nodes.send(port(0), {{fragment({80, 80, 53, id}), fragment({160, 40, 53, id})}}, 1 + id), "");
  }
  const auto& drops = nodes.observed().drops;
  EXPECT_EQ(drops.at("fragment_displaced") + drops.at("fragment_limit"), 40U - 6);
  EXPECT_EQ(nodes.close(), "");
}

TEST(FragmentTracker, KeyedByWhereItIs) {
  // The same packet in another VLAN is another packet: its later fragment gets no ports from this one.
  Differential nodes(guarded({}, false));
  const auto tagged = [](std::uint16_t vlan, unsigned from, unsigned bytes) {
    return TestPacket{PacketBuilder()
                          .vlan(vlan)
                          .ipv4("10.0.0.1", "10.0.0.2")
                          .id(7)
                          .fragment(from, bytes)
                          .udp(4000, 53)
                          .payload(192)
                          .bytes()};
  };
  ASSERT_EQ(nodes.send(port(0), {{tagged(5, 0, 80), tagged(6, 80, 120), fragment({80, 120})}}, 1), "");
  EXPECT_EQ(nodes.observed().sent.at(1).size(), 1U);
  EXPECT_EQ(nodes.close(), "");
}

}  // namespace
}  // namespace weir::testing
