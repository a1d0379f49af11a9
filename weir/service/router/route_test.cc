#include <weir/service/router/route.h>

#include <gmock/gmock.h>

#include <weir/service/router/learned.h>
#include <weir/service/router/read_routes.h>

namespace weir {
namespace {

using testing::ElementsAre;

PortAddress own(std::string_view text) {
  const auto parsed = *IpPrefix::parse_interface(text);
  return {parsed.first, parsed.second};
}
IpPrefix prefix(std::string_view text) { return *IpPrefix::parse(text); }
IpAddress address(std::string_view text) { return *IpAddress::parse(text); }

const std::vector<RouterPort>& ports() {
  static const std::vector<RouterPort> all{
      {PortId{0}, "left", {{2, 0, 0, 0, 0, 1}}, 1500, {own("10.1.0.1/24"), own("2001:db8:1::1/64")}},
      {PortId{1}, "right", {{2, 0, 0, 0, 0, 2}}, 1500, {own("10.2.0.1/24")}},
      {PortId{2}, "link", {{2, 0, 0, 0, 0, 3}}, 1500, {own("10.3.0.0/31")}}};
  return all;
}

Route::Kind kind_of(const Routes& routes, std::string_view to) {
  const auto place = routes.find(prefix(to));
  EXPECT_NE(place, routes.end()) << to;
  return place == routes.end() ? Route::Kind::martian : place->second.kind;
}

TEST(Routes, OfThePortsAddresses) {
  const Routes routes = all_routes(ports(), {}, {});
  struct Case {
    const char* to;
    Route::Kind kind;
  };
  for (const Case& each : std::initializer_list<Case>{{"10.1.0.0/24", Route::Kind::link},
                                                      {"10.1.0.1/32", Route::Kind::local},
                                                      {"10.1.0.255/32", Route::Kind::broadcast},
                                                      {"10.1.0.0/32", Route::Kind::broadcast},
                                                      {"2001:db8:1::1/128", Route::Kind::local},
                                                      {"2001:db8:1::/64", Route::Kind::link},
                                                      {"10.3.0.0/31", Route::Kind::link},
                                                      {"10.3.0.0/32", Route::Kind::local},
                                                      {"127.0.0.0/8", Route::Kind::martian},
                                                      {"fe80::/10", Route::Kind::martian}}) {
    EXPECT_EQ(kind_of(routes, each.to), each.kind) << each.to;
  }
  EXPECT_FALSE(routes.contains(prefix("10.3.0.1/32"))) << "the other host of a network of two is one (RFC 3021)";
}

TEST(Routes, TheEarlierStays) {
  const Route to_nowhere{.kind = Route::Kind::blackhole};
  const Route over{.kind = Route::Kind::hops, .hops = {{PortId{1}, address("10.2.0.9")}}};
  const Routes routes = all_routes(ports(), {{prefix("10.1.0.0/24"), over}, {prefix("10.9.0.0/16"), over}},
                                   {{prefix("10.9.0.0/16"), to_nowhere}, {prefix("10.8.0.0/16"), to_nowhere}});
  EXPECT_EQ(kind_of(routes, "10.1.0.0/24"), Route::Kind::link);
  EXPECT_EQ(kind_of(routes, "10.9.0.0/16"), Route::Kind::hops);
  EXPECT_EQ(kind_of(routes, "10.8.0.0/16"), Route::Kind::blackhole);
}

TEST(Routes, OverPortsThatAreNotThereAreLeftOut) {
  const Route both{.kind = Route::Kind::hops,
                   .hops = {{PortId{1}, address("10.2.0.9")}, {PortId{7}, address("10.7.0.9")}}};
  const Route gone{.kind = Route::Kind::hops, .hops = {{PortId{7}, address("10.7.0.9")}}};
  const Routes routes = all_routes(ports(), {{prefix("10.8.0.0/16"), both}, {prefix("10.9.0.0/16"), gone}}, {});
  EXPECT_THAT(routes.at(prefix("10.8.0.0/16")).hops, ElementsAre(Hop{PortId{1}, address("10.2.0.9")}));
  EXPECT_FALSE(routes.contains(prefix("10.9.0.0/16")));
}

TEST(Sources, TheNodesOwnAreNobodyElses) {
  const Sources sources = all_sources(ports());
  EXPECT_EQ(sources.at(prefix("10.1.0.1/32")), Source::martian);
  EXPECT_EQ(sources.at(prefix("fe80::/10")), Source::link_local);
  EXPECT_EQ(sources.at(prefix("224.0.0.0/4")), Source::martian);
}

TEST(LearnedRoutes, OverThePortsInterfaces) {
  std::vector<RouterPort> with_interfaces = ports();
  with_interfaces[0].interface = "eth0";
  with_interfaces[1].interface = "eth1";
  const KernelRoutes::Map kernel{
      {prefix("10.9.0.0/16"), {{{"eth1", address("10.2.0.9")}}}},
      {prefix("10.8.0.0/16"),
       {{{"eth0", address("10.1.0.9")}, {"wlan0", address("10.7.0.9")}, {"eth1", address("10.2.0.9")}}}},
      {prefix("10.7.0.0/16"), {{{"wlan0", address("10.7.0.9")}}}},
      {prefix("10.6.0.0/16"), {{{"eth0", std::nullopt}}}},
      {prefix("10.5.0.0/16"), {}},
      {prefix("10.4.0.0/16"), {{{"", address("10.2.0.9")}}}}};
  const Routes expected{
      {prefix("10.9.0.0/16"), {.kind = Route::Kind::hops, .hops = {{PortId{1}, address("10.2.0.9")}}}},
      {prefix("10.8.0.0/16"),
       {.kind = Route::Kind::hops, .hops = {{PortId{0}, address("10.1.0.9")}, {PortId{1}, address("10.2.0.9")}}}},
      {prefix("10.6.0.0/16"), {.kind = Route::Kind::link, .port = PortId{0}}},
      {prefix("10.5.0.0/16"), {.kind = Route::Kind::blackhole}}};
  EXPECT_EQ(learned_routes(kernel, with_interfaces), expected);
}

struct Reading {
  const char* name;
  const char* text;
  const char* result;  ///< the routes in words, or the error
};

std::string read(const char* text) {
  const auto config = Config::parse(text, "n.yaml");
  const auto routes = read_routes(*config->map(), ports());
  if (!routes) {
    return routes.error().message;
  }
  std::string words;
  for (const auto& [to, route] : *routes) {
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", to.to_string(), route.to_string());
    for (const Hop& hop : route.hops) {
      words += fmt::format(" port {}", hop.port.number);
    }
  }
  return words;
}

TEST(ReadRoutes, Table) {
  for (const Reading& each : std::initializer_list<Reading>{
           {"a next hop", "{10.9.0.0/16: {via: 10.2.0.9}}", "10.9.0.0/16 via 10.2.0.9 port 1"},
           {"with its port", "{10.9.0.0/16: {via: 192.0.2.9, port: left}}", "10.9.0.0/16 via 192.0.2.9 port 0"},
           {"several", "{10.9.0.0/16: {via: [10.2.0.9, 10.1.0.9]}}",
            "10.9.0.0/16 via 10.2.0.9 or 10.1.0.9 port 1 port 0"},
           {"several, each with its port", "{10.9.0.0/16: [{via: 10.2.0.9, port: left}, {via: 10.1.0.9}]}",
            "10.9.0.0/16 via 10.2.0.9 or 10.1.0.9 port 0 port 0"},
           {"a black hole", "{10.9.0.0/16: blackhole}", "10.9.0.0/16 a black hole"},
           {"hosts on a link", "{10.9.0.0/16: {port: left}}", "10.9.0.0/16 a host on the link"},
           {"default", "{default: {via: 10.2.0.9}}", "0.0.0.0/0 via 10.2.0.9 port 1"},
           {"default, IPv6", "{default: {via: \"2001:db8:1::9\"}}", "::/0 via 2001:db8:1::9 port 0"},
           {"a next hop that no port reaches", "{10.9.0.0/16: {via: 192.0.2.9}}",
            "n.yaml:1:21: no port has an address in a network with 192.0.2.9; give one such an address, or name the "
            "port"},
           {"a port that is not there", "{10.9.0.0/16: {via: 192.0.2.9, port: lift}}",
            "n.yaml:1:38: no port 'lift'; there are: left, right, link, did you mean 'left'?"},
           {"the node itself", "{10.9.0.0/16: {via: 10.2.0.1}}",
            "n.yaml:1:21: 10.2.0.1 is the node's own address; name the next router's"},
           {"two families", "{10.9.0.0/16: {via: \"2001:db8:1::9\"}}",
            "n.yaml:1:15: 2001:db8:1::9 is no next hop to 10.9.0.0/16: they are of two families"},
           {"nothing", "{10.9.0.0/16: {}}",
            "n.yaml:1:15: a route without a next hop; write {via: ADDRESS}, {port: NAME} or blackhole"},
           {"a default that leads nowhere", "{default: blackhole}",
            "n.yaml:1:2: a default route needs a next hop; write 0.0.0.0/0 or ::/0 for one without"},
           {"the same twice", "{0.0.0.0/0: {via: 10.2.0.9}, default: {via: 10.2.0.9}}",
            "n.yaml:1:30: a second route to 0.0.0.0/0; list the next hops in one"},
           {"no prefix", "{10.9.0.1/16: {via: 10.2.0.9}}", "n.yaml:1:2: "},
           {"no address", "{10.9.0.0/16: {via: router}}", "n.yaml:1:21: "},
           {"an unknown key", "{10.9.0.0/16: {vai: 10.2.0.9}}", "n.yaml:1:16: unknown key 'vai'"},
       }) {
    EXPECT_THAT(read(each.text), testing::StartsWith(each.result)) << each.name;
  }
}

}  // namespace
}  // namespace weir
