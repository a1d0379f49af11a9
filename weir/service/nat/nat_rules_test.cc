#include <weir/service/nat/nat_rules.h>

#include <gmock/gmock.h>

#include <weir/packet/ipv4.h>

namespace weir {
namespace {

IpAddress ip_of(std::string_view text) { return *IpAddress::parse(text); }

NatRules rules() {
  NatRules rules;
  rules.own = {ip_of("10.1.0.1"), ip_of("192.0.2.1"), ip_of("fd00:1::1")};
  rules.masquerades = {{*IpPrefix::parse("10.1.0.0/16"), {*IpPrefix::parse("172.16.0.0/12")}, ip_of("192.0.2.1"), {}},
                       {*IpPrefix::parse("fd00:1::/64"), {}, ip_of("2001:db8::1"), {2000, 3000}}};
  rules.forwards = {{ip_of("192.0.2.1"), ip_protocol::tcp, 8080, ip_of("10.1.0.5"), 80},
                    {ip_of("192.0.2.7"), 0, 0, ip_of("10.1.0.7"), 0}};
  return rules;
}

TEST(NatRules, Table) {
  struct Case {
    const char* name;
    const char *src, *dst;
    std::uint8_t protocol;
    std::uint16_t port;
    const char *new_src, *new_dst;  ///< nullptr: stays
    std::uint16_t new_port;         ///< 0: stays
  };
  constexpr std::uint8_t tcp = ip_protocol::tcp, udp = ip_protocol::udp;
  const std::vector<Case> cases = {
      {"out", "10.1.2.3", "198.51.100.1", tcp, 80, "192.0.2.1", nullptr, 0},
      {"out, IPv6", "fd00:1::9", "2001:db8:9::1", udp, 53, "2001:db8::1", nullptr, 0},
      {"somebody else's", "10.2.0.1", "198.51.100.1", tcp, 80, nullptr, nullptr, 0},
      {"among themselves", "10.1.2.3", "10.1.9.9", tcp, 80, nullptr, nullptr, 0},
      {"excepted", "10.1.2.3", "172.20.0.1", tcp, 80, nullptr, nullptr, 0},
      {"to the node", "10.1.2.3", "10.1.0.1", udp, 53, nullptr, nullptr, 0},
      {"to the node's other address", "10.1.2.3", "192.0.2.1", udp, 53, nullptr, nullptr, 0},
      {"to a group", "10.1.2.3", "224.0.0.251", udp, 5353, nullptr, nullptr, 0},
      {"to a neighbour's group", "fd00:1::9", "ff02::1:ff00:1", 58, 0, nullptr, nullptr, 0},
      {"to all", "10.1.2.3", "255.255.255.255", udp, 67, nullptr, nullptr, 0},
      {"on the link", "fd00:1::9", "fe80::1", udp, 546, nullptr, nullptr, 0},
      {"in", "198.51.100.1", "192.0.2.1", tcp, 8080, nullptr, "10.1.0.5", 80},
      {"in by another port", "198.51.100.1", "192.0.2.1", tcp, 8081, nullptr, nullptr, 0},
      {"in by another protocol", "198.51.100.1", "192.0.2.1", udp, 8080, nullptr, nullptr, 0},
      {"in, all of an address", "198.51.100.1", "192.0.2.7", udp, 99, nullptr, "10.1.0.7", 0},
      {"out and in again", "10.1.2.3", "192.0.2.1", tcp, 8080, "192.0.2.1", "10.1.0.5", 80},
  };
  for (const Case& each : cases) {
    ConnectionTuple first;
    first.src = ip_of(each.src);
    first.dst = ip_of(each.dst);
    first.src_port = 40'000;
    first.dst_port = each.port;
    first.protocol = each.protocol;
    const auto found = rules().translation(first);
    ASSERT_EQ(found.has_value(), each.new_src != nullptr || each.new_dst != nullptr) << each.name;
    if (found) {
      EXPECT_EQ(found->src.present, each.new_src != nullptr) << each.name;
      EXPECT_EQ(found->dst.present, each.new_dst != nullptr) << each.name;
      EXPECT_TRUE(each.new_src == nullptr || *found->src == ip_of(each.new_src)) << each.name;
      EXPECT_TRUE(each.new_dst == nullptr || *found->dst == ip_of(each.new_dst)) << each.name;
      EXPECT_EQ(found->dst_port.value_or(0), each.new_port) << each.name;
    }
  }
}

}  // namespace
}  // namespace weir
