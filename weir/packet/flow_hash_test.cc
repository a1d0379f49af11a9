#include <weir/packet/flow_hash.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/parse.h>

namespace weir {
namespace {

std::uint64_t hash_of(std::vector<std::uint8_t> bytes, std::uint64_t seed = 1) {
  Packet packet{};
  packet.data = bytes.data();
  packet.length = static_cast<std::uint32_t>(bytes.size());
  packet.segment = static_cast<std::uint16_t>(bytes.size());
  Key key;
  parse(packet, key);
  return flow_hash(key, seed);
}

std::uint64_t hash_of(const PacketBuilder& builder, std::uint64_t seed = 1) { return hash_of(builder.bytes(), seed); }

PacketBuilder v4(const char* src = "10.0.0.1", const char* dst = "10.0.0.2") { return PacketBuilder().ipv4(src, dst); }
PacketBuilder v6(const char* src = "2001:db8::1", const char* dst = "2001:db8::2") {
  return PacketBuilder().ipv6(src, dst);
}

TEST(FlowHash, BothDirectionsHaveTheSame) {
  EXPECT_EQ(hash_of(v4().tcp(1, 2)), hash_of(v4("10.0.0.2", "10.0.0.1").tcp(2, 1)));
  EXPECT_EQ(hash_of(v4().sctp(1, 2)), hash_of(v4("10.0.0.2", "10.0.0.1").sctp(2, 1)));
  EXPECT_EQ(hash_of(v6().udp(1, 2)), hash_of(v6("2001:db8::2", "2001:db8::1").udp(2, 1)));
  EXPECT_EQ(hash_of(v4().protocol(47)), hash_of(v4("10.0.0.2", "10.0.0.1").protocol(47)));
  EXPECT_EQ(hash_of(PacketBuilder().eth("02:00:00:00:00:01", "02:00:00:00:00:02")),
            hash_of(PacketBuilder().eth("02:00:00:00:00:02", "02:00:00:00:00:01")));
  // Ports belong to their address.
  EXPECT_NE(hash_of(v4().tcp(1, 2)), hash_of(v4("10.0.0.2", "10.0.0.1").tcp(1, 2)));
}

TEST(FlowHash, EchoRequestAndReplyHaveTheSame) {
  EXPECT_EQ(hash_of(v4().icmp(8, 0, 0x12340001)), hash_of(v4("10.0.0.2", "10.0.0.1").icmp(0, 0, 0x12340002)));
  EXPECT_EQ(hash_of(v6().icmpv6(128, 0, 0x12340001)),
            hash_of(v6("2001:db8::2", "2001:db8::1").icmpv6(129, 0, 0x12340007)));
  EXPECT_NE(hash_of(v4().icmp(8, 0, 0x12340001)), hash_of(v4().icmp(8, 0, 0x12350001)));
}

TEST(FlowHash, AllFragmentsHaveTheSame) {
  std::set<std::uint64_t> hashes;
  for (const unsigned offset : {0U, 24U, 48U, 96U}) {
    hashes.insert(hash_of(v4().fragment(offset, 24).udp(1, 2).payload(100)));
  }
  EXPECT_EQ(hashes.size(), 1U);
}

TEST(FlowHash, AllFragmentsHaveTheSameWhereExtensionsAreFragmentedToo) {
  std::set<std::uint64_t> hashes;
  for (const unsigned offset : {0U, 24U, 48U, 96U}) {
    hashes.insert(hash_of(v6().fragment(offset, 24).extension(60).udp(1, 2).payload(100)));
  }
  EXPECT_EQ(hashes.size(), 1U);
}

TEST(FlowHash, IgnoresWhatIsNotTheFlow) {
  const std::uint64_t hash = hash_of(v4().tcp(1, 2));
  EXPECT_EQ(hash, hash_of(v4().ttl(3).tos(4).id(5).tcp(1, 2, tcp_flag::fin).payload(9)));
  EXPECT_EQ(hash, hash_of(PacketBuilder().vlan(7).ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2)));
  EXPECT_EQ(
      hash,
      hash_of(PacketBuilder().eth("02:00:00:00:00:09", "02:00:00:00:00:08").ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2)));
  EXPECT_NE(hash, hash_of(v4().udp(1, 2)));
  EXPECT_NE(hash, hash_of(v4().tcp(1, 2), 2)) << "the seed counts";
}

// Chi-squared over `buckets`: far off its mean where the hash is not even.
double deviation(const std::vector<unsigned>& counts, unsigned total) {
  const double expected = double(total) / double(counts.size());
  double chi = 0;
  for (const unsigned count : counts) {
    chi += (count - expected) * (count - expected) / expected;
  }
  const double freedom = double(counts.size()) - 1;
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(FlowHash, SpreadsOverWorkersAndMembers) {
  constexpr unsigned flows = 1U << 16U;
  // Flows that differ in few bits: consecutive ports, consecutive addresses, both ports alike.
  for (const int kind : {0, 1, 2, 3}) {
    std::vector<unsigned> low(256);
    std::vector<unsigned> high(256);
    for (unsigned i = 0; i < flows; ++i) {
      Key key;
      Layout layout;
      layout.set_l3(kind == 3 ? L3::ipv6 : L3::ipv4);
      layout.set_l4(L4::tcp);
      key.layout = layout.bits;
      key.protocol = 6;
      key.src = {10, 0, 0, 1};
      key.dst = {10, 0, 0, 2};
      store_big<std::uint16_t>(key.dst_port.data(), 80);
      switch (kind) {
        case 0:
          store_big<std::uint16_t>(key.src_port.data(), static_cast<std::uint16_t>(i));
          break;
        case 1:
          store_big<std::uint32_t>(key.src.data(), 0x0a010000U + i);
          break;
        case 2:
          store_big<std::uint16_t>(key.src_port.data(), static_cast<std::uint16_t>(i));
          store_big<std::uint16_t>(key.dst_port.data(), static_cast<std::uint16_t>(i));
          break;
        default:
          store_big<std::uint32_t>(key.src.data() + 12, i);
      }
      const std::uint64_t hash = flow_hash(key, 42);
      ++low[hash % 256];
      ++high[hash >> 56U];
    }
    EXPECT_LT(deviation(low, flows), 6) << "kind " << kind;
    EXPECT_LT(deviation(high, flows), 6) << "kind " << kind;
  }
}

}  // namespace
}  // namespace weir
