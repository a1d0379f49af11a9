#include <weir/packet/address.h>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

TEST(MacAddress, ParsesAndPrints) {
  const auto mac = MacAddress::parse("02:Ab:00:ff:7E:01");
  ASSERT_TRUE(mac);
  EXPECT_EQ(mac->bytes, (std::array<std::uint8_t, 6>{0x02, 0xab, 0x00, 0xff, 0x7e, 0x01}));
  EXPECT_EQ(mac->to_string(), "02:ab:00:ff:7e:01");
  EXPECT_FALSE(mac->multicast());
  EXPECT_TRUE(MacAddress::parse("01:00:5e:00:00:01")->multicast());
}

TEST(MacAddress, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "02", "02:00:00:00:00", "02:00:00:00:00:0", "02:00:00:00:00:001", "02-00-00-00-00-01", "0g:00:00:00:00:01",
        "-2:00:00:00:00:01", "+2:00:00:00:00:01", "0x:00:00:00:00:01", " 2:00:00:00:00:01", "02:00:00:00:00:01 "}) {
    const auto mac = MacAddress::parse(text);
    ASSERT_FALSE(mac) << text;
    EXPECT_NE(mac.error().message.find("02:00:00:00:00:01"), std::string::npos) << mac.error().message;
  }
}

TEST(IpAddress, ParsesAndPrints) {
  struct Case {
    std::string_view text;
    bool v6;
    std::string_view printed;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"10.0.0.1", false, "10.0.0.1"},
           {"0.0.0.0", false, "0.0.0.0"},
           {"255.255.255.255", false, "255.255.255.255"},
           {"2001:DB8:0:0:0:0:0:1", true, "2001:db8::1"},
           {"::", true, "::"},
           {"::1", true, "::1"},
           {"::ffff:192.0.2.1", true, "::ffff:192.0.2.1"},
       }) {
    const auto address = IpAddress::parse(c.text);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->v6, c.v6) << c.text;
    EXPECT_EQ(address->bits(), c.v6 ? 128U : 32U);
    EXPECT_EQ(address->to_string(), c.printed);
  }
  const IpAddress v4 = *IpAddress::parse("10.1.2.3");
  EXPECT_EQ(v4.bytes, (std::array<std::uint8_t, 16>{10, 1, 2, 3}));
  EXPECT_EQ(v4.to_v4(), (Ipv4Address{{10, 1, 2, 3}}));
  EXPECT_NE(*IpAddress::parse("0.0.0.0"), *IpAddress::parse("::"));
}

TEST(IpAddress, RefusesWhatIsNone) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("10.0.0"), std::string_view("10.0.0.256"), std::string_view("10.0.0.1 "),
        std::string_view("010.0.0.1"), std::string_view("1.2.3.4.5"), std::string_view("2001:db8"),
        std::string_view("2001::db8::1"), std::string_view("fe80::1%eth0"), std::string_view("localhost"),
        std::string_view("10.0.0.1\0x", 10), std::string_view("::1\0", 4)}) {
    const auto address = IpAddress::parse(text);
    ASSERT_FALSE(address) << text;
    EXPECT_NE(address.error().message.find("not an IP address"), std::string::npos);
  }
}

TEST(IpAddress, KnowsGroups) {
  EXPECT_TRUE(IpAddress::parse("224.0.0.1")->multicast());
  EXPECT_TRUE(IpAddress::parse("239.255.255.255")->multicast());
  EXPECT_FALSE(IpAddress::parse("240.0.0.1")->multicast());
  EXPECT_FALSE(IpAddress::parse("223.255.255.255")->multicast());
  EXPECT_TRUE(IpAddress::parse("ff02::1")->multicast());
  EXPECT_FALSE(IpAddress::parse("fe80::1")->multicast());
}

TEST(IpAddress, RandomOnesSurviveTheirText) {
  Random random(1);
  for (int i = 0; i < 5'000; ++i) {
    Ipv6Address v6;
    for (auto& byte : v6.bytes) {
      byte = random.one_in(3) ? 0 : static_cast<std::uint8_t>(random());
    }
    const Ipv4Address v4{{v6.bytes[0], v6.bytes[1], v6.bytes[2], v6.bytes[3]}};
    for (const IpAddress address : {IpAddress(v6), IpAddress(v4)}) {
      const auto again = IpAddress::parse(address.to_string());
      ASSERT_TRUE(again);
      EXPECT_EQ(*again, address) << address.to_string();
    }
  }
}

TEST(IpPrefix, ParsesAndPrints) {
  struct Case {
    std::string_view text;
    std::string_view printed;
  };
  for (const Case& c : std::initializer_list<Case>{{"10.0.0.0/8", "10.0.0.0/8"},
                                                   {"10.0.0.1", "10.0.0.1/32"},
                                                   {"0.0.0.0/0", "0.0.0.0/0"},
                                                   {"10.128.0.0/9", "10.128.0.0/9"},
                                                   {"10.0.0.1/32", "10.0.0.1/32"},
                                                   {"::/0", "::/0"},
                                                   {"2001:db8::/33", "2001:db8::/33"},
                                                   {"2001:db8::1", "2001:db8::1/128"}}) {
    const auto prefix = IpPrefix::parse(c.text);
    ASSERT_TRUE(prefix) << c.text;
    EXPECT_EQ(prefix->to_string(), c.printed);
  }
}

TEST(IpPrefix, RefusesWhatIsNone) {
  for (const std::string_view text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ",
                                      "10.0.0.0/8/8", "10.0.0.0/0x8", "10.0.0.0/99999999999", "::/129", "10/8"}) {
    EXPECT_FALSE(IpPrefix::parse(text)) << text;
    EXPECT_FALSE(IpPrefix::parse_interface(text)) << text;
  }
  const auto host_bits = IpPrefix::parse("10.1.2.3/8");
  ASSERT_FALSE(host_bits);
  EXPECT_NE(host_bits.error().message.find("did you mean 10.0.0.0/8"), std::string::npos) << host_bits.error().message;
}

TEST(IpPrefix, InterfaceKeepsItsHostBits) {
  const auto both = IpPrefix::parse_interface("10.1.0.2/24");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->first.to_string(), "10.1.0.2");
  EXPECT_EQ(both->second.to_string(), "10.1.0.0/24");
}

TEST(IpPrefix, ContainsWhatSharesItsBits) {
  Random random(2);
  for (int i = 0; i < 20'000; ++i) {
    const bool v6 = random.one_in(2);
    IpAddress a;
    a.v6 = v6;
    for (unsigned byte = 0; byte < a.bits() / 8; ++byte) {
      a.bytes[byte] = static_cast<std::uint8_t>(random());
    }
    const unsigned length = random.below(a.bits() + 1);
    IpAddress b = a;
    const unsigned flipped = random.below(a.bits());
    b.bytes[flipped / 8] = static_cast<std::uint8_t>(b.bytes[flipped / 8] ^ (0x80U >> flipped % 8));
    const IpPrefix prefix(a, length);
    EXPECT_TRUE(prefix.contains(a));
    EXPECT_EQ(prefix.contains(b), flipped >= length) << prefix.to_string() << ' ' << b.to_string();
    IpAddress other = a;
    other.v6 = !v6;
    EXPECT_FALSE(prefix.contains(other));
  }
}

}  // namespace
}  // namespace weir
