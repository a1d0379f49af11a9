#include <weir/packet/icmp_error.h>

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <weir/packet/checksum.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/parse.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

class IcmpErrorTest : public ::testing::Test {
 protected:
  // The message about `bytes`, or nothing.
  Bytes answer(const Bytes& bytes, const IcmpErrorKind& kind, const std::string& source) {
    Packet* packet = frames_.allocate(bytes);
    frames_.pull_up(*packet, std::min<unsigned>(packet->length, Packet::header_bytes));
    packet->ingress = 7;
    packet->timestamp = 99;
    Key key;
    parse(*packet, key);
    Packet* message = make_icmp_error(frames_, *packet, kind, *IpAddress::parse(source));
    Bytes result;
    if (message != nullptr) {
      EXPECT_EQ(message->ingress, 7);
      EXPECT_EQ(message->timestamp, 99U);
      EXPECT_EQ(message->length, message->segment);
      EXPECT_EQ(message->next, nullptr);
      result.assign(message->data, message->data + message->segment);
      frames_.free(message);
    }
    frames_.free(packet);
    return result;
  }
  Bytes answer_v4(const PacketBuilder& builder) { return answer(builder.bytes(), {11, 0, 0}, "192.0.2.1"); }
  Bytes answer_v6(const PacketBuilder& builder) { return answer(builder.bytes(), {3, 0, 0}, "2001:db8::fe"); }

  std::unique_ptr<FramePool> pool_ = std::move(*FramePool::create(128));
  PacketCache frames_{*pool_};
};

PacketBuilder v4() { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); }
PacketBuilder v6() { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); }

Bytes part(const Bytes& bytes, std::size_t from, std::size_t count) {
  return {bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

std::uint16_t sum(const Bytes& bytes, std::uint64_t initial = 0) {
  return checksum::sum_scalar(bytes, checksum::fold(initial));
}

TEST_F(IcmpErrorTest, Ipv4ByByte) {
  const Bytes packet = PacketBuilder()
                           .eth("02:00:00:00:00:01", "02:00:00:00:00:02")
                           .vlan(5, 3)
                           .ipv4("10.0.0.1", "10.0.0.2")
                           .udp(1, 2)
                           .payload(4)
                           .pad_to(64)
                           .bytes();
  const Bytes message = answer(packet, {3, 4, 1400}, "192.0.2.1");
  ASSERT_EQ(message.size(), 18U + 20 + 8 + 32) << "the padding is not quoted";
  EXPECT_EQ(part(message, 0, 6), part(packet, 6, 6));
  EXPECT_EQ(part(message, 6, 6), part(packet, 0, 6));
  EXPECT_EQ(part(message, 12, 6), part(packet, 12, 6)) << "the tag stays";
  const Bytes ip = {0x45, 0xc0, 0, 60, 0, 0, 0, 0, 64, 1};
  EXPECT_EQ(part(message, 18, 10), ip);
  EXPECT_EQ(part(message, 30, 8), (Bytes{192, 0, 2, 1, 10, 0, 0, 1}));
  EXPECT_EQ(sum(part(message, 18, 20)), 0xffff);
  EXPECT_EQ(part(message, 38, 2), (Bytes{3, 4}));
  EXPECT_EQ(part(message, 42, 4), (Bytes{0, 0, 5, 0x78}));
  EXPECT_EQ(sum(part(message, 38, message.size() - 38)), 0xffff);
  EXPECT_EQ(part(message, 46, 32), part(packet, 18, 32));
}

TEST_F(IcmpErrorTest, Ipv6ByByte) {
  const Bytes packet = v6().tcp(1, 2).payload(4).bytes();
  const Bytes message = answer(packet, {2, 0, 1280}, "2001:db8::fe");
  ASSERT_EQ(message.size(), 14U + 40 + 8 + 64);
  EXPECT_EQ(part(message, 14, 8), (Bytes{0x60, 0, 0, 0, 0, 72, 58, 255}));
  EXPECT_EQ(part(message, 22, 16), part(answer(packet, {2, 0, 0}, "2001:db8::fe"), 22, 16));
  EXPECT_EQ(part(message, 38, 16), part(packet, 22, 16));
  EXPECT_EQ(part(message, 54, 2), (Bytes{2, 0}));
  EXPECT_EQ(part(message, 58, 4), (Bytes{0, 0, 5, 0}));
  EXPECT_EQ(part(message, 62, 64), part(packet, 14, 64));
  const std::uint64_t pseudo = sum(part(message, 22, 32)) + 72U + 58U;
  EXPECT_EQ(sum(part(message, 54, 72), pseudo), 0xffff);
}

TEST_F(IcmpErrorTest, QuotesAsMuchAsIsAllowed) {
  for (const std::size_t payload : {0U, 1U, 519U, 520U, 521U, 1'400U, 2'900U, 3'000U, 9'000U}) {
    const Bytes packet = v4().udp(1, 2).payload(payload).bytes();
    const Bytes message = answer(packet, {3, 1, 0}, "192.0.2.1");
    const std::size_t quoted = std::min<std::size_t>(28 + payload, 576 - 28);
    ASSERT_EQ(message.size(), 14 + 28 + quoted);
    EXPECT_EQ(part(message, 42, quoted), part(packet, 14, quoted)) << payload;
    EXPECT_EQ(sum(part(message, 34, message.size() - 34)), 0xffff) << payload;

    const Bytes packet6 = v6().udp(1, 2).payload(payload).bytes();
    const Bytes message6 = answer(packet6, {1, 0, 0}, "2001:db8::fe");
    const std::size_t quoted6 = std::min<std::size_t>(48 + payload, 1'280 - 48);
    ASSERT_EQ(message6.size(), 14 + 48 + quoted6);
    EXPECT_EQ(part(message6, 62, quoted6), part(packet6, 14, quoted6)) << payload;
    const std::uint64_t pseudo = sum(part(message6, 22, 32)) + message6.size() - 54 + 58;
    EXPECT_EQ(sum(part(message6, 54, message6.size() - 54), pseudo), 0xffff) << payload;
  }
}

TEST_F(IcmpErrorTest, QuotesFromManySegments) {
  const Bytes bytes = v4().udp(1, 2).payload(700).bytes();
  Packet* packet = frames_.allocate(std::span(bytes).first(256));
  Packet** link = &packet->next;
  for (std::size_t at = 256; at < bytes.size(); at += 100) {
    *link = frames_.allocate(std::span(bytes).subspan(at, std::min<std::size_t>(100, bytes.size() - at)));
    link = &(*link)->next;
  }
  packet->length = static_cast<std::uint32_t>(bytes.size());
  Key key;
  parse(*packet, key);
  Packet* message = make_icmp_error(frames_, *packet, {11, 0, 0}, *IpAddress::parse("192.0.2.1"));
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(Bytes(message->data + 42, message->data + message->segment), part(bytes, 14, 548));
  frames_.free(message);
  frames_.free(packet);
}

TEST_F(IcmpErrorTest, AnOffloadedTagStays) {
  Packet* packet = frames_.allocate(v4().udp(1, 2).bytes());
  packet->vlan = 0x6005;
  packet->offload.flags = Offload::has_vlan | Offload::data_valid;
  Key key;
  parse(*packet, key);
  Packet* message = make_icmp_error(frames_, *packet, {11, 0, 0}, *IpAddress::parse("192.0.2.1"));
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->vlan, 0x6005);
  EXPECT_EQ(message->offload.flags, Offload::has_vlan);
  frames_.free(message);
  frames_.free(packet);
}

TEST_F(IcmpErrorTest, WhoIsAnswered) {
  struct Case {
    const char* description;
    PacketBuilder packet;
    bool answered;
  };
  const auto from = [](const char* src, const char* dst) { return PacketBuilder().ipv4(src, dst).udp(1, 2); };
  for (const Case& c : std::initializer_list<Case>{
           {"UDP", v4().udp(1, 2), true},
           {"TCP", v4().tcp(1, 2), true},
           {"SCTP", v4().sctp(1, 2), true},
           {"another protocol", v4().protocol(47), true},
           {"echo", v4().icmp(8), true},
           {"echo reply", v4().icmp(0), true},
           {"timestamp", v4().icmp(13), true},
           {"unreachable", v4().icmp(3), false},
           {"source quench", v4().icmp(4), false},
           {"redirect", v4().icmp(5), false},
           {"time exceeded", v4().icmp(11), false},
           {"parameter problem", v4().icmp(12), false},
           {"an ICMP type nobody knows", v4().icmp(99), false},
           {"first fragment", v4().fragment(0, 16).udp(1, 2).payload(50), true},
           {"later fragment", v4().fragment(16, 16).udp(1, 2).payload(50), false},
           {"first fragment of an ICMP error", v4().fragment(0, 16).icmp(3).payload(50), false},
           {"ICMP that ends before its type is known", v4().protocol(1), false},
           {"from nobody", from("0.0.0.0", "10.0.0.2"), false},
           {"from a group", from("224.0.0.5", "10.0.0.2"), false},
           {"from all", from("255.255.255.255", "10.0.0.2"), false},
           {"from this host", from("127.0.0.1", "10.0.0.2"), false},
           {"from class E", from("240.0.0.1", "10.0.0.2"), false},
           {"to a group", from("10.0.0.1", "224.0.0.5"), false},
           {"to all", from("10.0.0.1", "255.255.255.255"), false},
           {"broadcast below", v4().udp(1, 2).eth("02:00:00:00:00:01", "ff:ff:ff:ff:ff:ff"), false},
           {"a group below", v4().udp(1, 2).eth("02:00:00:00:00:01", "01:00:5e:00:00:01"), false},
       }) {
    EXPECT_EQ(!answer_v4(c.packet).empty(), c.answered) << c.description;
  }
}

TEST_F(IcmpErrorTest, WhoIsAnsweredOverIpv6) {
  struct Case {
    const char* description;
    PacketBuilder packet;
    bool answered;
  };
  const auto from = [](const char* src, const char* dst) { return PacketBuilder().ipv6(src, dst).udp(1, 2); };
  for (const Case& c : std::initializer_list<Case>{
           {"UDP", v6().udp(1, 2), true},
           {"echo", v6().icmpv6(128), true},
           {"neighbour solicitation", v6().icmpv6(135), true},
           {"behind extension headers", v6().extension(0).extension(60).tcp(1, 2), true},
           {"unreachable", v6().icmpv6(1), false},
           {"too big", v6().icmpv6(2), false},
           {"an error nobody knows", v6().icmpv6(127), false},
           {"redirect", v6().icmpv6(137), false},
           {"an error behind extension headers", v6().extension(60).icmpv6(1), false},
           {"first fragment", v6().fragment(0, 16).udp(1, 2).payload(50), true},
           {"later fragment", v6().fragment(16, 16).udp(1, 2).payload(50), false},
           {"ICMPv6 that ends before its type is known", v6().protocol(58), false},
           {"from nobody", from("::", "2001:db8::2"), false},
           {"from this host", from("::1", "2001:db8::2"), false},
           {"from a group", from("ff02::1", "2001:db8::2"), false},
           {"to a group", from("2001:db8::1", "ff02::1"), false},
       }) {
    EXPECT_EQ(!answer_v6(c.packet).empty(), c.answered) << c.description;
  }
}

TEST_F(IcmpErrorTest, SourceOfTheOtherFamily) {
  EXPECT_TRUE(answer(v4().udp(1, 2).bytes(), {11, 0, 0}, "2001:db8::1").empty());
  EXPECT_TRUE(answer(v6().udp(1, 2).bytes(), {3, 0, 0}, "192.0.2.1").empty());
}

TEST_F(IcmpErrorTest, NoFrameNoMessage) {
  Packet* packet = frames_.allocate(v4().udp(1, 2).bytes());
  Key key;
  parse(*packet, key);
  std::vector<Packet*> rest;
  while (Packet* other = frames_.allocate()) {
    rest.push_back(other);
  }
  EXPECT_EQ(make_icmp_error(frames_, *packet, {11, 0, 0}, *IpAddress::parse("192.0.2.1")), nullptr);
  for (Packet* other : rest) {
    frames_.free(other);
  }
  frames_.free(packet);
}

}  // namespace
}  // namespace weir
