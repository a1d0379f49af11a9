#include <weir/packet/layout.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Layout, PartsDoNotTouchEachOther) {
  // Every combination of the parts is kept as it was set.
  for (unsigned tags = 0; tags <= 2; ++tags) {
    for (const L3 l3 : {L3::none, L3::arp, L3::ipv4, L3::ipv6}) {
      for (const L4 l4 : {L4::none, L4::other, L4::icmp, L4::icmpv6, L4::tcp, L4::udp, L4::sctp}) {
        for (unsigned flags = 0; flags < 32; ++flags) {
          for (unsigned verdict = 0; verdict < parse_verdicts; ++verdict) {
            Layout layout;
            layout.set_verdict(ParseVerdict::truncated_vxlan);
            layout.set_verdict(static_cast<ParseVerdict>(verdict));
            layout.set_l4(L4::sctp);
            layout.set_l4(l4);
            layout.set_l3(L3::ipv6);
            layout.set_l3(l3);
            layout.set_tags(2);
            layout.set_tags(tags);
            layout.set(static_cast<std::uint16_t>(flags << 7U));
            ASSERT_EQ(layout.tags(), tags);
            ASSERT_EQ(layout.l3(), l3);
            ASSERT_EQ(layout.l4(), l4);
            ASSERT_EQ(layout.fragment(), (flags & 1U) != 0);
            ASSERT_EQ(layout.later_fragment(), (flags & 2U) != 0);
            ASSERT_EQ(layout.options(), (flags & 4U) != 0);
            ASSERT_EQ(layout.vxlan(), (flags & 8U) != 0);
            ASSERT_EQ(layout.tunnel(), (flags & 16U) != 0);
            ASSERT_EQ(layout.verdict(), static_cast<ParseVerdict>(verdict));
            ASSERT_EQ(layout.ip(), l3 == L3::ipv4 || l3 == L3::ipv6);
            ASSERT_EQ(layout.ports(), l4 == L4::tcp || l4 == L4::udp || l4 == L4::sctp);
            ASSERT_EQ(layout.ethernet(), verdict != 1);
          }
        }
      }
    }
  }
}

TEST(Layout, VerdictsHaveNames) {
  std::set<std::string_view> names;
  for (unsigned i = 0; i < parse_verdicts; ++i) {
    names.insert(name_of(static_cast<ParseVerdict>(i)));
  }
  EXPECT_EQ(names.size(), parse_verdicts);
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(name_of(static_cast<ParseVerdict>(15)), "unknown");
}

TEST(Layout, Prints) {
  Layout layout;
  EXPECT_EQ(layout.to_string(), "ethernet");
  layout.set_tags(2);
  layout.set_l3(L3::ipv4);
  layout.set_l4(L4::udp);
  EXPECT_EQ(layout.to_string(), "vlan vlan ipv4 udp");
  layout.set(Layout::tunnel_bit);
  layout.set(Layout::options_bit);
  layout.set(Layout::fragment_bit);
  EXPECT_EQ(layout.to_string(), "tunnel vlan vlan ipv4 udp options first-fragment");
  layout.set_l3(L3::ipv6);
  layout.set(Layout::later_fragment_bit);
  EXPECT_EQ(layout.to_string(), "tunnel vlan vlan ipv6 udp extensions later-fragment");
  Layout broken;
  broken.set_verdict(ParseVerdict::truncated_ethernet);
  EXPECT_EQ(broken.to_string(), "broken: truncated_ethernet");
}

}  // namespace
}  // namespace weir
