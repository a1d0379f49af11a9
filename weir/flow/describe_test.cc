#include <weir/flow/describe.h>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <weir/flow/match.h>
#include <weir/flow/state.h>

namespace weir {
namespace {

class Describe : public testing::Test {
 protected:
  Epochs epochs_;
  State state_{epochs_, 1};
  Pipeline pipeline_{.stages = {{"first"}, {"second"}}, .entry = {}};
  Names names_{state_, pipeline_, {"alice", "bob"}};

  std::string match(const Match& match, Layout layout) const {
    Key mask = match.mask();
    mask.layout = 0xffff;
    return fmt::format("{}", fmt::join(describe_match(match.value(), mask, layout, names_), ", "));
  }
};

Layout tcp(L3 l3, unsigned tags = 0) {
  Layout layout;
  layout.set_tags(tags);
  layout.set_l3(l3);
  layout.set_l4(L4::tcp);
  return layout;
}

TEST_F(Describe, Matches) {
  EXPECT_EQ(match(Match(), tcp(L3::ipv4)), "ipv4 tcp");
  EXPECT_EQ(match(Match().with_ingress(PortId{1}), tcp(L3::ipv4)), "in by bob, ipv4 tcp");
  EXPECT_EQ(match(Match().with(ip::dst, *IpPrefix::parse("10.0.0.0/9")), tcp(L3::ipv4)), "ipv4 tcp, ip.dst=10.0.0.0/9");
  EXPECT_EQ(match(Match().with(ip::src, *IpPrefix::parse("fd00::/16")), tcp(L3::ipv6)), "ipv6 tcp, ip.src=fd00::/16");
  EXPECT_EQ(match(Match().with(vlan::id, 100), tcp(L3::ipv4, 1)), "vlan ipv4 tcp, vlan.id=100");
  EXPECT_EQ(match(Match().with(l4::dst_port, 23), tcp(L3::ipv4)), "ipv4 tcp, l4.dst_port=23");
  EXPECT_EQ(match(Match().with_block(l4::dst_port, 1024, 10), tcp(L3::ipv4)), "ipv4 tcp, l4.dst_port=0x400/0xfc00");
}

TEST_F(Describe, FieldsByBits) {
  FieldValue value = to_field(MacAddress{{1, 0, 0x5e, 0, 0, 1}});
  FieldValue group_bit;
  group_bit.bytes[0] = 1;
  EXPECT_EQ(describe(FieldId::eth_dst, value, group_bit), "eth.dst=01:00:00:00:00:00/01:00:00:00:00:00");
  FieldValue all;
  all.bytes.fill(0xff);
  EXPECT_EQ(describe(FieldId::tcp_flags, to_field<std::uint8_t>(0x12), all), "tcp.flags=SYN+ACK");
  EXPECT_EQ(describe(FieldId::vxlan_vni, to_field<std::uint32_t>(5000), all), "vxlan.vni=5000");
}

TEST_F(Describe, Actions) {
  Counter counter("web");
  const ReasonId reason = state_.reason({"denied", "a rule says so"});
  EXPECT_EQ(describe(Action{.kind = ActionKind::output, .number = 0}, names_), "output to alice");
  EXPECT_EQ(describe(Action{.kind = ActionKind::drop, .reason = reason}, names_), "drop: denied (a rule says so)");
  EXPECT_EQ(describe(Action{.kind = ActionKind::count, .object = &counter}, names_), "count as 'web'");
  EXPECT_EQ(describe(Action{.kind = ActionKind::enter, .number = 1}, names_), "go on at second");
  EXPECT_EQ(
      describe(
          Action{.kind = ActionKind::set, .field = FieldId::eth_src, .value = to_field(MacAddress{{2, 0, 0, 0, 0, 1}})},
          names_),
      "set eth.src to 02:00:00:00:00:01");
  EXPECT_EQ(describe(Action{.kind = ActionKind::flood, .number = 7}, names_), "flood VLAN 7");
  EXPECT_EQ(describe(Action{.kind = ActionKind::to_host}, names_), "give to the node itself");
  const IpAddress next = Ipv4Address{{10, 0, 0, 9}};
  EXPECT_EQ(describe(Action{.kind = ActionKind::resolve, .number = 0, .value = to_field(next)}, names_),
            "wait until the Ethernet address of 10.0.0.9 on alice is known");
}

TEST_F(Describe, Guards) {
  EXPECT_EQ(describe(GuardKind::ttl_above, 1, true), "TTL above 1");
  EXPECT_EQ(describe(GuardKind::ttl_above, 1, false), "TTL not above 1");
  EXPECT_EQ(describe(GuardKind::fits, 1500, false), "longer than 1500 bytes from the L3 header on");
  EXPECT_EQ(describe(GuardKind::flags, 0x1202, true), "TCP flags SYN+ACK are SYN");
}

}  // namespace
}  // namespace weir
