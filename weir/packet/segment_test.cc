#include <weir/packet/segment.h>

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/packet/edit.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes numbered(std::size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

Bytes bytes_of(const Packet& packet) {
  Bytes bytes;
  for (const Packet* part = &packet; part != nullptr; part = part->next) {
    bytes.insert(bytes.end(), part->data, part->data + part->segment);
  }
  return bytes;
}

struct Case {
  const char* description;
  PacketBuilder headers;
  std::uint8_t type;
  std::size_t payload;
  std::uint16_t size;
  std::size_t segments;
};

class SegmentTest : public ::testing::Test {
 protected:
  // A packet as a sender leaves it: its checksum field holds the pseudo-header's sum.
  Packet* make(const Case& c) {
    PacketBuilder builder = c.headers;
    const Bytes bytes = builder.payload(numbered(c.payload)).bytes();
    Packet* packet = cache_.allocate(bytes);
    Key key;
    parse(*packet, key);
    const bool tcp = packet->layout.l4() == L4::tcp;
    packet->offload.flags = Offload::needs_checksum;
    packet->offload.checksum_start = packet->l4;
    packet->offload.checksum_offset = tcp ? 16 : 6;
    packet->offload.gso_type = c.type;
    packet->offload.gso_size = c.size;
    store_big<std::uint16_t>(packet->data + packet->l4 + packet->offload.checksum_offset, pseudo_sum(*packet));
    return packet;
  }

  static std::uint16_t pseudo_sum(const Packet& packet) {
    const bool v6 = packet.layout.l3() == L3::ipv6;
    const std::uint8_t* l3 = packet.data + packet.l3;
    const std::uint32_t length = packet.length - packet.l4;
    const std::uint8_t protocol = packet.layout.l4() == L4::tcp ? 6 : 17;
    const std::uint16_t addresses = checksum::sum_scalar({l3 + (v6 ? 8 : 12), v6 ? 32U : 8U});
    return checksum::fold(std::uint64_t{addresses} + length + protocol);
  }

  // Both checksums, by their definitions, of a frame whose checksum was left to the device.
  static void expect_right_checksums(Packet& packet) {
    edit::finish_checksum(packet);
    const Bytes bytes = bytes_of(packet);
    const std::uint16_t sum = pseudo_sum(packet);
    EXPECT_EQ(checksum::sum_scalar(std::span(bytes).subspan(packet.l4), sum), 0xffff);
    if (packet.layout.l3() == L3::ipv4) {
      EXPECT_EQ(checksum::sum_scalar(std::span(bytes).subspan(packet.l3, 20)), 0xffff);
    }
  }

  std::unique_ptr<FramePool> pool_ = *FramePool::create(256);
  PacketCache cache_{*pool_};
};

PacketBuilder tcp4() {
  return PacketBuilder()
      .ipv4("10.0.0.1", "10.0.0.2")
      .tcp(1000, 80, tcp_flag::ack | tcp_flag::psh | tcp_flag::fin | tcp_flag::cwr);
}
PacketBuilder tcp6() { return PacketBuilder().vlan(7).ipv6("2001:db8::1", "2001:db8::2").tcp(1000, 80); }
PacketBuilder udp4() { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1000, 53); }

TEST_F(SegmentTest, SegmentsSayWhatTheWholePacketSaid) {
  for (const Case& c :
       std::initializer_list<Case>{{"IPv4, TCP", tcp4(), gso::tcp4, 5'000, 1'448, 4},
                                   {"whole segments only", tcp4(), gso::tcp4, 2'896, 1'448, 2},
                                   {"one segment", tcp4(), gso::tcp4, 100, 1'448, 1},
                                   {"ECN", tcp4(), gso::tcp4 | gso::ecn, 5'000, 1'448, 4},
                                   {"IPv6 with a tag", tcp6(), gso::tcp6, 60'000, 1'428, 43},
                                   {"jumbo segments, each a chain", tcp6(), gso::tcp6, 20'000, 8'948, 3},
                                   {"an odd size", tcp4(), gso::tcp4, 4'001, 1'001, 4},
                                   {"UDP", udp4(), gso::udp, 3'000, 1'200, 3}}) {
    SCOPED_TRACE(c.description);
    Packet* packet = make(c);
    const unsigned headers = packet->length - static_cast<unsigned>(c.payload);
    const std::uint16_t id = packet->layout.l3() == L3::ipv4
                                 ? std::uint16_t{reinterpret_cast<Ipv4Header*>(packet->data + packet->l3)->id}
                                 : std::uint16_t{0};
    const std::uint32_t sequence = reinterpret_cast<TcpHeader*>(packet->data + packet->l4)->sequence;
    const std::uint8_t flags = reinterpret_cast<TcpHeader*>(packet->data + packet->l4)->flags;
    std::vector<Packet*> out;
    ASSERT_EQ(segment(cache_, *packet, out), Segmented::done);
    ASSERT_EQ(out.size(), c.segments);
    Bytes payload;
    for (std::size_t i = 0; i < out.size(); ++i) {
      Packet& made = *out[i];
      const bool last = i + 1 == out.size();
      EXPECT_EQ(made.offload.gso_size, 0);
      Key key;
      Packet& parsed = made;
      parse(parsed, key);
      EXPECT_EQ(parsed.layout.verdict(), ParseVerdict::ok);
      const Bytes bytes = bytes_of(made);
      EXPECT_EQ(bytes.size(), made.length);
      EXPECT_EQ(l3_length(made), made.length - made.l3);
      if (!last) {
        EXPECT_EQ(made.length, headers + c.size);
      }
      if (made.layout.l3() == L3::ipv4) {
        EXPECT_EQ(reinterpret_cast<Ipv4Header*>(made.data + made.l3)->id, static_cast<std::uint16_t>(id + i));
      }
      if (made.layout.l4() == L4::tcp) {
        const auto& tcp = *reinterpret_cast<TcpHeader*>(made.data + made.l4);
        EXPECT_EQ(tcp.sequence, sequence + i * c.size);
        const auto cleared =
            static_cast<std::uint8_t>((last ? 0 : tcp_flag::fin | tcp_flag::psh) | (i == 0 ? 0 : tcp_flag::cwr));
        EXPECT_EQ(tcp.flags, flags & ~cleared);
      } else {
        EXPECT_EQ(reinterpret_cast<UdpHeader*>(made.data + made.l4)->length, made.length - made.l4);
      }
      expect_right_checksums(made);
      payload.insert(payload.end(), bytes.begin() + headers, bytes.end());
      cache_.free(&made);
    }
    EXPECT_EQ(payload, numbered(c.payload));
  }
}

TEST_F(SegmentTest, SegmentsBehindATunnelsHeaders) {
  for (const bool v6 : {false, true}) {
    PacketBuilder inner = tcp4();
    inner.payload(numbered(4'000));
    PacketBuilder outer;
    v6 ? outer.ipv6("2001:db8::1", "2001:db8::2") : outer.ipv4("192.0.2.1", "192.0.2.2");
    const Bytes frame = outer.vxlan(77, inner).bytes();
    const unsigned tunnel = static_cast<unsigned>(frame.size() - inner.bytes().size());
    Packet* packet = make({"", tcp4(), gso::tcp4, 4'000, 1'000, 4});
    const Bytes unfinished = bytes_of(*packet);
    Packet* around = cache_.allocate(std::span(frame).first(tunnel + unfinished.size()));
    std::memcpy(around->data + tunnel, unfinished.data(), 100);  // its headers, with the pseudo-header's sum
    around->offload = packet->offload;
    edit::enter_tunnel(around->offload, tunnel, v6);
    cache_.free(packet);

    std::vector<Packet*> out;
    ASSERT_EQ(segment(cache_, *around, out), Segmented::done);
    ASSERT_EQ(out.size(), 4U);
    Bytes payload;
    for (Packet* made : out) {
      Key key;
      parse(*made, key);
      EXPECT_EQ(made->layout.verdict(), ParseVerdict::ok);
      EXPECT_TRUE(made->layout.vxlan());
      EXPECT_EQ(made->length, tunnel + 54 + 1'000);
      EXPECT_EQ(l3_length(*made), made->length - made->l3);
      EXPECT_EQ(reinterpret_cast<UdpHeader*>(made->data + made->l4)->length, made->length - made->l4);
      if (!v6) {
        EXPECT_EQ(checksum::sum_scalar({made->data + made->l3, 20}), 0xffff);
      }
      edit::finish_checksum(*made);
      PacketCache::pop_front(*made, tunnel);
      parse(*made, key);
      expect_right_checksums(*made);
      const Bytes bytes = bytes_of(*made);
      payload.insert(payload.end(), bytes.begin() + 54, bytes.end());
      cache_.free(made);
    }
    EXPECT_EQ(payload, numbered(4'000));
  }
}

TEST_F(SegmentTest, RefusesWhatDoesNotFitTheHeaders) {
  struct Wrong {
    const char* description;
    void (*change)(Packet&);
  };
  for (const Wrong& c : std::initializer_list<Wrong>{
           {"another L3 protocol", [](Packet& p) { p.offload.gso_type = gso::tcp6; }},
           {"another L4 protocol", [](Packet& p) { p.offload.gso_type = gso::udp; }},
           {"an unknown type", [](Packet& p) { p.offload.gso_type = 3; }},
           {"a tunnel that is not there", [](Packet& p) { p.offload.gso_type |= gso::tunnel4; }},
           {"two tunnels", [](Packet& p) { p.offload.gso_type |= gso::tunnel; }},
           {"no size", [](Packet& p) { p.offload.gso_size = 0; }},
           {"a checksum that is somewhere else", [](Packet& p) { p.offload.checksum_start = 14; }},
           {"a finished checksum", [](Packet& p) { p.offload.flags = 0; }},
           {"an IPv4 length beyond the frame",
            [](Packet& p) { reinterpret_cast<Ipv4Header*>(p.data + p.l3)->total_length = 9'000; }},
           {"an IPv4 length without payload",
            [](Packet& p) { reinterpret_cast<Ipv4Header*>(p.data + p.l3)->total_length = 40; }}}) {
    SCOPED_TRACE(c.description);
    Packet* packet = make({"", tcp4(), gso::tcp4, 2'000, 1'000, 0});
    c.change(*packet);
    std::vector<Packet*> out;
    EXPECT_EQ(segment(cache_, *packet, out), Segmented::not_possible);
    EXPECT_TRUE(out.empty());
    cache_.free(packet);
  }
}

TEST_F(SegmentTest, WithoutFramesNothingChanges) {
  Packet* packet = make({"", tcp4(), gso::tcp4, 30'000, 100, 0});  // 300 segments; there are 256 frames
  const Bytes before = bytes_of(*packet);
  std::vector<Packet*> out;
  EXPECT_EQ(segment(cache_, *packet, out), Segmented::no_frames);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(bytes_of(*packet), before);
  cache_.free(packet);
  out.resize(256);
  EXPECT_EQ(cache_.allocate_many(out), 256U) << "every frame came back";
  cache_.free_many(out);
}

}  // namespace
}  // namespace weir
