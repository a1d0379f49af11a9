#include <weir/device/device_spec.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(DeviceSpec, TakesTheTextApart) {
  const auto spec = DeviceSpec::parse("pcap:in.pcap,out=out.pcap,loop=2");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->kind, "pcap");
  EXPECT_EQ(spec->argument, "in.pcap");
  EXPECT_THAT(spec->options, UnorderedElementsAre(Pair("out", "out.pcap"), Pair("loop", "2")));
}

TEST(DeviceSpec, FormsThatMeanTheSame) {
  for (const char* text : {"memory:flows=8,order=zipf", "memory:,flows=8,order=zipf"}) {
    const auto spec = DeviceSpec::parse(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_EQ(spec->argument, "");
    EXPECT_THAT(spec->options, UnorderedElementsAre(Pair("flows", "8"), Pair("order", "zipf")));
  }
  for (const char* text : {"memory", "memory:"}) {
    const auto spec = DeviceSpec::parse(text);
    ASSERT_TRUE(spec) << text;
    EXPECT_EQ(spec->kind, "memory");
    EXPECT_TRUE(spec->options.empty());
  }
}

TEST(DeviceSpec, ArgumentsMayHoldEqualsAndColons) {
  const auto spec = DeviceSpec::parse("pcap:a=b:c.pcap,out=d=e");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->argument, "a=b:c.pcap");
  EXPECT_THAT(spec->options, UnorderedElementsAre(Pair("out", "d=e")));
}

TEST(DeviceSpec, Errors) {
  struct Case {
    const char* text;
    std::vector<const char*> said;
  };
  const std::vector<Case> cases{
      {"", {"no kind of device", "kind:argument,key=value"}},
      {":x", {"no kind of device"}},
      {"a=b", {"no kind of device"}},
      {"pcp:x", {"unknown kind of device 'pcp'", "did you mean 'pcap'?", "known: memory, pcap"}},
      {"quantum:x", {"unknown kind of device 'quantum'; known: memory, pcap"}},
      {"pcap", {"neither a file to read nor one to write"}},
      {"pcap:a.pcap,", {"an empty option"}},
      {"pcap:a.pcap,,loop=1", {"an empty option"}},
      {"pcap:a.pcap,loop", {"'loop' is not an option", "key=value"}},
      {"pcap:a.pcap,=1", {"'=1' is not an option"}},
      {"pcap:a.pcap,out=", {"'out=' is not an option"}},
      {"pcap:a.pcap,loop=1,loop=2", {"option 'loop' is given twice"}},
      {"pcap:a.pcap,lop=1", {"unknown option 'lop'", "did you mean 'loop'?", "known: out, loop, rate, snaplen"}},
      {"pcap:a.pcap,loop=-1", {"option loop: '-1' is not a whole number"}},
      {"pcap:a.pcap,rate=capturd", {"option rate: 'capturd' is not a whole number from 1 to 1000000000"}},
      {"pcap:a.pcap,rate=0", {"option rate: '0'"}},
      {"pcap:a.pcap,snaplen=64", {"option snaplen", "give out= too"}},
      {"pcap:a.pcap,out=b,snaplen=0", {"from 1 to 262144"}},
      {"pcap:,out=x,loop=2", {"option loop", "there is none"}},
      {"memory:foo", {"memory takes no argument, found 'foo'"}},
      {"memory:,foo", {"memory takes no argument, found 'foo'"}},
      {"memory:flws=3", {"device 'memory:flws=3'", "unknown option 'flws', did you mean 'flows'?"}},
      {"memory:flows=0", {"option flows: '0' is not a whole number from 1 to 16777216"}},
      {"memory:flows=16777217", {"option flows"}},
      {"memory:flows=1e3", {"option flows: '1e3'"}},
      {"memory:order=zip", {"option order: 'zip' is not known, did you mean 'zipf'?", "random, zipf, sequential"}},
      {"memory:skew=1", {"option skew", "order=zipf"}},
      {"memory:order=zipf,skew=0", {"option skew: '0' is not a number from 0.01 to 10"}},
      {"memory:order=zipf,skew=nan", {"option skew: 'nan'"}},
      {"memory:size=59", {"option size: '59' is not a whole number from 60 to 9000"}},
      {"memory:size=60,ip=6,proto=tcp", {"option size: 60 is too small for the headers, which take 74 bytes"}},
      {"memory:src=10.0.0", {"option src"}},
      {"memory:src=2001:db8::1", {"option src", "not an address of IPv4", "ip=6"}},
      {"memory:ip=6,dst=10.0.0.1", {"option dst", "not an address of IPv6", "ip=4"}},
      {"memory:src=255.255.255.255,flows=2", {"option src: 2 flows run past the last address"}},
      {"memory:vlan=4095", {"option vlan: '4095' is not a whole number from 1 to 4094"}},
      {"memory:src_mac=02:00", {"option src_mac"}},
      {"memory:vary=src+port", {"option vary: 'port' is not known, did you mean 'ports'?"}},
      {"memory:queue=5", {"option queue", "rate="}},
      {"memory:headers=random,flows=4", {"option flows: does not go with headers=random"}},
      {"memory:headers=random,size=imix", {"option size", "headers=random"}},
      {"memory:headers=random,size=63", {"from 64 to 2944"}},
  };
  for (const auto& [text, said] : cases) {
    const auto device = make_device(text);
    ASSERT_FALSE(device) << text;
    for (const char* part : said) {
      EXPECT_THAT(device.error().message, HasSubstr(part));
    }
  }
}

TEST(DeviceKinds, ExamplesCanBeMade) {
  for (const DeviceKind& kind : device_kinds()) {
    EXPECT_TRUE(make_device(kind.example)) << kind.example;
    EXPECT_FALSE(kind.help.empty());
    for (const auto& option : kind.options) {
      EXPECT_FALSE(option.help.empty()) << option.name;
    }
  }
}

}  // namespace
}  // namespace weir
