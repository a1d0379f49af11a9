#include <weir/device/kernel_routes.h>

#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

namespace weir {
namespace {

IpPrefix prefix(std::string_view text) { return *IpPrefix::parse(text); }
KernelHop hop(std::string_view interface, std::string_view address) {
  return {std::string(interface), *IpAddress::parse(address)};
}
bool ip(const std::string& arguments) { return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0; }

// In a network namespace of its own, on a thread of its own: what it changes goes with the thread.
void follow() {
  if (unshare(CLONE_NEWNET) != 0 || std::system("sysctl -qw net.ipv6.conf.all.disable_ipv6=1") != 0 ||
      !ip("link add v0 type veth peer name v1")) {
    GTEST_SKIP() << "makes a network namespace and interfaces, which only root can";  // without link-local routes
  }
  ASSERT_TRUE(ip("address add 10.1.0.1/24 dev v0") && ip("link set v0 up") && ip("link set v1 up"));
  auto opened = KernelRoutes::open(KernelRoutes::main_table);
  ASSERT_TRUE(opened) << opened.error().message;
  KernelRoutes& kernel = **opened;
  EXPECT_EQ(kernel.routes(), (KernelRoutes::Map{{prefix("10.1.0.0/24"), {{{"v0", std::nullopt}}}}}));

  Nanoseconds now = 1;
  const auto tend = [&] {
    now += KernelRoutes::time_between_readings;
    return kernel.tend(now).value();
  };
  tend();
  EXPECT_FALSE(tend()) << "nothing was changed";

  ASSERT_TRUE(ip("route add 10.9.0.0/16 via 10.1.0.9 metric 20") &&
              ip("route add 10.9.0.0/16 via 10.1.0.8 metric 10") && ip("route add blackhole 10.8.0.0/16") &&
              ip("route add 10.7.0.0/16 nexthop via 10.1.0.9 nexthop via 10.1.0.8") &&
              ip("route add 10.6.0.0/16 via 10.1.0.9 table 100"));
  EXPECT_TRUE(tend());
  const KernelRoutes::Map expected{{prefix("10.1.0.0/24"), {{{"v0", std::nullopt}}}},
                                   {prefix("10.9.0.0/16"), {{hop("v0", "10.1.0.8")}}},
                                   {prefix("10.8.0.0/16"), {}},
                                   {prefix("10.7.0.0/16"), {{hop("v0", "10.1.0.9"), hop("v0", "10.1.0.8")}}}};
  EXPECT_EQ(kernel.routes(), expected);

  ASSERT_TRUE(ip("route del 10.9.0.0/16 metric 10"));
  EXPECT_FALSE(kernel.tend(now + 1).value()) << "not so soon again";
  EXPECT_TRUE(tend());
  EXPECT_EQ(kernel.routes().at(prefix("10.9.0.0/16")).hops, std::vector{hop("v0", "10.1.0.9")});

  ASSERT_TRUE(ip("link set v0 name v9") || (ip("link set v0 down") && ip("link set v0 name v9")));
  EXPECT_TRUE(tend());
  EXPECT_FALSE(kernel.routes().contains(prefix("10.9.0.0/16")) &&
               kernel.routes().at(prefix("10.9.0.0/16")).hops[0].interface == "v0");

  auto other = KernelRoutes::open(100);
  ASSERT_TRUE(other);
  EXPECT_LE((*other)->routes().size(), 1U);
}

TEST(KernelRoutes, FollowsTheKernel) { std::thread(follow).join(); }

TEST(KernelRoutes, CanBeReadByAnyone) {
  auto routes = KernelRoutes::open(KernelRoutes::main_table);
  ASSERT_TRUE(routes) << routes.error().message;
  EXPECT_TRUE((*routes)->tend(1));
}

}  // namespace
}  // namespace weir
