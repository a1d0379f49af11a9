#include <weir/service/acl_file.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

Result<std::vector<AclRule>> read(std::string_view text) {
  const auto config = Config::parse(text, "acl.yaml");
  return config ? read_acl(*config) : std::unexpected(config.error());
}

TEST(AclFile, RulesBecomeMatches) {
  const auto rules = read(
      "- {action: deny, name: web, protocol: tcp, src: 10.0.0.0/8, dst: 10.0.0.1, dst_port: 80, vlan: 5}\n"
      "- {action: allow}\n");
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 2U);
  EXPECT_FALSE((*rules)[0].allow);
  EXPECT_EQ((*rules)[0].name, "web");
  EXPECT_EQ((*rules)[0].matches, std::vector{Match()
                                                 .with(layers::tcp)
                                                 .with(ip::src, *IpPrefix::parse("10.0.0.0/8"))
                                                 .with(ip::dst, *IpPrefix::parse("10.0.0.1"))
                                                 .with(vlan::id, 5)
                                                 .with_block(l4::dst_port, 80, 0)});
  EXPECT_TRUE((*rules)[1].allow);
  EXPECT_EQ((*rules)[1].name, "rule 2 (allow)");
  EXPECT_EQ((*rules)[1].matches, std::vector{Match()});
}

TEST(AclFile, RangesOfPortsExpand) {
  const auto rules = read(
      "- {action: deny, protocol: udp, src_port: [53, 67], dst_port: 1000-1003}\n"
      "- {action: deny, dst_port: 1-6}\n"
      "- {action: deny, dst_port: 0-65535}\n");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ((*rules)[0].matches.size(), 2U);  // 1000-1003 is one block
  EXPECT_EQ((*rules)[1].matches.size(), 4U);  // 1, 2-3, 4-5, 6
  EXPECT_EQ((*rules)[2].matches.size(), 1U);
}

struct Case {
  const char* text;
  const char* message;
};

class BadAcl : public testing::TestWithParam<Case> {};

TEST_P(BadAcl, IsExplained) {
  const auto rules = read(GetParam().text);
  EXPECT_EQ(rules ? "no error" : rules.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    AclFile, BadAcl,
    testing::Values(
        Case{"a: 1", "acl.yaml:1:1: expected a list of rules, found a map"},
        Case{"- {src: 10.0.0.0/8}", "acl.yaml:1:3: a rule without 'action'; it is allow or deny"},
        Case{"- {action: drop}", "acl.yaml:1:12: expected one of deny, allow, found 'drop'"},
        Case{"- {action: deny, prot: tcp}",
             "acl.yaml:1:18: unknown key 'prot'; allowed: action, name, protocol, src, dst, src_port, dst_port, vlan"},
        Case{"- {action: deny, dst_port: 70000}",
             "acl.yaml:1:28: expected a port (0 to 65535) or a range such as \"1000-2000\", found '70000'"},
        Case{"- {action: deny, dst_port: 20-10}", "acl.yaml:1:28: the range 20-10 ends before it starts"},
        Case{"- {action: deny, dst_port: []}",
             "acl.yaml:1:28: an empty list of ports matches nothing; leave the key out to match any"},
        Case{"- {action: deny, protocol: icmp, dst_port: 5}",
             "acl.yaml:1:44: dst_port does not go with this protocol; only tcp, udp and sctp have ports"},
        Case{"- {action: deny, src: 10.0.0.0/8, dst: 'fd00::/8'}",
             "acl.yaml:1:40: src is IPv4 and dst is IPv6; no packet has both"},
        Case{"- {action: deny, vlan: 4095}", "acl.yaml:1:24: expected a whole number from 1 to 4094, found '4095'"},
        Case{"- {action: deny, name: a}\n- {action: deny, name: a}",
             "acl.yaml:2:24: two rules are named 'a'; the first is at acl.yaml:1:24"}));

}  // namespace
}  // namespace weir
