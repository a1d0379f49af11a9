#include <weir/packet/packet_builder.h>

#include <stdexcept>

#include <gtest/gtest.h>

#include <weir/packet/checksum.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint16_t sum(const Bytes& bytes, std::size_t from, std::size_t count, std::uint16_t initial = 0) {
  return checksum::sum_scalar(std::span(bytes).subspan(from, count), initial);
}

// The pseudo-header's sum, whose length is that of what follows the IP header at 14.
std::uint16_t pseudo_v4(const Bytes& bytes) {
  const std::size_t length = bytes.size() - 34;
  return checksum::fold(std::uint64_t{sum(bytes, 26, 8)} + bytes[23] + length);
}

TEST(PacketBuilder, WholePacketByByte) {
  // As tcpdump prints a SYN that a Linux host would send, but for its addresses.
  const Bytes expected = {
      0x02, 0,    0,    0,    0, 2, 0x02, 0, 0,  0, 0,    1,    0x81, 0x00, 0x00, 0x64, 0x08, 0x00,        // Ethernet
      0x45, 0,    0,    42,   0, 0, 0,    0, 64, 6, 0x66, 0xcc, 10,   0,    0,    1,    10,   0,    0, 2,  // IPv4
      0x04, 0xd2, 0x00, 0x50, 0, 0, 0,    1, 0,  0, 0,    0,    0x50, 0x02, 0xff, 0xff};                   // TCP
  const Bytes bytes =
      PacketBuilder().vlan(100).ipv4("10.0.0.1", "10.0.0.2").tcp(1234, 80, tcp_flag::syn).payload(2).bytes();
  ASSERT_EQ(bytes.size(), 18U + 42U);
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(expected.size())), expected);
  EXPECT_EQ(bytes[58], 0);
  EXPECT_EQ(bytes[59], 1);
}

TEST(PacketBuilder, ChecksumsAreRight) {
  for (std::size_t payload = 0; payload < 40; ++payload) {
    const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "192.168.7.9").ttl(3).tos(0xff).id(77); };
    for (const Bytes& bytes : {v4().tcp(1, 2).payload(payload).bytes(), v4().udp(1, 2).payload(payload).bytes()}) {
      EXPECT_EQ(sum(bytes, 14, 20), 0xffff);
      EXPECT_EQ(sum(bytes, 34, bytes.size() - 34, pseudo_v4(bytes)), 0xffff);
    }
    const Bytes icmp = v4().icmp(8, 0, 0x12345678).payload(payload).bytes();
    EXPECT_EQ(sum(icmp, 34, icmp.size() - 34), 0xffff);
    const Bytes optioned = v4().options(24).udp(1, 2).payload(payload).bytes();
    EXPECT_EQ(sum(optioned, 14, 44), 0xffff);

    const auto v6 = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8:ffff::2"); };
    struct V6Case {
      Bytes bytes;
      std::uint8_t protocol;
    };
    for (const auto& [bytes, protocol] :
         {V6Case{v6().icmpv6(128).payload(payload).bytes(), 58}, V6Case{v6().tcp(5, 6).payload(payload).bytes(), 6},
          V6Case{v6().udp(5, 6).payload(payload).bytes(), 17}}) {
      const std::uint64_t pseudo = std::uint64_t{sum(bytes, 22, 32)} + protocol + bytes.size() - 54;
      EXPECT_EQ(sum(bytes, 54, bytes.size() - 54, checksum::fold(pseudo)), 0xffff);
    }

    Bytes sctp = v4().sctp(1, 2).payload(payload).bytes();
    const std::uint32_t stored = sctp[42] | sctp[43] << 8U | sctp[44] << 16U | std::uint32_t{sctp[45]} << 24U;
    std::fill_n(sctp.begin() + 42, 4, std::uint8_t{0});
    EXPECT_EQ(checksum::crc32c(std::span(sctp).subspan(34)), stored);
  }
}

TEST(PacketBuilder, AUdpChecksumIsNeverZero) {
  // Of all payloads of two bytes, one makes the sum come out as 0xffff.
  bool met = false;
  for (unsigned value = 0; value < 65'536; ++value) {
    const std::uint8_t two[] = {static_cast<std::uint8_t>(value >> 8U), static_cast<std::uint8_t>(value)};
    const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(two).bytes();
    const auto checksum = load_big<std::uint16_t>(&bytes[40]);
    ASSERT_NE(checksum, 0);
    met = met || checksum == 0xffff;
  }
  EXPECT_TRUE(met);
}

TEST(PacketBuilder, FragmentsMakeUpTheWhole) {
  const auto whole = [] { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").id(9); };
  const Bytes one = whole().udp(1, 2).payload(100).bytes();
  Bytes joined(one.begin(), one.begin() + 34);
  for (unsigned offset = 0; offset < 108; offset += 40) {
    const Bytes part = whole().fragment(offset, 40).udp(1, 2).payload(100).bytes();
    EXPECT_EQ(sum(part, 14, 20), 0xffff);
    const auto field = load_big<std::uint16_t>(&part[20]);
    EXPECT_EQ(field & 0x1fffU, offset / 8);
    EXPECT_EQ((field & 0x2000U) != 0, offset + 40 < 108);
    EXPECT_EQ(load_big<std::uint16_t>(&part[16]), part.size() - 14);
    joined.insert(joined.end(), part.begin() + 34, part.end());
  }
  EXPECT_EQ(joined, one);
}

TEST(PacketBuilder, Ipv6FragmentsMakeUpTheWhole) {
  const auto whole = [] { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").extension(0); };
  const Bytes one = whole().extension(60).udp(1, 2).payload(50).bytes();
  Bytes joined(one.begin(), one.begin() + 62);
  for (unsigned offset = 0; offset < 66; offset += 24) {
    const Bytes part = whole().fragment(offset, 24).id(5).extension(60).udp(1, 2).payload(50).bytes();
    EXPECT_EQ(part[20], 0);   // hop-by-hop stays in front
    EXPECT_EQ(part[54], 44);  // then the fragment header
    EXPECT_EQ(part[62], 60);  // and what the fragments begin with
    EXPECT_EQ(load_big<std::uint16_t>(&part[64]), offset | (offset + 24 < 66 ? 1U : 0U));
    EXPECT_EQ(load_big<std::uint32_t>(&part[66]), 5U);
    joined.insert(joined.end(), part.begin() + 70, part.end());
  }
  EXPECT_EQ(joined, one);
}

TEST(PacketBuilder, VxlanHoldsTheInnerPacket) {
  const auto inner = PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").udp(1, 2);
  const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").vxlan(0x010203, inner).bytes();
  const Bytes head = {0x08, 0, 0, 0, 1, 2, 3, 0};
  EXPECT_EQ(Bytes(bytes.begin() + 42, bytes.begin() + 50), head);
  EXPECT_EQ(Bytes(bytes.begin() + 50, bytes.end()), inner.bytes());
  EXPECT_EQ(load_big<std::uint16_t>(&bytes[36]), 4789);
  EXPECT_EQ(load_big<std::uint16_t>(&bytes[40]), 0) << "RFC 7348: without a checksum";
}

TEST(PacketBuilder, RefusesWhatCannotBeMeant) {
  EXPECT_THROW(PacketBuilder().eth("02:00", "02:00:00:00:00:01"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "::1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv6("10.0.0.1", "::1"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().tcp(1, 2), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).udp(1, 2), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").ipv6("::1", "::2"), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().vlan(4096), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").fragment(4, 8), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").options(44), std::invalid_argument);
  EXPECT_THROW(PacketBuilder().ipv6("::1", "::2").extension(60, 12), std::invalid_argument);
}

}  // namespace
}  // namespace weir
