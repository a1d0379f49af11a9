#include <weir/device/xdp.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;

TEST(XdpDevice, OptionErrorsSayWhatIsAllowed) {
  struct Case {
    const char* text;
    const char* said;
  };
  for (const auto& [text, said] : std::vector<Case>{
           {"xdp", "'' is not the name of an interface; write xdp:INTERFACE"},
           {"xdp:a-name-that-is-too-long", "is not the name of an interface"},
           {"xdp:eth1,mode=nativ", "option mode: 'nativ' is not known, did you mean 'native'?"},
           {"xdp:eth1,ring=32", "from 64 to 4096"},
           {"xdp:eth1,ring=100", "option ring: 100 is not a power of two"},
           {"xdp:eth1,far_end=yes", "give one of: prepared"},
           {"xdp:eth1,rings=64", "unknown option 'rings', did you mean 'ring'?"},
       }) {
    const auto device = make_device(text);
    ASSERT_FALSE(device) << text;
    EXPECT_THAT(device.error().message, HasSubstr(said));
  }
  EXPECT_TRUE(make_device("xdp:eth1,mode=generic,ring=1024,far_end=prepared"));
}

TEST(XdpDevice, UnknownInterfacesAreNamed) {
  const auto pool = FramePool::create(64).value();
  const SystemClock clock;
  const DeviceContext context{*pool, clock, nullptr, 1, 1};
  const auto missing = make_device("xdp:no-such-thing").value()->open(context);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no interface 'no-such-thing' in this network namespace"));
  EXPECT_THAT(missing.error().message, HasSubstr("Ethernet interfaces here: "));
  const auto loopback = make_device("xdp:lo").value()->open(context);
  ASSERT_FALSE(loopback);
  EXPECT_THAT(loopback.error().message, HasSubstr("lo is not an Ethernet interface"));
}

}  // namespace
}  // namespace weir
