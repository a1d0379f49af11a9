#include <weir/device/memory.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <weir/device/frame_digest.h>
#include <weir/device/internal/flow_order.h>
#include <weir/device/internal/testing.h>
#include <weir/packet/checksum.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/parse.h>
#include <weir/packet/tcp.h>
#include <weir/packet/udp.h>

namespace weir {
namespace {

using device_testing::Bench;
using device_testing::Bytes;
using device_testing::bytes_of;

MemoryDevice& memory(Bench& bench) { return dynamic_cast<MemoryDevice&>(*bench.device); }

// Whether the L4 checksum of a parsed, whole packet is right.
bool l4_checksum_holds(const Packet& packet, const Bytes& bytes) {
  const std::span<const std::uint8_t> all(bytes);
  const bool v6 = packet.layout.l3() == L3::ipv6;
  const auto l4 = all.subspan(packet.l4);
  std::uint16_t sum = checksum::sum_scalar(all.subspan(packet.l3 + (v6 ? 8U : 12U), v6 ? 32 : 8));
  Bytes rest{0, packet.layout.l4() == L4::tcp ? ip_protocol::tcp : ip_protocol::udp, 0, 0};
  store_big<std::uint16_t>(&rest[2], static_cast<std::uint16_t>(l4.size()));
  sum = checksum::sum_scalar(rest, sum);
  return checksum::sum_scalar(l4, sum) == 0xffff;
}

bool ip_checksum_holds(const Packet& packet, const Bytes& bytes) {
  const auto* ip = reinterpret_cast<const Ipv4Header*>(&bytes[packet.l3]);
  return checksum::sum_scalar(std::span(bytes).subspan(packet.l3, ip->header_length())) == 0xffff;
}

struct Shape {
  const char* spec;
  unsigned tags;
  L3 l3;
  L4 l4;
  std::size_t size;
};

TEST(MemoryGenerator, PacketsAreWhatTheOptionsSay) {
  const std::vector<Shape> shapes{
      {"memory:flows=1000", 0, L3::ipv4, L4::udp, 64},
      {"memory:flows=1000,size=60", 0, L3::ipv4, L4::udp, 60},
      {"memory:flows=1000,vlan=7,size=65", 1, L3::ipv4, L4::udp, 65},
      {"memory:flows=1000,proto=tcp", 0, L3::ipv4, L4::tcp, 64},
      {"memory:flows=1000,proto=tcp,vlan=7,size=1517", 1, L3::ipv4, L4::tcp, 1517},
      {"memory:flows=1000,ip=6", 0, L3::ipv6, L4::udp, 64},
      {"memory:flows=1000,ip=6,proto=tcp", 0, L3::ipv6, L4::tcp, 74},
      {"memory:flows=1000,ip=6,proto=tcp,vlan=4094", 1, L3::ipv6, L4::tcp, 78},
      {"memory:flows=1000,ip=6,size=1518", 0, L3::ipv6, L4::udp, 1518},
      {"memory:flows=1000,size=2944", 0, L3::ipv4, L4::udp, 2944},
      {"memory:flows=1000,size=2945,proto=tcp", 0, L3::ipv4, L4::tcp, 2945},
      {"memory:flows=1000,size=9000,ip=6", 0, L3::ipv6, L4::udp, 9000},
      {"memory:flows=100000,order=zipf", 0, L3::ipv4, L4::udp, 64},
      {"memory:flows=16777216,proto=tcp", 0, L3::ipv4, L4::tcp, 64},
  };
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.spec);
    Bench bench(shape.spec);
    bench.opened();
    for (int batch = 0; batch < 30; ++batch) {
      // The frames hold old bytes from the last round: none may be left.
      ASSERT_EQ(bench.receive(100), 100U);
      for (Packet* packet : bench.packets) {
        const Bytes bytes = bytes_of(*packet);
        Key key;
        parse(*packet, key);
        ASSERT_EQ(packet->layout.verdict(), ParseVerdict::ok);
        ASSERT_EQ(packet->layout.tags(), shape.tags);
        ASSERT_EQ(packet->layout.l3(), shape.l3);
        ASSERT_EQ(packet->layout.l4(), shape.l4);
        ASSERT_EQ(packet->length, shape.size);
        ASSERT_EQ(bytes.size(), shape.size);
        ASSERT_EQ(l3_length(*packet), shape.size - packet->l3);
        if (shape.l3 == L3::ipv4) {
          ASSERT_TRUE(ip_checksum_holds(*packet, bytes));
        }
        if (shape.l4 == L4::tcp || shape.l3 == L3::ipv6) {
          ASSERT_TRUE(l4_checksum_holds(*packet, bytes));
        } else {
          ASSERT_EQ(load_big<std::uint16_t>(&bytes[packet->l4 + offsetof(UdpHeader, checksum)]), 0);
        }
        for (std::size_t i = packet->payload; i < bytes.size(); ++i) {
          ASSERT_EQ(bytes[i], static_cast<std::uint8_t>(i - packet->payload));
        }
        std::ranges::fill(packet->bytes(), std::uint8_t{0xee});
      }
      bench.drop();
    }
  }
}

TEST(MemoryGenerator, FieldsFollowTheFlow) {
  Bench bench(
      "memory:flows=4,order=sequential,src=192.0.2.254,dst=198.51.100.7,src_port=65534,dst_port=53,vlan=9,"
      "src_mac=02:00:00:00:00:ff,dst_mac=02:11:22:33:44:55,vary=all+macs");
  bench.opened();
  ASSERT_EQ(bench.receive(5), 5U);
  struct Expected {
    const char* mac;
    const char* src;
    const char* dst;
    std::uint16_t src_port;
    std::uint16_t dst_port;
  };
  const std::vector<Expected> expected{
      {"02:00:00:00:00:ff", "192.0.2.254", "198.51.100.7", 65'534, 53},
      {"02:00:00:00:01:00", "192.0.2.255", "198.51.100.8", 65'535, 53},
      {"02:00:00:00:01:01", "192.0.3.0", "198.51.100.9", 0, 54},  // the count carries into the destination port
      {"02:00:00:00:01:02", "192.0.3.1", "198.51.100.10", 1, 54},
      {"02:00:00:00:00:ff", "192.0.2.254", "198.51.100.7", 65'534, 53},
  };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    Key key;
    parse(*bench.packets[i], key);
    EXPECT_EQ(MacAddress{key.eth_src}.to_string(), expected[i].mac);
    EXPECT_EQ(MacAddress{key.eth_dst}.to_string(), "02:11:22:33:44:55");
    EXPECT_EQ(load_big<std::uint16_t>(key.vlan.data()), 9);
    EXPECT_EQ(IpAddress(Ipv4Address{{key.src[0], key.src[1], key.src[2], key.src[3]}}).to_string(), expected[i].src);
    EXPECT_EQ(IpAddress(Ipv4Address{{key.dst[0], key.dst[1], key.dst[2], key.dst[3]}}).to_string(), expected[i].dst);
    EXPECT_EQ(load_big<std::uint16_t>(key.src_port.data()), expected[i].src_port);
    EXPECT_EQ(load_big<std::uint16_t>(key.dst_port.data()), expected[i].dst_port);
  }
  bench.drop();
}

TEST(MemoryGenerator, VaryLeavesTheRest) {
  struct Case {
    const char* spec;
    bool src;
    bool dst;
    bool ports;
  };
  for (const auto& [spec, src, dst, ports] : std::vector<Case>{
           {"memory:flows=9,order=sequential,vary=src", true, false, false},
           {"memory:flows=9,order=sequential,vary=dst,ip=6", false, true, false},
           {"memory:flows=9,order=sequential,vary=ports", false, false, true},
           {"memory:flows=9,order=sequential,vary=src+ports", true, false, true},
           {"memory:flows=9,order=sequential", true, true, true},
       }) {
    Bench bench(spec);
    bench.opened();
    bench.receive(2);
    Key a;
    Key b;
    parse(*bench.packets[0], a);
    parse(*bench.packets[1], b);
    EXPECT_EQ(a.src != b.src, src) << spec;
    EXPECT_EQ(a.dst != b.dst, dst) << spec;
    EXPECT_EQ(a.src_port != b.src_port, ports) << spec;
    bench.drop();
  }
}

TEST(MemoryGenerator, ImixIsSevenToFourToOne) {
  Bench bench("memory:size=imix");
  bench.opened();
  std::map<std::size_t, int> sizes;
  for (int i = 0; i < 12; ++i) {
    for (const Bytes& frame : bench.take(100)) {
      ++sizes[frame.size()];
    }
  }
  EXPECT_EQ(sizes, (std::map<std::size_t, int>{{64, 700}, {570, 400}, {1518, 100}}));
}

TEST(MemoryGenerator, SequentialGoesRoundAllFlows) {
  Bench bench("memory:flows=300,order=sequential");
  bench.opened();
  const auto first = bench.take(300);
  const auto second = bench.take(300);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 300U);
  EXPECT_EQ(first, second);
}

TEST(MemoryGenerator, RandomReachesAllFlowsEvenly) {
  Bench bench("memory:flows=16");
  bench.opened();
  std::map<Bytes, int> seen;
  for (int i = 0; i < 160; ++i) {
    for (const Bytes& frame : bench.take(100)) {
      ++seen[frame];
    }
  }
  EXPECT_EQ(seen.size(), 16U);
  for (const auto& [frame, times] : seen) {
    EXPECT_NEAR(times, 1000, 200);
  }
}

TEST(MemoryGenerator, QueuesShareTheFlowsOut) {
  for (const char* order : {"random", "zipf", "sequential"}) {
    Bench bench(std::string("memory:flows=10,order=") + order, 3);
    bench.opened();
    ASSERT_EQ(bench.device->traits().queues, 3U);
    std::set<unsigned> all;
    for (unsigned queue = 0; queue < 3; ++queue) {
      for (int i = 0; i < 50; ++i) {
        for (const Bytes& frame : bench.take(100, queue)) {
          const unsigned flow = frame[29];  // last byte of 10.0.0.0 + flow
          EXPECT_EQ(flow % 3, queue);
          all.insert(flow);
        }
      }
    }
    EXPECT_EQ(all.size(), 10U) << order;
  }
}

TEST(MemoryGenerator, NoMoreQueuesThanFlows) {
  Bench bench("memory:flows=2", 4);
  bench.opened();
  EXPECT_EQ(bench.device->traits().queues, 2U);
  EXPECT_EQ(bench.receive(10, 3), 0U);
  EXPECT_TRUE(bench.device->finished(3));
}

TEST(MemoryGenerator, CountIsOfAllQueues) {
  Bench bench("memory:flows=10,count=1001", 2);
  bench.opened();
  EXPECT_TRUE(bench.device->traits().finite);
  std::size_t total = 0;
  for (unsigned queue = 0; queue < 2; ++queue) {
    EXPECT_FALSE(bench.device->finished(queue));
    while (!bench.device->finished(queue)) {
      total += bench.take(64, queue).size();
    }
    EXPECT_EQ(bench.receive(64, queue), 0U);
  }
  EXPECT_EQ(total, 1001U);
}

TEST(MemoryGenerator, SameSeedSamePackets) {
  Bench a("memory:flows=1000");
  Bench b("memory:flows=1000");
  EXPECT_EQ(a.opened().take(500), b.opened().take(500));
}

TEST(MemoryGenerator, OrderSurvivesAnEmptyPool) {
  for (const char* spec : {"memory:flows=500,order=sequential", "memory:flows=500,order=sequential,size=9000",
                           "memory:flows=500,order=sequential,size=imix"}) {
    Bench bench(spec, 1, 64);
    bench.opened();
    Bench whole(spec);
    whole.opened();
    std::vector<Bytes> got;
    while (got.size() < 200) {
      const auto part = bench.take(100);
      ASSERT_FALSE(part.empty());
      ASSERT_LT(part.size(), 100U);  // there are 64 frames
      got.insert(got.end(), part.begin(), part.end());
    }
    got.resize(200);
    EXPECT_EQ(got, whole.take(200)) << spec;
  }
}

TEST(MemoryGenerator, TimestampsAreTheClock) {
  for (const char* spec : {"memory:flows=1", "memory:flows=1,rate=1000000000"}) {
    Bench bench(spec);
    bench.opened();
    for (const Nanoseconds time : {1000U, 2000U, 3000U}) {
      bench.clock.set(time);
      ASSERT_EQ(bench.receive(1), 1U);
      EXPECT_EQ(bench.packets[0]->timestamp, time);
      bench.drop();
    }
  }
}

TEST(MemoryGenerator, RandomHeadersParseAndDiffer) {
  for (const char* spec :
       {"memory:headers=random", "memory:headers=random,size=200", "memory:headers=random,size=73"}) {
    Bench bench(spec);
    bench.opened();
    std::set<Bytes> frames;
    std::map<std::uint16_t, int> layouts;
    for (int i = 0; i < 100; ++i) {
      bench.receive(100);
      for (Packet* packet : bench.packets) {
        Key key;
        parse(*packet, key);
        const Bytes bytes = bytes_of(*packet);
        ASSERT_EQ(packet->layout.verdict(), ParseVerdict::ok) << packet->layout.to_string();
        if (packet->layout.l3() == L3::ipv4) {
          ASSERT_TRUE(ip_checksum_holds(*packet, bytes));
        }
        ++layouts[packet->layout.bits];
        frames.insert(bytes);
      }
      bench.drop();
    }
    EXPECT_EQ(frames.size(), 10'000U);
    for (const L3 l3 : {L3::arp, L3::ipv4, L3::ipv6}) {
      for (unsigned tags = 0; tags < 3; ++tags) {
        EXPECT_TRUE(std::ranges::any_of(layouts,
                                        [&](const auto& one) {
                                          const Layout layout{one.first};
                                          return layout.l3() == l3 && layout.tags() == tags;
                                        }))
            << static_cast<int>(l3) << " with tags " << tags;
      }
    }
    for (const L4 l4 : {L4::other, L4::icmp, L4::tcp, L4::udp, L4::sctp}) {
      EXPECT_TRUE(std::ranges::any_of(layouts, [&](const auto& one) { return Layout{one.first}.l4() == l4; }));
    }
    EXPECT_TRUE(std::ranges::any_of(layouts, [&](const auto& one) { return Layout{one.first}.fragment(); }));
    EXPECT_TRUE(std::ranges::any_of(layouts, [&](const auto& one) { return Layout{one.first}.options(); }));
  }
}

TEST(Zipf, FrequenciesFollowTheLaw) {
  for (const double skew : {0.5, 1.0, 1.3}) {
    constexpr std::uint32_t ranks = 1000;
    constexpr int draws = 400'000;
    double norm = 0;
    for (unsigned rank = 1; rank <= ranks; ++rank) {
      norm += std::pow(rank, -skew);
    }
    Random random(5);
    const device_internal::ZipfSampler sample(ranks, skew);
    std::vector<int> seen(ranks + 1);
    for (int i = 0; i < draws; ++i) {
      ++seen.at(sample(random));
    }
    EXPECT_EQ(seen[0], 0);
    for (const unsigned rank : {1U, 2U, 3U, 10U, 100U}) {
      const double expected = draws * std::pow(rank, -skew) / norm;
      EXPECT_NEAR(seen[rank], expected, 5 * std::sqrt(expected)) << "rank " << rank << ", skew " << skew;
    }
  }
}

TEST(MemoryRate, PacketsWaitInTheQueueAndBeyondAreLost) {
  Bench bench("memory:rate=1000000,queue=100");  // one per microsecond
  bench.clock.set(5'000'000);
  bench.opened();
  EXPECT_FALSE(bench.device->traits().waits);
  EXPECT_EQ(bench.take(64).size(), 1U);  // the first comes when it is asked for
  EXPECT_EQ(bench.take(64).size(), 0U);
  bench.clock.advance(999);
  EXPECT_EQ(bench.take(64).size(), 0U);
  bench.clock.advance(1);
  EXPECT_EQ(bench.take(64).size(), 1U);
  bench.clock.advance(80'000);
  EXPECT_EQ(bench.take(64).size(), 64U);
  EXPECT_EQ(bench.take(64).size(), 16U);
  EXPECT_EQ(bench.device->counters().lost, 0U);
  bench.clock.advance(150'000);
  EXPECT_EQ(bench.take(256).size(), 100U);
  EXPECT_EQ(bench.device->counters().lost, 50U);
  EXPECT_EQ(bench.take(256).size(), 0U);
}

TEST(MemoryRate, QueuesShareTheRateAndTheCount) {
  Bench bench("memory:flows=4,rate=1000000,count=101", 2);
  bench.opened();
  EXPECT_EQ(bench.take(64, 0).size(), 1U);
  EXPECT_EQ(bench.take(64, 1).size(), 0U);  // its first comes a microsecond later
  bench.clock.advance(1000);
  EXPECT_EQ(bench.take(64, 0).size(), 0U);
  EXPECT_EQ(bench.take(64, 1).size(), 1U);
  bench.clock.advance(1'000'000'000);
  EXPECT_EQ(bench.take(64, 0).size(), 50U);
  EXPECT_EQ(bench.take(64, 1).size(), 49U);
  EXPECT_TRUE(bench.device->finished(0));
  EXPECT_TRUE(bench.device->finished(1));
}

TEST(MemoryRate, LossesCountTowardsTheCount) {
  Bench bench("memory:rate=1000,queue=10,count=1000");
  bench.opened();
  bench.take(1);
  bench.clock.advance(3'600'000'000'000);
  EXPECT_EQ(bench.take(64).size(), 10U);
  EXPECT_EQ(bench.device->counters().lost, 989U);
  EXPECT_TRUE(bench.device->finished(0));
}

TEST(MemorySink, CountsAndDigests) {
  Bench bench("memory:flows=100,size=imix", 2);
  bench.opened();
  std::uint64_t digest = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 10; ++i) {
    const unsigned queue = i % 2;
    bench.receive(32, queue);
    for (const Packet* packet : bench.packets) {
      digest += frame_digest(*packet);
      bytes += packet->length;
    }
    EXPECT_EQ(bench.transmit(queue), 32U);
  }
  EXPECT_EQ(memory(bench).packets(), 320U);
  EXPECT_EQ(memory(bench).bytes(), bytes);
  EXPECT_EQ(bench.device->counters().digest, digest);
  bench.cache.reset();
  EXPECT_EQ(bench.pool->available(), bench.pool->frames());  // all came back
}

TEST(MemorySink, AloneIsFinishedFromTheStart) {
  Bench bench("memory:");
  bench.opened();
  const DeviceTraits traits = bench.device->traits();
  EXPECT_TRUE(traits.finite);
  EXPECT_TRUE(traits.waits);
  EXPECT_EQ(traits.queues, 1U);
  EXPECT_TRUE(bench.device->finished(0));
  EXPECT_EQ(bench.receive(10), 0U);
}

TEST(MemorySink, RecordsTheLast) {
  Bench bench("memory:record=3");
  bench.opened();
  for (std::uint8_t i = 0; i < 5; ++i) {
    memory(bench).inject(Bytes(4000, i));  // two segments each
  }
  EXPECT_EQ(bench.receive(10), 5U);
  bench.transmit();
  EXPECT_EQ(memory(bench).recorded(), (std::vector<Bytes>{Bytes(4000, 2), Bytes(4000, 3), Bytes(4000, 4)}));
}

TEST(MemoryInject, ComesBeforeWhatIsGenerated) {
  Bench bench("memory:flows=1,count=2");
  bench.opened();
  memory(bench).inject({1, 2, 3});
  memory(bench).inject({});
  EXPECT_EQ(bench.take(10), (std::vector<Bytes>{{1, 2, 3}, {}}));
  EXPECT_EQ(bench.take(10).size(), 2U);
  EXPECT_TRUE(bench.device->finished(0));
  memory(bench).inject({4});
  EXPECT_FALSE(bench.device->finished(0));
  EXPECT_EQ(bench.take(10), (std::vector<Bytes>{{4}}));
  EXPECT_TRUE(bench.device->finished(0));
}

TEST(MemoryInject, NothingIsLostWhenFramesRunOut) {
  Bench bench("memory:", 1, 64);
  bench.opened();
  for (std::uint8_t i = 0; i < 100; ++i) {
    memory(bench).inject({i});
  }
  std::vector<Bytes> got = bench.take(128);
  EXPECT_EQ(got.size(), 64U);
  for (const Bytes& frame : bench.take(128)) {
    got.push_back(frame);
  }
  ASSERT_EQ(got.size(), 100U);
  EXPECT_EQ(got[99], Bytes{99});
}

TEST(MemoryDevice, WorkersAndReadersAtOnce) {
  Bench bench("memory:flows=64,record=10", 2);
  bench.opened();
  constexpr int batches = 2000;
  const auto work = [&](unsigned queue) {
    PacketCache cache(*bench.pool);
    std::array<Packet*, 32> packets{};
    for (int i = 0; i < batches; ++i) {
      const std::size_t n = bench.device->receive(queue, packets, cache);
      EXPECT_EQ(bench.device->transmit(queue, std::span(packets).first(n), cache), n);
    }
  };
  std::thread one(work, 0);
  std::thread two(work, 1);
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    memory(bench).inject(Bytes(60), static_cast<unsigned>(i % 2));
    EXPECT_GE(memory(bench).packets(), last);
    last = memory(bench).packets();
    EXPECT_LE(memory(bench).recorded().size(), 10U);
    (void)bench.device->counters();
  }
  one.join();
  two.join();
  EXPECT_GT(memory(bench).packets(), 2U * batches);
}

}  // namespace
}  // namespace weir
