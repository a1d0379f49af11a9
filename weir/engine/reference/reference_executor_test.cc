// What the reference engine makes of single packets, against bytes worked out elsewhere and the RFCs' tables.

#include <gmock/gmock.h>

#include <weir/engine/reference/checksums.h>
#include <weir/engine/reference/flow_hash.h>
#include <weir/engine/testing/differential.h>
#include <weir/packet/flow_hash.h>
#include <weir/packet/parse.h>

namespace weir::testing {
namespace {

Bytes hex(std::string_view text) {
  Bytes bytes;
  unsigned digits = 0;
  unsigned value = 0;
  for (const char c : text) {
    if (c == ' ') {
      continue;
    }
    value = value << 4U | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) {
      bytes.push_back(static_cast<std::uint8_t>(value));
      value = 0;
    }
  }
  return bytes;
}

Bytes only(const Build& build, const Bytes& packet) {
  const auto sent = reference_output(build, {packet});
  return sent.size() == 1 && sent.begin()->second.size() == 1 ? sent.begin()->second[0].bytes : Bytes{};
}

// A UDP packet from 10.0.0.1:1 to 10.0.0.2:2 with two bytes of data; its checksums were computed by another program.
const Bytes& small_packet() {
  static const Bytes bytes =
      hex("020000000002 020000000001 0800"
          "4500001e 00000000 4011 66cd 0a000001 0a000002"
          "00010002 000a 4a32 a1a2");
  return bytes;
}

TEST(Reference, TheTestsOwnPacketIsRight) { EXPECT_EQ(wrong_checksum(small_packet()), ""); }

TEST(Reference, Nat) {
  const Build build = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) {
      flow.set(ip::src, ip_address("10.0.1.1"));
      flow.set(l4::src_port, 0x0101);
      flow.decrement_ttl();
      return flow.output(port(1));
    });
  };
  EXPECT_EQ(only(build, small_packet()), hex("020000000002 020000000001 0800"
                                             "4500001e 00000000 3f11 66cd 0a000101 0a000002"
                                             "01010002 000a 4832 a1a2"));
}

TEST(Reference, Tags) {
  const Build build = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) {
      flow.push_vlan(0x6005);
      flow.push_vlan(0x0006);
      flow.set(vlan::inner_id, 7);
      return flow.output(port(1));
    });
  };
  EXPECT_EQ(only(build, hex("020000000002 020000000001 88cc 0102")),
            hex("020000000002 020000000001 8100 0006 8100 6007 88cc 0102"));
}

TEST(Reference, Encapsulation) {
  const Build build = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) {
      flow.encapsulate({.vni = 0x010203,
                        .src = ip_address("192.0.2.1"),
                        .dst = ip_address("192.0.2.2"),
                        .eth_src = mac(1),
                        .eth_dst = mac(2),
                        .dscp = 1});
      return flow.output(port(1));
    });
  };
  Bytes sent = only(build, small_packet());
  ASSERT_EQ(sent.size(), 50U + 44U);
  const unsigned source = unsigned{sent[34]} << 8U | sent[35];
  EXPECT_GE(source, 49'152U);
  sent[34] = sent[35] = 0;
  Bytes expected =
      hex("020000000102 020000000101 0800"
          "45040050 00004000 4011 b695 c0000201 c0000202"
          "0000 12b5 003c 0000 08000000 01020300");
  expected.insert(expected.end(), small_packet().begin(), small_packet().end());
  EXPECT_EQ(sent, expected);
}

// RFC 6040, figure 4. Rows: the inner mark; columns: the outer one, each Not-ECT, ECT(1), ECT(0), CE as numbered on the
// wire. -1: dropped.
TEST(Reference, CongestionMarks) {
  constexpr int expected[4][4] = {{0, 0, 0, -1}, {1, 1, 1, 3}, {2, 1, 2, 3}, {3, 3, 3, 3}};
  const Build build = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) {
      flow.decapsulate();
      return flow.output(port(1));
    });
  };
  for (unsigned inner = 0; inner < 4; ++inner) {
    for (unsigned outer = 0; outer < 4; ++outer) {
      const auto tos = [](unsigned mark) { return static_cast<std::uint8_t>(0xa8U | mark); };
      const Bytes v4 = ethernet(ipv4({.tos = tos(inner)}, udp(1, 2, payload(4))));
      const Bytes v6 = ethernet(ipv6({.traffic_class = tos(inner)}, udp(1, 2, payload(4))));
      const auto marked = [&](unsigned mark) {
        return std::pair(ethernet(ipv4({.tos = tos(mark)}, udp(1, 2, payload(4)))),
                         ethernet(ipv6({.traffic_class = tos(mark)}, udp(1, 2, payload(4)))));
      };
      const int mark = expected[inner][outer];
      const auto result = mark < 0 ? std::pair(Bytes{}, Bytes{}) : marked(static_cast<unsigned>(mark));
      EXPECT_EQ(only(build, ethernet(ipv4({.tos = tos(outer)}, vxlan(1, v4)))), result.first) << inner << outer;
      EXPECT_EQ(only(build, ethernet(ipv6({.traffic_class = tos(outer)}, vxlan(1, v6)))), result.second)
          << inner << outer;
    }
  }
}

TEST(Reference, SelectGoesByTheInnerPacketAfterDecapsulation) {
  const auto chosen = [](bool tunnelled, std::uint16_t source) {
    const Build build = [](GraphBuilder& graph) {
      Group& group = graph.state.group("members");
      graph.stage([&group](Flow& flow) {
        if (flow.has(layers::vxlan)) {
          flow.decapsulate();
        } else {
          flow.set(l4::src_port, 9);
        }
        return flow.select(group);
      });
      graph.apply([&group](Update& update) {
        update.set_members(group, {{port(1), {}, {}, false}, {port(2), {}, {}, false}, {port(3), {}, {}, false}});
      });
    };
    const Bytes inner = ethernet(ipv4({}, udp(source, 2, payload(4))));
    return reference_output(build, {tunnelled ? ethernet(ipv4({}, vxlan(1, inner))) : inner}).begin()->first;
  };
  for (std::uint16_t source = 1; source < 50; ++source) {
    EXPECT_EQ(chosen(true, source), chosen(false, source));
  }
}

TEST(Reference, FlowHashIsTheDocumentedOne) {
  auto pool = FramePool::create(256);
  ASSERT_TRUE(pool);
  PacketCache frames(**pool);
  for (const Specimen& specimen : corpus()) {
    Packet* packet = frames.allocate(specimen.packet.bytes);
    ASSERT_NE(packet, nullptr);
    Key key;
    parse(*packet, key);
    const reference::Frame frame = reference::read(*packet);
    const reference::Headers headers = reference::parse(frame);
    EXPECT_EQ(reference::flow_hash(frame, headers, 99), flow_hash(key, 99)) << specimen.name;
    key.ingress = frame.ingress;
    EXPECT_TRUE(reference::key_of(frame, headers) == key) << specimen.name;
    EXPECT_EQ(reference::l3_length(frame, headers), l3_length(*packet)) << specimen.name;
    frames.free(packet);
  }
}

TEST(Reference, Checksums) {
  EXPECT_EQ(reference::sum(hex("0001f203f4f5f6f7")), 0xddf2);               // RFC 1071, section 3
  EXPECT_EQ(reference::updated(0xdd2f, hex("5555"), hex("3285")), 0x0000);  // RFC 1624, section 4
  const std::string_view digits = "123456789";
  EXPECT_EQ(reference::crc32c({reinterpret_cast<const std::uint8_t*>(digits.data()), 9}), 0xe3069283U);
}

// Nothing that a decision did is seen if it fails, but what it learned.
TEST(Reference, AFailedDecisionHasNoOtherEffect) {
  const Build build = [](GraphBuilder& graph) {
    Counter& counter = graph.state.counter("counted");
    auto& table = graph.state.table<MacAddress, PortId>("macs");
    graph.stage([&](Flow& flow) {
      flow.count(counter);
      flow.mirror(port(2));
      flow.learn(table, *flow[eth::src], flow.ingress());
      flow.set(l4::src_port, 1);
      return flow.output(port(1));
    });
  };
  TestNode node(EngineKind::reference, build, {});
  node.send(port(0), {{TestPacket{ethernet(arp(1))}}}, 1);
  const Observed observed = node.observe();
  EXPECT_THAT(observed.sent, ::testing::IsEmpty());
  EXPECT_EQ(observed.counters.at(0).second.first, 0U);
  EXPECT_EQ(observed.tables.at(0).second, 1U);
  EXPECT_EQ(observed.drops, (std::map<std::string, std::uint64_t>{{"stage_error", 1}}));
}

}  // namespace
}  // namespace weir::testing
