#include <weir/flow/field.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>

namespace weir {
namespace {

constexpr std::uint64_t seed = 31;

FieldId field_at(unsigned i) { return static_cast<FieldId>(i); }

// Bits of the field's value; what the field's own comment says, not taken from its spec.
unsigned width(FieldId field, bool v6) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
    case FieldId::arp_sender_mac:
    case FieldId::arp_target_mac:
      return 48;
    case FieldId::vlan_id:
    case FieldId::vlan_inner_id:
      return 12;
    case FieldId::vlan_pcp:
    case FieldId::vlan_inner_pcp:
      return 3;
    case FieldId::ip_dscp:
      return 6;
    case FieldId::ip_ecn:
      return 2;
    case FieldId::arp_sender_ip:
    case FieldId::arp_target_ip:
      return 32;
    case FieldId::ip_src:
    case FieldId::ip_dst:
      return v6 ? 128 : 32;
    case FieldId::ip_protocol:
    case FieldId::ip_ttl:
    case FieldId::tcp_flags:
    case FieldId::icmp_type:
    case FieldId::icmp_code:
      return 8;
    case FieldId::vxlan_vni:
    case FieldId::tunnel_vni:
      return 24;
    default:
      return 16;
  }
}

// A random value of `bits` bits, right-aligned in its bytes.
FieldValue random_value(Random& random, unsigned bits, bool v6) {
  FieldValue value;
  value.v6 = v6 && bits == 128;
  for (unsigned i = 0; i < (bits + 7) / 8; ++i) {
    value.bytes[i] = static_cast<std::uint8_t>(random());
  }
  if (bits % 8 != 0) {
    value.bytes[0] = static_cast<std::uint8_t>(value.bytes[0] & (0xffU >> (8 - bits % 8)));
  }
  return value;
}

Layout layout_with(FieldId field, bool v6) {
  Layout layout;
  for (unsigned bits = 0; bits < 0x1000; ++bits) {
    layout.bits = static_cast<std::uint16_t>(bits);
    const bool fits = width(field, false) == width(field, true) || (layout.l3() == L3::ipv6) == v6;
    if (present(field, layout) && fits && layout.l3() != L3::none) {
      return layout;
    }
  }
  return {};
}

TEST(Field, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < field_count; ++i) {
    names.insert(spec(field_at(i)).name);
  }
  EXPECT_EQ(names.size(), field_count);
}

TEST(Field, DepositAndExtractAreInverse) {
  Random random(seed);
  for (unsigned i = 0; i < field_count; ++i) {
    const FieldId field = field_at(i);
    for (const bool v6 : {false, true}) {
      Layout layout = layout_with(field, v6);
      if (field == FieldId::eth_type) {
        layout.set_l3(L3::none);  // with an L3, the type is in the layout
      }
      ASSERT_TRUE(present(field, layout)) << spec(field).name;
      for (int round = 0; round < 200; ++round) {
        Key key;
        for (std::size_t word = 0; word < Key::words; ++word) {
          key.set_word(word, random());
        }
        key.layout = layout.bits;
        const FieldValue value = random_value(random, width(field, v6), v6);
        Key changed = key;
        deposit(field, value, changed);
        ASSERT_EQ(extract(field, changed), value) << spec(field).name;
        // No bit but the field's own changes.
        FieldValue all;
        all.bytes.fill(0xff);
        Key own;
        deposit(field, all, own);
        Key others;
        for (std::size_t word = 0; word < Key::words; ++word) {
          others.set_word(word, ~own.word(word));
        }
        ASSERT_TRUE(equal_under(key, changed, others)) << spec(field).name;
        ASSERT_EQ(own.layout, 0);
      }
    }
  }
}

TEST(Field, ValuesSurviveTheirTypes) {
  Random random(seed + 1);
  for (int round = 0; round < 1'000; ++round) {
    const auto number = static_cast<std::uint32_t>(random());
    EXPECT_EQ(from_field<std::uint8_t>(to_field(static_cast<std::uint8_t>(number))), number & 0xffU);
    EXPECT_EQ(from_field<std::uint16_t>(to_field(static_cast<std::uint16_t>(number))), number & 0xffffU);
    EXPECT_EQ(from_field<std::uint32_t>(to_field(number & 0xffffffU)), number & 0xffffffU);
    const FieldValue bytes = random_value(random, 128, true);
    IpAddress v6(Ipv6Address{bytes.bytes});
    EXPECT_EQ(from_field<IpAddress>(to_field(v6)), v6);
    const IpAddress v4(v6.to_v4());
    EXPECT_EQ(from_field<IpAddress>(to_field(v4)), v4);
    MacAddress mac;
    std::copy_n(bytes.bytes.begin(), 6, mac.bytes.begin());
    EXPECT_EQ(from_field<MacAddress>(to_field(mac)), mac);
  }
}

template <class T>
T read(const TestPacket& packet, Field<T> field) {
  EXPECT_TRUE(present(field.id, Layout{packet.key.layout})) << spec(field.id).name;
  return from_field<T>(extract(field.id, packet.key));
}

TEST(Field, ReadsWhatThePacketHolds) {
  const TestPacket tcp_packet(PacketBuilder()
                                  .eth("02:00:00:00:00:0a", "02:00:00:00:00:0b")
                                  .vlan(0x123, 5)
                                  .vlan(0xffe, 2)
                                  .ipv4("10.1.2.3", "10.4.5.6")
                                  .ttl(9)
                                  .tos(0xb9)
                                  .tcp(1234, 80, tcp_flag::syn));
  EXPECT_EQ(read(tcp_packet, eth::src), *MacAddress::parse("02:00:00:00:00:0a"));
  EXPECT_EQ(read(tcp_packet, eth::dst), *MacAddress::parse("02:00:00:00:00:0b"));
  EXPECT_EQ(read(tcp_packet, eth::type), 0x0800);
  EXPECT_EQ(read(tcp_packet, vlan::id), 0x123);
  EXPECT_EQ(read(tcp_packet, vlan::pcp), 5);
  EXPECT_EQ(read(tcp_packet, vlan::inner_id), 0xffe);
  EXPECT_EQ(read(tcp_packet, vlan::inner_pcp), 2);
  EXPECT_EQ(read(tcp_packet, ip::src), *IpAddress::parse("10.1.2.3"));
  EXPECT_EQ(read(tcp_packet, ip::dst), *IpAddress::parse("10.4.5.6"));
  EXPECT_EQ(read(tcp_packet, ip::protocol), 6);
  EXPECT_EQ(read(tcp_packet, ip::ttl), 9);
  EXPECT_EQ(read(tcp_packet, ip::dscp), 0x2e);
  EXPECT_EQ(read(tcp_packet, ip::ecn), 1);
  EXPECT_EQ(read(tcp_packet, l4::src_port), 1234);
  EXPECT_EQ(read(tcp_packet, l4::dst_port), 80);
  EXPECT_EQ(read(tcp_packet, tcp::flags), tcp_flag::syn);

  const TestPacket v6(PacketBuilder().ipv6("2001:db8::1", "2001:db8::2").icmpv6(128, 3, 0x12345678));
  EXPECT_EQ(read(v6, eth::type), 0x86dd);
  EXPECT_EQ(read(v6, ip::dst), *IpAddress::parse("2001:db8::2"));
  EXPECT_EQ(read(v6, icmp::type), 128);
  EXPECT_EQ(read(v6, icmp::code), 3);
  EXPECT_EQ(read(v6, icmp::id), 0x1234);

  const TestPacket arp_packet(PacketBuilder().arp(2, "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.0.0.2"));
  EXPECT_EQ(read(arp_packet, eth::type), 0x0806);
  EXPECT_EQ(read(arp_packet, arp::operation), 2);
  EXPECT_EQ(IpAddress(read(arp_packet, arp::sender_ip)).to_string(), "10.0.0.1");
  EXPECT_EQ(read(arp_packet, arp::sender_mac).to_string(), "02:00:00:00:00:01");
  EXPECT_EQ(IpAddress(read(arp_packet, arp::target_ip)).to_string(), "10.0.0.2");
  EXPECT_EQ(read(arp_packet, arp::target_mac).to_string(), "02:00:00:00:00:02");

  const TestPacket vxlan_packet(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").vxlan(0x123456, PacketBuilder()));
  EXPECT_EQ(read(vxlan_packet, vxlan::vni), 0x123456U);
  EXPECT_EQ(read(TestPacket(PacketBuilder().eth_type(0x88cc)), eth::type), 0x88cc);
  // A header that cannot be parsed still has its type.
  EXPECT_EQ(read(TestPacket(PacketBuilder().eth_type(0x0800).payload(4)), eth::type), 0x0800);
}

TEST(Field, AbsentWhereThePacketHasNone) {
  struct Case {
    const char* description;
    PacketBuilder packet;
    std::set<FieldId> fields;
  };
  const std::set<FieldId> ethernet = {FieldId::eth_dst, FieldId::eth_src, FieldId::eth_type};
  const std::set<FieldId> network = {FieldId::ip_src,  FieldId::ip_dst, FieldId::ip_protocol,
                                     FieldId::ip_dscp, FieldId::ip_ecn, FieldId::ip_ttl};
  const auto joined = [](std::initializer_list<std::set<FieldId>> sets) {
    std::set<FieldId> all;
    for (const auto& each : sets) {
      all.insert(each.begin(), each.end());
    }
    return all;
  };
  const std::set<FieldId> ports = {FieldId::l4_src_port, FieldId::l4_dst_port};
  const std::set<FieldId> icmp_fields = {FieldId::icmp_type, FieldId::icmp_code, FieldId::icmp_id};
  const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); };
  for (const Case& c : std::initializer_list<Case>{
           {"Ethernet", PacketBuilder().payload(2), ethernet},
           {"tag", PacketBuilder().vlan(1), joined({ethernet, {FieldId::vlan_id, FieldId::vlan_pcp}})},
           {"tags", PacketBuilder().vlan(1).vlan(2),
            joined({ethernet, {FieldId::vlan_id, FieldId::vlan_pcp, FieldId::vlan_inner_id, FieldId::vlan_inner_pcp}})},
           {"TCP", v4().tcp(1, 2), joined({ethernet, network, ports, {FieldId::tcp_flags}})},
           {"UDP", v4().udp(1, 2), joined({ethernet, network, ports})},
           {"SCTP", v4().sctp(1, 2), joined({ethernet, network, ports})},
           {"ICMP", v4().icmp(8), joined({ethernet, network, icmp_fields})},
           {"other", v4().protocol(47), joined({ethernet, network})},
           {"later fragment", v4().fragment(8, 8).tcp(1, 2), joined({ethernet, network})},
           {"VXLAN", v4().vxlan(1, PacketBuilder()), joined({ethernet, network, ports, {FieldId::vxlan_vni}})},
       }) {
    const TestPacket packet(c.packet);
    for (unsigned i = 0; i < field_count; ++i) {
      EXPECT_EQ(present(field_at(i), Layout{packet.key.layout}), c.fields.contains(field_at(i)))
          << c.description << ", " << spec(field_at(i)).name;
    }
  }
}

TEST(Field, LayersAreInTheLayout) {
  const auto of = [](const PacketBuilder& builder) { return Layout{TestPacket(builder).key.layout}; };
  const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); };
  EXPECT_TRUE(has(Layer::ip, of(v4())));
  EXPECT_TRUE(has(Layer::ipv4, of(v4())));
  EXPECT_FALSE(has(Layer::ipv6, of(v4())));
  EXPECT_TRUE(has(Layer::ip, of(PacketBuilder().ipv6("::1", "::2"))));
  EXPECT_TRUE(has(Layer::ipv6, of(PacketBuilder().ipv6("::1", "::2"))));
  EXPECT_TRUE(has(Layer::vlan, of(PacketBuilder().vlan(1).vlan(2))));
  EXPECT_TRUE(has(Layer::vlan_inner, of(PacketBuilder().vlan(1).vlan(2))));
  EXPECT_FALSE(has(Layer::vlan_inner, of(PacketBuilder().vlan(1))));
  EXPECT_TRUE(has(Layer::tcp, of(v4().tcp(1, 2))));
  EXPECT_TRUE(has(Layer::udp, of(v4().udp(1, 2))));
  EXPECT_TRUE(has(Layer::sctp, of(v4().sctp(1, 2))));
  EXPECT_TRUE(has(Layer::icmp, of(v4().icmp(8))));
  EXPECT_TRUE(has(Layer::icmpv6, of(PacketBuilder().ipv6("::1", "::2").icmpv6(128))));
  EXPECT_TRUE(has(Layer::ports, of(v4().sctp(1, 2))));
  EXPECT_FALSE(has(Layer::ports, of(v4().icmp(8))));
  EXPECT_TRUE(has(Layer::fragment, of(v4().fragment(0, 8).udp(1, 2).payload(9))));
  EXPECT_FALSE(has(Layer::later_fragment, of(v4().fragment(0, 8).udp(1, 2).payload(9))));
  EXPECT_TRUE(has(Layer::later_fragment, of(v4().fragment(8, 8).udp(1, 2).payload(9))));
  EXPECT_TRUE(has(Layer::options, of(v4().options(4).udp(1, 2))));
  EXPECT_TRUE(has(Layer::well_formed, of(PacketBuilder())));
  EXPECT_FALSE(has(Layer::well_formed, of(PacketBuilder().eth_type(0x0800))));
  EXPECT_TRUE(has(Layer::ethernet, of(PacketBuilder().eth_type(0x0800))));
  EXPECT_FALSE(has(Layer::ethernet, Layout{TestPacket(std::vector<std::uint8_t>(3)).key.layout}));
}

}  // namespace
}  // namespace weir
