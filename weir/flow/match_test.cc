#include <weir/flow/match.h>

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>

namespace weir {
namespace {

bool matches(const Match& match, const Key& key) { return equal_under(key, match.value(), match.mask()); }

TEST(PortRanges, CoverExactly) {
  Random random(1);
  const auto check = [](std::uint32_t low, std::uint32_t high) {
    const auto blocks = port_ranges(static_cast<std::uint16_t>(low), static_cast<std::uint16_t>(high));
    std::uint32_t at = low;
    for (const auto& [first, bits] : blocks) {
      ASSERT_EQ(first, at);
      ASSERT_EQ(first % (1U << bits), 0U) << "a block starts at a multiple of its size";
      at += 1U << bits;
    }
    ASSERT_EQ(at, high + 1);
    ASSERT_LE(blocks.size(), 30U);
  };
  for (std::uint32_t low = 0; low < 256; ++low) {
    for (std::uint32_t high = low; high < 256; ++high) {
      check(low, high);
    }
  }
  for (int round = 0; round < 20'000; ++round) {
    const std::uint32_t a = random.below(65'536);
    const std::uint32_t b = random.below(65'536);
    check(std::min(a, b), std::max(a, b));
  }
  check(0, 65'535);
  check(65'535, 65'535);
  check(1, 65'534);
  EXPECT_TRUE(port_ranges(5, 4).empty());
}

TEST(Match, BlocksOfPortsMatchTheirRange) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const std::uint32_t a = random.below(65'536);
    const std::uint32_t b = random.below(65'536);
    const auto low = static_cast<std::uint16_t>(std::min(a, b));
    const auto high = static_cast<std::uint16_t>(std::max(a, b));
    std::vector<Match> blocks;
    for (const auto& [first, bits] : port_ranges(low, high)) {
      blocks.push_back(Match().with_block(l4::dst_port, first, bits));
    }
    TestPacket packet(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2));
    for (int probe = 0; probe < 200; ++probe) {
      const std::uint16_t ports[] = {low, high, static_cast<std::uint16_t>(low - 1),
                                     static_cast<std::uint16_t>(high + 1), static_cast<std::uint16_t>(random())};
      const std::uint16_t port = ports[random.below(5)];
      deposit(FieldId::l4_dst_port, to_field(port), packet.key);
      const auto hits = std::ranges::count_if(blocks, [&](const Match& m) { return matches(m, packet.key); });
      ASSERT_EQ(hits, port >= low && port <= high ? 1 : 0) << port << " in " << low << '-' << high;
    }
  }
}

// Packets that differ in what rules ask of.
std::vector<TestPacket> packets() {
  std::vector<TestPacket> all;
  const auto add = [&all](const PacketBuilder& builder, std::uint16_t ingress = 1) {
    all.emplace_back(builder, ingress);
  };
  for (const int tags : {0, 1, 2}) {
    const auto base = [tags] {
      PacketBuilder b;
      for (int i = 0; i < tags; ++i) {
        b.vlan(static_cast<std::uint16_t>(100 + i), static_cast<std::uint8_t>(i + 1));
      }
      return b;
    };
    const auto v4 = [&] { return base().ipv4("10.0.0.1", "10.0.0.2"); };
    const auto v6 = [&] { return base().ipv6("2001:db8::1", "2001:db8::2"); };
    add(base().payload(3));
    add(base().eth_type(0x88cc).payload(3), 2);
    add(base().eth_type(0x0800).payload(3));
    add(base().arp(1, "02:00:00:00:00:01", "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2"));
    add(base().arp(2, "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.0.0.2"));
    for (const auto& network : {std::function<PacketBuilder()>(v4), std::function<PacketBuilder()>(v6)}) {
      add(network().tcp(1234, 80, tcp_flag::syn), 2);
      add(network().tcp(1234, 443));
      add(network().udp(80, 53).payload(4));
      add(network().sctp(80, 80));
      add(network().ttl(3).tos(0x2e).protocol(47));
      add(network().fragment(0, 16).udp(80, 53).payload(60));
      add(network().fragment(16, 16).udp(80, 53).payload(60));
      add(network().vxlan(100, PacketBuilder()));
      add(network().vxlan(101, PacketBuilder()));
    }
    add(v4().icmp(8, 0, 0x00500001));
    add(v6().icmpv6(128, 0, 0x00500001));
    add(v4().options(8).udp(80, 53));
    add(base().ipv4("10.0.1.1", "192.168.0.1").udp(80, 53));
    add(base().ipv6("10:0:1::", "a00::2").udp(80, 53));  // bytes that IPv4 addresses have too
  }
  all.emplace_back(std::vector<std::uint8_t>(9));
  return all;
}

struct Condition {
  std::function<void(Match&)> apply;
  std::function<bool(const Key&)> holds;
};

template <class T>
Condition equal(Field<T> field, T value, int tags = -1) {
  return {[=](Match& match) { match.with(field, value); },
          [=](const Key& key) {
            const Layout layout{key.layout};
            return present(field.id, layout) && (tags < 0 || layout.tags() == static_cast<unsigned>(tags)) &&
                   extract(field.id, key) == to_field(value);
          }};
}

Condition lies_in(Field<IpAddress> field, const char* text) {
  const IpPrefix prefix = *IpPrefix::parse(text);
  return {[=](Match& match) { match.with(field, prefix); },
          [=](const Key& key) {
            return present(field.id, Layout{key.layout}) &&
                   prefix.contains(from_field<IpAddress>(extract(field.id, key)));
          }};
}

Condition layer(Layer which) {
  return {[=](Match& match) { match.with(which); },
          [=](const Key& key) {
            const Layout layout{key.layout};
            return has(which, layout) && (which != Layer::vlan || layout.tags() == 1);
          }};
}

// In groups of which a rule takes at most one: two different wishes about one field contradict each other.
std::vector<std::vector<Condition>> conditions() {
  return {
      {equal(eth::src, *MacAddress::parse("02:00:00:00:00:01")),
       equal(eth::src, *MacAddress::parse("02:00:00:00:00:09"))},
      {equal(vlan::id, std::uint16_t{100}, 1), equal(vlan::id, std::uint16_t{7}, 1)},
      {equal(vlan::pcp, std::uint8_t{1}, 1)},
      {equal(eth::type, std::uint16_t{0x88cc}), equal(arp::operation, std::uint16_t{1}),
       equal(arp::target_ip, Ipv4Address{{10, 0, 0, 2}}), layer(Layer::arp)},
  };
}

std::vector<std::vector<Condition>> ip_conditions() {
  return {
      {equal(eth::dst, *MacAddress::parse("02:00:00:00:00:02"))},
      {equal(vlan::inner_id, std::uint16_t{101}, 2), equal(vlan::id, std::uint16_t{100}, 1), layer(Layer::vlan),
       layer(Layer::vlan_inner)},
      {lies_in(ip::src, "10.0.0.0/8"), lies_in(ip::src, "10.0.0.1"), lies_in(ip::src, "0.0.0.0/0"), layer(Layer::ip),
       layer(Layer::ipv4), equal(ip::dst, *IpAddress::parse("10.0.0.2")), lies_in(ip::dst, "192.168.0.0/16")},
      {equal(ip::ttl, std::uint8_t{3}), equal(ip::ttl, std::uint8_t{64})},
      {equal(ip::dscp, std::uint8_t{0x0b})},
      {equal(ip::ecn, std::uint8_t{2})},
      {equal(ip::protocol, std::uint8_t{17}), equal(ip::protocol, std::uint8_t{6})},
      {layer(Layer::tcp), layer(Layer::udp), layer(Layer::sctp), layer(Layer::ports), layer(Layer::icmp),
       equal(l4::src_port, std::uint16_t{80}), equal(l4::dst_port, std::uint16_t{53}), equal(tcp::flags, tcp_flag::syn),
       equal(icmp::type, std::uint8_t{8}), equal(icmp::code, std::uint8_t{0}), equal(icmp::id, std::uint16_t{0x50})},
      {layer(Layer::fragment), layer(Layer::later_fragment)},
      {layer(Layer::options)},
      {equal(vxlan::vni, std::uint32_t{100}), layer(Layer::vxlan)},
      {layer(Layer::well_formed)},
  };
}

std::vector<std::vector<Condition>> v6_conditions() {
  auto all = ip_conditions();
  all[2] = {lies_in(ip::src, "2001:db8::/32"),
            lies_in(ip::src, "::/0"),
            layer(Layer::ipv6),
            equal(ip::dst, *IpAddress::parse("2001:db8::2")),
            lies_in(ip::dst, "a00::/16"),
            lies_in(ip::src, "2001:db8::1")};
  all[7] = {layer(Layer::icmpv6), equal(icmp::type, std::uint8_t{128}), equal(l4::dst_port, std::uint16_t{80})};
  return all;
}

TEST(Match, EqualsItsConditionsOneByOne) {
  const std::vector<TestPacket> all = packets();
  Random random(3);
  std::size_t hits = 0;
  for (const auto& groups : {conditions(), ip_conditions(), v6_conditions()}) {
    for (int round = 0; round < 4'000; ++round) {
      Match match;
      std::vector<Condition> chosen;
      for (const auto& group : groups) {
        if (random.one_in(4)) {
          chosen.push_back(group[random.below(static_cast<std::uint32_t>(group.size()))]);
          chosen.back().apply(match);
        }
      }
      const bool on_port = random.one_in(4);
      if (on_port) {
        match.with_ingress(PortId{2});
      }
      for (const TestPacket& packet : all) {
        const bool expected =
            (!on_port || packet.key.ingress == 2) &&
            std::ranges::all_of(chosen, [&](const Condition& condition) { return condition.holds(packet.key); });
        ASSERT_EQ(matches(match, packet.key), expected) << Layout{packet.key.layout}.to_string() << " round " << round;
        hits += expected ? 1 : 0;
      }
    }
  }
  EXPECT_GT(hits, 10'000U);
}

TEST(Match, EveryConditionAlone) {
  const std::vector<TestPacket> all = packets();
  for (const auto& groups : {conditions(), ip_conditions(), v6_conditions()}) {
    for (const auto& group : groups) {
      for (const Condition& condition : group) {
        Match match;
        condition.apply(match);
        for (const TestPacket& packet : all) {
          EXPECT_EQ(matches(match, packet.key), condition.holds(packet.key)) << Layout{packet.key.layout}.to_string();
        }
      }
    }
  }
}

TEST(Match, NothingAskedMatchesEverything) {
  for (const TestPacket& packet : packets()) {
    EXPECT_TRUE(matches(Match(), packet.key));
    EXPECT_TRUE(matches(Match().with(Layer::ethernet), packet.key));
  }
}

TEST(Match, TheLaterValueOfAFieldStays) {
  EXPECT_TRUE(Match().with(l4::dst_port, 80).with(l4::dst_port, 443) == Match().with(l4::dst_port, 443));
  const IpPrefix ten = *IpPrefix::parse("10.0.0.0/8");
  const IpPrefix other = *IpPrefix::parse("192.168.0.0/16");
  EXPECT_TRUE(Match().with(ip::dst, ten).with(ip::dst, other) == Match().with(ip::dst, other));
  EXPECT_TRUE(Match().with(ip::dst, other).with(ip::dst, ten) == Match().with(ip::dst, ten));
  const IpPrefix v6 = *IpPrefix::parse("2001:db8::/32");
  EXPECT_TRUE(Match().with(ip::dst, v6).with(ip::dst, ten) == Match().with(ip::dst, ten));
  EXPECT_TRUE(Match().with(ip::dst, *IpAddress::parse("192.168.0.1")).with(ip::dst, ten) == Match().with(ip::dst, ten));
}

}  // namespace
}  // namespace weir
