#include <weir/device/internal/netlink.h>

#include <algorithm>

#include <gtest/gtest.h>

#include <weir/device/internal/ethtool.h>
#include <weir/device/internal/net_namespace.h>
#include <weir/device/internal/whole_frames.h>

namespace weir::device_internal {
namespace {

// The loopback interface is everywhere, and always number 1.
TEST(Netlink, FindsInterfacesByNameAndNumber) {
  auto netlink = Netlink::open();
  ASSERT_TRUE(netlink) << netlink.error().message;
  const auto by_name = netlink->link("lo");
  ASSERT_TRUE(by_name && *by_name);
  EXPECT_EQ((*by_name)->index, 1U);
  EXPECT_FALSE((*by_name)->ethernet);
  EXPECT_GE((*by_name)->mtu, 1280U);
  EXPECT_EQ((*by_name)->peer, 0U);
  const auto by_number = netlink->link(1U);
  ASSERT_TRUE(by_number && *by_number);
  EXPECT_EQ((*by_number)->name, "lo");
  const auto all = netlink->links();
  ASSERT_TRUE(all);
  EXPECT_TRUE(std::ranges::any_of(*all, [](const Link& link) { return link.name == "lo" && link.index == 1; }));
}

TEST(Netlink, WhatIsNotThereIsNothing) {
  auto netlink = Netlink::open();
  ASSERT_TRUE(netlink);
  const auto link = netlink->link("no-such-thing");
  ASSERT_TRUE(link);
  EXPECT_FALSE(*link);
  EXPECT_FALSE(netlink->changed());
}

TEST(NetNamespace, FindsItsOwn) {
  const Descriptor own = own_namespace();
  ASSERT_TRUE(own);
  const NamespaceId id = namespace_id(own.get());
  EXPECT_NE(id, NamespaceId{});
  EXPECT_TRUE(find_namespace([&](int descriptor) { return namespace_id(descriptor) == id; }));
  EXPECT_FALSE(find_namespace([](int) { return false; }));
}

TEST(Ethtool, TellsFeatures) {
  const auto found = features("lo");
  ASSERT_TRUE(found) << found.error().message;
  for (const char* name : {"tx-checksum-ip-generic", "tx-vlan-hw-insert", "rx-gro", "rx-vlan-hw-parse"}) {
    EXPECT_TRUE(std::ranges::any_of(*found, [&](const Feature& feature) { return feature.name == name; })) << name;
  }
  for (const auto& [name, on] : far_end_settings()) {
    EXPECT_TRUE(std::ranges::any_of(*found, [&](const Feature& feature) { return feature.name == name; })) << name;
  }
  EXPECT_FALSE(features("no-such-thing"));
  EXPECT_EQ(queues("lo").receive, 1U);
}

}  // namespace
}  // namespace weir::device_internal
