#include <weir/service/firewall/read_endpoints.h>

#include <gtest/gtest.h>

#include <weir/packet/ipv4.h>

namespace weir {
namespace {

Result<Endpoints> read(std::string_view text, Names& names) {
  const auto file = Config::parse(text, "e.yaml");
  return file ? read_endpoints(*file, names) : std::unexpected(file.error());
}

std::string message(const auto& result) { return result ? "no error" : result.error().message; }

PortOptions options(std::map<std::string, std::string> labels, std::initializer_list<const char*> addresses) {
  PortOptions made{.labels = std::move(labels)};
  for (const char* address : addresses) {
    made.addresses.push_back(*IpPrefix::parse_interface(address));
  }
  return made;
}

TEST(ReadEndpoints, FromAFile) {
  Names names;
  const auto endpoints = read(R"(weir_endpoints: 1
namespaces:
  x: {team: blue}
endpoints:
  x/a: {port: pod-a, labels: {app: web}, addresses: [10.0.0.1, "fd00::1"], ports: {http: 80, dns: [53/UDP, 53/TCP]}}
  b:
)",
                              names);
  ASSERT_TRUE(endpoints) << message(endpoints);
  ASSERT_EQ(endpoints->entries.size(), 2U);
  const EndpointEntry& a = endpoints->entries[0];
  EXPECT_EQ(a.key.to_string(), "x/a");
  EXPECT_EQ(a.port, "pod-a");
  EXPECT_EQ(a.place, "e.yaml:5:3");
  EXPECT_EQ(a.addresses[1].to_string(), "fd00::1");
  EXPECT_EQ(a.ports, (std::vector<NamedPort>{{names.id("http"), ip_protocol::tcp, 80},
                                             {names.id("dns"), ip_protocol::udp, 53},
                                             {names.id("dns"), ip_protocol::tcp, 53}}));
  EXPECT_EQ(endpoints->entries[1].key.to_string(), "default/b");
  const IdentityPtr identity = identity_of(a, endpoints->namespaces, names);
  EXPECT_EQ(identity->namespace_labels, labels_of({{"team", "blue"}, {"kubernetes.io/metadata.name", "x"}}, names));
  EXPECT_EQ(identity->labels, labels_of({{"app", "web"}}, names));
}

TEST(ReadEndpoints, PortsAreEndpointsUnlessTheFileSaysWhoIsBehindThem) {
  Names names;
  const std::vector<ServicePort> ports{
      {"pod-a", PortId{0}, options({{"app", "other"}}, {})},
      {"pod-b", PortId{1}, options({{"app", "db"}, {"namespace", "y"}}, {"10.0.0.2/24"})},
      {"up", PortId{2}, {.role = PortRole::uplink}}};
  const auto file = read("weir_endpoints: 1\nendpoints:\n  x/a: {port: pod-a, labels: {app: web}}\n", names);
  const auto endpoints = with_ports(*file, ports);
  ASSERT_TRUE(endpoints) << message(endpoints);
  ASSERT_EQ(endpoints->entries.size(), 2U);
  EXPECT_EQ(endpoints->entries[0].labels.at("app"), "web");
  const EndpointEntry& b = endpoints->entries[1];
  EXPECT_EQ(b.key.to_string(), "y/pod-b");
  EXPECT_EQ(b.labels, (std::map<std::string, std::string>{{"app", "db"}}));
  EXPECT_EQ(b.addresses.at(0).to_string(), "10.0.0.2");
  EXPECT_EQ(b.port, "pod-b");
}

struct Bad {
  const char* text;
  const char* message;
};

class BadEndpoints : public testing::TestWithParam<Bad> {};

TEST_P(BadEndpoints, AreExplained) {
  Names names;
  const std::vector<ServicePort> ports{{"pod-b", PortId{1}, options({}, {"10.0.0.2/24"})},
                                       {"up", PortId{2}, {.role = PortRole::uplink}}};
  const auto file = read(GetParam().text, names);
  EXPECT_EQ(file ? message(with_ports(*file, ports)) : message(file), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    ReadEndpoints, BadEndpoints,
    testing::Values(
        Bad{"endpoints: {}\n",
            "e.yaml:1:1: expected an endpoints file, a map that begins with 'weir_endpoints: 1', found a map"},
        Bad{"weir_endpoints: 2\n", "e.yaml:1:17: expected a whole number from 1 to 1, found '2'"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/y/z: {}\n",
            "e.yaml:3:3: 'x/y/z' is no name of an endpoint; write NAMESPACE/NAME"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {address: 10.0.0.1}\n",
            "e.yaml:3:9: unknown key 'address'; allowed: port, labels, addresses, ports; did you mean 'addresses'?"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {addresses: [10.0.0.0/8]}\n",
            "e.yaml:3:21: '10.0.0.0/8' is not an IP address; write it as 10.0.0.1 or 2001:db8::1"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {ports: {http: 80/tcp}}\n",
            "e.yaml:3:23: '80/tcp' is no port; write a number from 1 to 65535, perhaps with its protocol: 80, 53/UDP "
            "or "
            "36412/SCTP"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {ports: {dns: [53, 54]}}\n",
            "e.yaml:3:27: a second TCP port of this name; a name stands for one port of each protocol"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {addresses: [10.0.0.1]}\n  x/b: {addresses: [10.0.0.1]}\n",
            "e.yaml:4:3: 10.0.0.1 is the address of endpoint x/a already (e.yaml:3:3)"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {addresses: [10.0.0.2]}\n",
            "port 'pod-b': 10.0.0.2 is the address of endpoint x/a already (e.yaml:3:3)"},
        Bad{"weir_endpoints: 1\nendpoints:\n  default/pod-b: {}\n",
            "port 'pod-b': endpoint default/pod-b is there twice; the other is e.yaml:3:3. If they are one, write the "
            "port's name behind 'port'"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {port: up}\n",
            "e.yaml:3:3: port 'up' has the role uplink, where no endpoint is guarded; leave 'port' out, or name a "
            "port with the role host"},
        Bad{"weir_endpoints: 1\nendpoints:\n  x/a: {port: pod-b}\n  x/b: {port: pod-b}\n",
            "e.yaml:4:3: port 'pod-b' is that of endpoint x/a already; behind a port is one endpoint"}));

}  // namespace
}  // namespace weir
