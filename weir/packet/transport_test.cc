#include <weir/packet/transport.h>

#include <cstdlib>
#include <random>

#include <gmock/gmock.h>

#include <weir/packet/frame_pool.h>
#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/parse.h>
#include <weir/packet/sctp.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Of the frame's first `kept` bytes, in memory of exactly that size.
TransportFacts facts_of(const Bytes& bytes, std::size_t kept = ~std::size_t{0}) {
  Bytes copy(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(kept, bytes.size())));
  copy.shrink_to_fit();
  Packet packet{};
  packet.data = copy.data();
  packet.segment = static_cast<std::uint16_t>(copy.size());
  packet.length = packet.segment;
  Key key;
  parse(packet, key);
  return read_transport(
      {.frame = copy, .layout = packet.layout, .l3 = packet.l3, .l4 = packet.l4, .frame_bytes = packet.length});
}

PacketBuilder v4() { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); }
PacketBuilder v6() { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); }

/// The bytes of a frame from its L3 header on.
Bytes l3_of(PacketBuilder packet, std::size_t most = 1000) {
  const Bytes bytes = packet.bytes();
  return {bytes.begin() + 14, bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), 14 + most))};
}

TEST(Transport, Tcp) {
  for (auto packet : {v4(), v6(), v4().options(8), v6().extension(0), PacketBuilder(v4()).vlan(5)}) {
    packet.tcp(1, 2, tcp_flag::ack | tcp_flag::psh).sequence(77, 88).payload(33).pad_to(120);
    const TransportFacts facts = facts_of(packet.bytes());
    EXPECT_TRUE(facts.whole);
    EXPECT_EQ(facts.sequence, 77U);
    EXPECT_EQ(facts.acknowledgment, 88U);
    EXPECT_EQ(facts.payload, 33U);  // not the padding
    EXPECT_EQ(facts.flags, tcp_flag::ack | tcp_flag::psh);
  }
}

TEST(Transport, WindowScale) {
  struct Case {
    Bytes options;
    bool has_scale;
    int scale;
  };
  const std::vector<Case> cases = {
      {{1, 3, 3, 7}, true, 7},
      {{2, 4, 5, 0xb4, 1, 3, 3, 7}, true, 7},
      {{3, 3, 15, 0}, true, 14},
      {{0, 3, 3, 7}, false, 0},  // behind the end
      {{3, 4, 7, 0}, false, 0},  // another length
      {{3, 3, 7, 3, 3, 9, 0, 0}, true, 9},
      {{2, 0, 3, 3, 7, 0, 0, 0}, false, 0},   // an option of no length
      {{2, 60, 3, 3, 7, 0, 0, 0}, false, 0},  // or beyond the header
      {{1, 1, 1, 3}, false, 0},
  };
  for (const Case& each : cases) {
    Bytes bytes = v4().tcp(1, 2, tcp_flag::syn).tcp_options(static_cast<unsigned>(each.options.size())).bytes();
    std::ranges::copy(each.options, bytes.begin() + 14 + 20 + 20);
    const TransportFacts facts = facts_of(bytes);
    EXPECT_TRUE(facts.whole);
    EXPECT_EQ(facts.has_scale, each.has_scale);
    EXPECT_EQ(facts.scale, each.scale);
  }
}

TEST(Transport, Sctp) {
  Bytes bytes = v4().sctp(1, 2).payload(Bytes{sctp_chunk::init, 0, 0, 20, 0, 0, 1, 2}).bytes();
  bytes[14 + 20 + 7] = 9;
  const TransportFacts facts = facts_of(bytes);
  EXPECT_TRUE(facts.whole);
  EXPECT_EQ(facts.chunk, sctp_chunk::init);
  EXPECT_EQ(facts.verification_tag, 9U);
  EXPECT_EQ(facts.initiate_tag, 0x0102U);
  EXPECT_FALSE(facts_of(v4().sctp(1, 2).payload(3).bytes()).whole);
}

TEST(Transport, QuotedPackets) {
  struct Case {
    const char* name;
    PacketBuilder packet;
    bool quotes;
    std::uint16_t src_port, dst_port, id;
  };
  const auto error = [](const Bytes& quoted) { return v4().icmp(icmp_type::unreachable, 1).payload(quoted); };
  const auto error6 = [](const Bytes& quoted) { return v6().icmpv6(icmpv6_type::packet_too_big).payload(quoted); };
  const std::vector<Case> cases = {
      {"tcp, 8 bytes of it", error(l3_of(v4().tcp(1000, 80), 28)), true, 1000, 80, 0},
      {"tcp, 7 bytes", error(l3_of(v4().tcp(1000, 80), 27)), false, 0, 0, 0},
      {"udp", error(l3_of(v4().udp(53, 5353).payload(100))), true, 53, 5353, 0},
      {"sctp", error(l3_of(v4().sctp(5, 6).payload(20))), true, 5, 6, 0},
      {"options", error(l3_of(v4().options(40).tcp(7, 8), 68)), true, 7, 8, 0},
      {"options that overrun the quote", error(l3_of(v4().options(40).tcp(7, 8), 60)), false, 0, 0, 0},
      {"echo", error(l3_of(v4().icmp(icmp_type::echo, 0, 0x00070001))), true, 0, 0, 7},
      {"a first fragment", error(l3_of(v4().fragment(0, 16).udp(1, 2).payload(100))), true, 1, 2, 0},
      {"a later fragment", error(l3_of(v4().fragment(8, 16).udp(1, 2).payload(100))), false, 0, 0, 0},
      {"nothing", error({}), false, 0, 0, 0},
      {"the other family", error(l3_of(v6().udp(1, 2).payload(20))), false, 0, 0, 0},
      {"v6 tcp", error6(l3_of(v6().tcp(1000, 80), 48)), true, 1000, 80, 0},
      {"v6 with extensions", error6(l3_of(v6().extension(0).extension(60, 16).udp(3, 4))), true, 3, 4, 0},
      {"v6 cut in an extension", error6(l3_of(v6().extension(0, 24).udp(3, 4), 60)), false, 0, 0, 0},
      {"v6 later fragment", error6(l3_of(v6().fragment(8, 16).udp(1, 2).payload(100))), false, 0, 0, 0},
      {"v6 echo", error6(l3_of(v6().icmpv6(icmpv6_type::echo, 0, 0x00090001))), true, 0, 0, 9},
  };
  for (const Case& each : cases) {
    const TransportFacts facts = facts_of(each.packet.bytes());
    EXPECT_TRUE(facts.error) << each.name;
    EXPECT_EQ(facts.quotes, each.quotes) << each.name;
    if (each.quotes) {
      EXPECT_EQ(facts.quoted.src_port, each.src_port) << each.name;
      EXPECT_EQ(facts.quoted.dst_port, each.dst_port) << each.name;
      EXPECT_EQ(facts.quoted.icmp_id, each.id) << each.name;
    }
  }
}

TEST(Transport, EchoesAreNoErrors) {
  EXPECT_FALSE(facts_of(v4().icmp(icmp_type::echo).bytes()).error);
  EXPECT_FALSE(facts_of(v4().icmp(icmp_type::redirect).payload(28).bytes()).error);
  EXPECT_FALSE(facts_of(v6().icmpv6(icmpv6_type::neighbour_solicitation).payload(16).bytes()).error);
}

// Cut anywhere, and with bytes changed: AddressSanitizer sees any read beyond the frame.
TEST(Transport, ReadsNothingBeyondTheFrame) {
  std::mt19937_64 random(99);
  const std::vector<PacketBuilder> packets = {
      v4().tcp(1, 2, tcp_flag::syn).tcp_options(20).payload(5),
      v4().sctp(1, 2).payload(30),
      v4().icmp(icmp_type::unreachable, 1).payload(l3_of(v4().options(20).tcp(7, 8))),
      v6().icmpv6(icmpv6_type::packet_too_big).payload(l3_of(v6().extension(0).fragment(0, 8).udp(3, 4))),
  };
  for (const PacketBuilder& packet : packets) {
    const Bytes bytes = packet.bytes();
    for (std::size_t kept = 0; kept <= bytes.size(); ++kept) {
      facts_of(bytes, kept);
    }
    for (int i = 0; i < 5000; ++i) {
      Bytes changed = bytes;
      for (int n = 0; n < 3; ++n) {
        changed[14 + random() % (changed.size() - 14)] = static_cast<std::uint8_t>(random());
      }
      facts_of(changed, 14 + random() % (changed.size() - 13));
    }
  }
}

}  // namespace
}  // namespace weir
