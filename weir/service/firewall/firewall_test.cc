// The firewall in a node, packet by packet: what arrives is what Kubernetes says that policies allow.

#include <weir/service/firewall/firewall.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>

#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/tcp.h>
#include <weir/service/firewall/internal/policy_cases.h>

namespace weir {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::uint8_t>;
using oracle::Connection;
using oracle::Object;
using oracle::Pod;
using oracle::World;

constexpr const char* world_mac = "02:00:00:00:ff:01";

std::string mac_of(std::size_t number) { return fmt::format("02:00:00:00:00:{:02x}", number + 1); }

/// Whom a packet comes from or goes to: a pod, or a stranger behind the uplink.
struct End {
  std::size_t port = 0;  ///< its number; the uplink is the last
  const Pod* pod = nullptr;
  std::string address;
};

/// Nine pods behind ports of their own, and the world behind an uplink. Packets go where their destination address is.
class Cluster {
 public:
  explicit Cluster(EngineKind engine = EngineKind::core) : world_(oracle::three_by_three()) {
    folder_ = fs::path(testing::TempDir()) / fmt::format("weir-firewall-{}", reinterpret_cast<std::uintptr_t>(this));
    fs::create_directories(folder_);
    node_ = std::move(*Node::create({.engine = engine, .decision_share = {100}, .frames = 1024}));
    std::map<IpAddress, PortId> behind;
    for (const Pod& pod : world_.pods) {
      behind[*IpAddress::parse(pod.address)] = add_port(pod.in + "-" + pod.name, PortRole::host);
    }
    const PortId uplink = add_port("world", PortRole::uplink);
    write_endpoints();
    auto built = build_service(*node_, kind_, settings_, folder_);
    EXPECT_TRUE(built) << built.error().message;
    service_ = std::move(*built);
    Graph& graph = node_->graph();
    const FlowStage& wire = graph.stage("wire", [behind, uplink](Flow& flow) {
      const auto to = flow[ip::dst];
      const auto port = to ? behind.find(*to) : behind.end();
      return flow.output(port == behind.end() ? uplink : port->second);
    });
    const ServiceStages& stages = service_->stages();
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      graph.connect(PortId{static_cast<std::uint16_t>(i)}, stages.entry);
    }
    graph.connect(*stages.exit, wire);
    graph.connect_ports(stages.entry);
    const std::uint8_t delivery = graph.deliver_at(*stages.delivery);
    auto connected = node_->update([&](Update& update) {
      for (std::uint16_t i = 0; i < world_.pods.size(); ++i) {
        update.set_delivery(PortId{i}, delivery);
      }
    });
    EXPECT_TRUE(connected);
    EXPECT_TRUE(node_->prepare());
  }
  ~Cluster() { fs::remove_all(folder_); }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] Node& node() { return *node_; }
  [[nodiscard]] Service& service() { return *service_; }

  void set(const Object& policy) {
    remove_from_world(policy);
    world_.policies.push_back(policy);
    std::ofstream(folder_ / "policy.yaml") << policy.dump();
    call("apply", {{"files", {(folder_ / "policy.yaml").string()}}});
  }

  void remove(const Object& policy) {
    remove_from_world(policy);
    const Object& metadata = policy.at("metadata");
    const std::string in = metadata.value("namespace", "");
    call("delete", {{"name", policy.at("kind").get<std::string>() + " " + (in.empty() ? "" : in + "/") +
                                 metadata.at("name").get<std::string>()}});
  }

  /// Pods and namespaces become the world's.
  std::size_t relabel() {
    write_endpoints();
    const auto done = node_->update([&](Update& update) {
      const std::vector<ServicePort> ports = service_ports(*node_);
      const ServiceContext context(*node_, kind_, settings_, folder_, ports, {});
      const auto configured = service_->configure(context, update);
      EXPECT_TRUE(configured) << configured.error().message;
    });
    EXPECT_TRUE(done) << done.error().message;
    return done->rules_cleared;
  }

  [[nodiscard]] std::vector<End> ends() const {
    std::vector<End> ends;
    for (std::size_t i = 0; i < world_.pods.size(); ++i) {
      ends.push_back({i, &world_.pods[i], world_.pods[i].address});
    }
    for (const std::string& stranger : oracle::strangers()) {
      ends.push_back({world_.pods.size(), nullptr, stranger});
    }
    return ends;
  }

  /// Whether the packet that comes in where `from` is arrives where `to` is. It arrives nowhere else.
  bool arrives(const End& from, const End& to, const PacketBuilder& packet) {
    return arrives(from, to, packet.bytes());
  }
  bool arrives(const End& from, const End& to, const Bytes& packet) {
    const std::uint64_t all_before = delivered();
    const std::uint64_t before = devices_[to.port]->packets();
    devices_[from.port]->inject(packet);
    while (node_->poll_once() != 0) {
    }
    const std::uint64_t arrived = devices_[to.port]->packets() - before;
    EXPECT_EQ(delivered() - all_before, arrived);
    return arrived == 1;
  }

  /// The first packet of a connection, and the first answer to it.
  static Bytes packet(const End& from, const End& to, const Connection& connection, bool answer = false) {
    constexpr std::uint16_t client = 40'000;
    constexpr std::uint32_t echo = 7U << 16U;
    PacketBuilder packet = PacketBuilder().eth(mac_of(from.port), world_mac).ipv4(from.address, to.address);
    const auto server = static_cast<std::uint16_t>(connection.port);
    const std::uint16_t source = answer ? server : client;
    const std::uint16_t destination = answer ? client : server;
    if (connection.protocol == "TCP") {
      return (answer ? packet.tcp(source, destination, tcp_flag::syn | tcp_flag::ack).sequence(5000, 1001)
                     : packet.tcp(source, destination, tcp_flag::syn).sequence(1000, 0))
          .bytes();
    }
    if (connection.protocol == "UDP") {
      return packet.udp(source, destination).payload(8).bytes();
    }
    if (connection.protocol == "SCTP") {
      const Bytes init{1, 0, 0, 20, 0, 0, 0, 9, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1};
      Bytes bytes = packet.sctp(source, destination).payload(init).bytes();
      constexpr std::size_t verification_tag = 14 + 20 + 4;  // of an INIT it is 0 (RFC 9260, section 8.5.1)
      std::fill_n(bytes.begin() + verification_tag, 4, std::uint8_t{0});
      return bytes;
    }
    return packet.icmp(answer ? 0 : 8, 0, echo | 1U).bytes();
  }

  [[nodiscard]] bool wanted(const End& from, const End& to, const Connection& connection) const {
    return (from.pod == nullptr || oracle::allowed(world_, false, *from.pod, to.pod, to.address, connection)) &&
           (to.pod == nullptr || oracle::allowed(world_, true, *to.pod, from.pod, from.address, connection));
  }

  /// Calls visit(from, to, connection) for all pairs, but strangers among themselves.
  template <class Visit>
  void for_each_connection(Visit visit) const {
    const std::vector<End> all = ends();
    for (const End& from : all) {
      for (const End& to : all) {
        if (from.pod != nullptr || to.pod != nullptr) {
          for (const Connection& connection : oracle::connections()) {
            visit(from, to, connection);
          }
        }
      }
    }
  }

  void forget_connections() {
    node_->state().connections().end([](const Connections::View&) { return true; });
  }

  [[nodiscard]] std::string drops() const {
    std::string text;
    for (const Summary::DropLine& line : node_->summary().drops) {
      text += (text.empty() ? "" : " ") + line.reason;
    }
    return text;
  }

  static std::string text(const End& from, const End& to, const Connection& connection) {
    return fmt::format("{} to {}, {} {}", from.address, to.address, connection.protocol, connection.port);
  }
  [[nodiscard]] std::string policies_text() const { return Object(world_.policies).dump(1); }

 private:
  PortId add_port(const std::string& name, PortRole role) {
    auto device = std::move(*MemoryDevice::make(*DeviceSpec::parse("memory:")));
    devices_.push_back(static_cast<MemoryDevice*>(device.get()));
    return *node_->add_port(name, std::move(device), {.role = role});
  }

  [[nodiscard]] std::uint64_t delivered() const {
    std::uint64_t sum = 0;
    for (const MemoryDevice* device : devices_) {
      sum += device->packets();
    }
    return sum;
  }

  void call(const char* name, const Json& arguments) {
    const auto done = service_->call(name, arguments);
    ASSERT_TRUE(done) << done.error().message;
  }

  void write_endpoints() const {
    Object file{{"weir_endpoints", 1}, {"namespaces", world_.namespaces}, {"endpoints", Object::object()}};
    for (const Pod& pod : world_.pods) {
      Object ports = Object::object();
      for (const oracle::Port& port : pod.ports) {
        ports[port.name].push_back(fmt::format("{}/{}", port.number, port.protocol));
      }
      file["endpoints"][pod.in + "/" + pod.name] = {
          {"port", pod.in + "-" + pod.name}, {"labels", pod.labels}, {"addresses", {pod.address}}, {"ports", ports}};
    }
    std::ofstream(folder_ / "endpoints.yaml") << file.dump(1);
  }

  void remove_from_world(const Object& policy) {
    std::erase_if(world_.policies, [&](const Object& other) {
      return other.at("kind") == policy.at("kind") &&
             other.at("metadata").at("name") == policy.at("metadata").at("name") &&
             other.at("metadata").value("namespace", "") == policy.at("metadata").value("namespace", "");
    });
  }

  World world_;
  fs::path folder_;
  const ServiceKind kind_ = firewall();
  const Config settings_ = *Config::parse("{endpoints: endpoints.yaml}", "n.yaml");
  std::unique_ptr<Node> node_;
  std::unique_ptr<Service> service_;
  std::vector<MemoryDevice*> devices_;
};

TEST(Firewall, AllCombinationsOfPoliciesForAllPairs) {
  Cluster cluster;
  std::size_t packets = 0;
  for (const std::vector<Object>& policies : oracle::all_cases()) {
    for (const Object& policy : policies) {
      cluster.set(policy);
    }
    cluster.for_each_connection([&](const End& from, const End& to, const Connection& connection) {
      const bool wanted = cluster.wanted(from, to, connection);
      ASSERT_EQ(cluster.arrives(from, to, Cluster::packet(from, to, connection)), wanted)
          << Cluster::text(from, to, connection) << "\n"
          << cluster.policies_text();
      ++packets;
      if (wanted && connection.protocol != "SCTP" && from.address != to.address) {
        ASSERT_TRUE(cluster.arrives(to, from, Cluster::packet(to, from, connection, true)))
            << "the answer, " << Cluster::text(from, to, connection) << "\n"
            << cluster.policies_text();
        ++packets;
      }
    });
    if (HasFailure()) {
      return;
    }
    cluster.forget_connections();
    for (const Object& policy : policies) {
      cluster.remove(policy);
    }
  }
  EXPECT_GT(packets, 200'000U);
}

// Connections stay while policies, labels and namespaces change: each packet is judged by what holds then, an answer as
// the connection's first packet would be.
TEST(Firewall, ChangesWhileConnectionsStay) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    oracle::RandomPolicies random(seed);
    Cluster cluster(seed % 4 == 0 ? EngineKind::reference : EngineKind::core);
    World& world = cluster.world();
    std::set<std::string> opened;  // connections that are known at both ends
    for (int step = 0; step < 10; ++step) {
      switch (random.below(6)) {
        case 0:
          if (!world.policies.empty()) {
            cluster.remove(Object(random.one_of(world.policies)));
          }
          break;
        case 1:
          world.pods[random.below(world.pods.size())].labels["pod"] =
              random.one_of(std::vector<std::string>{"a", "b", "c"});
          cluster.relabel();
          break;
        case 2:
          world.namespaces[random.one_of(std::vector<std::string>{"x", "y", "z"})]["tier"] =
              random.one_of(std::vector<std::string>{"front", "back"});
          cluster.relabel();
          break;
        default:
          cluster.set(random.any());
          break;
      }
      cluster.for_each_connection([&](const End& from, const End& to, const Connection& connection) {
        if (connection.protocol == "SCTP") {
          return;
        }
        const bool wanted = cluster.wanted(from, to, connection);
        ASSERT_EQ(cluster.arrives(from, to, Cluster::packet(from, to, connection)), wanted)
            << "seed " << seed << ", step " << step << ": " << Cluster::text(from, to, connection) << "\n"
            << cluster.policies_text();
        if (connection.protocol == "TCP" || from.address == to.address) {
          return;
        }
        const std::string name = Cluster::text(from, to, connection);
        if (wanted) {
          opened.insert(name);
        }
        if (opened.contains(name)) {
          ASSERT_EQ(cluster.arrives(to, from, Cluster::packet(to, from, connection, true)), wanted)
              << "the answer, seed " << seed << ", step " << step << ": " << name << "\n"
              << cluster.policies_text();
        }
      });
      if (HasFailure()) {
        return;
      }
    }
  }
}

// ---- What the matrix does not have ----

class FirewallNode : public testing::Test {
 protected:
  void isolate(const char* in, const char* spec = R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})") {
    cluster_.set(oracle::network_policy(in, "isolate", oracle::parsed(spec)));
  }
  [[nodiscard]] End end(std::size_t pod) const { return cluster_.ends()[pod]; }
  [[nodiscard]] End stranger() const { return cluster_.ends()[10]; }
  static PacketBuilder from_to(const End& from, const End& to) {
    return PacketBuilder().eth(mac_of(from.port), world_mac).ipv4(from.address, to.address);
  }

  Cluster cluster_;
};

TEST_F(FirewallNode, WhatIsNotIpPasses) {
  isolate("x");
  EXPECT_TRUE(cluster_.arrives(
      end(0), stranger(),
      PacketBuilder().eth(mac_of(0), world_mac).arp(1, mac_of(0), "10.0.1.1", "00:00:00:00:00:00", "10.0.1.2")));
}

TEST_F(FirewallNode, NeighbourDiscoveryPassesAndOtherIcmpNeedsARule) {
  isolate("x");
  const auto v6 = [&](std::uint8_t type) {
    return PacketBuilder().eth(mac_of(0), world_mac).ipv6("fe80::1", "fe80::2").icmpv6(type);
  };
  for (const std::uint8_t type : {133, 134, 135, 136, 137}) {
    EXPECT_TRUE(cluster_.arrives(end(0), stranger(), v6(type))) << int{type};
  }
  EXPECT_FALSE(cluster_.arrives(end(0), stranger(), v6(128)));
  EXPECT_FALSE(cluster_.arrives(end(0), stranger(), v6(143))) << "a multicast listener's report";
  isolate(
      "x",
      R"({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "fe80::/10"}}]}]})");
  EXPECT_TRUE(cluster_.arrives(end(0), stranger(), v6(128)));
  EXPECT_TRUE(cluster_.arrives(end(0), stranger(), v6(143)));
}

TEST_F(FirewallNode, WhatBelongsToNoConnectionIsDroppedWhereAPolicyIs) {
  const PacketBuilder lost = from_to(end(0), stranger()).tcp(40'000, 80, tcp_flag::ack).sequence(1, 1);
  EXPECT_TRUE(cluster_.arrives(end(0), stranger(), lost)) << "no policy";
  isolate("x", R"({"podSelector": {}, "policyTypes": ["Ingress"]})");
  EXPECT_FALSE(cluster_.arrives(end(0), stranger(), lost));
  EXPECT_EQ(cluster_.drops(), "invalid_connection");
}

TEST_F(FirewallNode, ErrorsAboutAConnectionArePartOfIt) {
  isolate("x", R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"port": 53,
      "protocol": "UDP"}]}]})");
  const PacketBuilder question = from_to(end(0), stranger()).udp(40'000, 53).payload(8);
  EXPECT_TRUE(cluster_.arrives(end(0), stranger(), question));
  const auto bytes = question.bytes();
  const auto quoting = [&](std::size_t from) {
    return from_to(stranger(), end(0)).icmp(3, 3).payload(std::span(bytes).subspan(from));
  };
  EXPECT_TRUE(cluster_.arrives(stranger(), end(0), quoting(14)));
  const auto other = from_to(end(0), stranger()).udp(40'001, 53).payload(8).bytes();
  EXPECT_FALSE(cluster_.arrives(stranger(), end(0),
                                from_to(stranger(), end(0)).icmp(3, 3).payload(std::span(other).subspan(14))));
}

TEST_F(FirewallNode, ConnectionsThatWereThereBeforeGoOnUnderANewPolicy) {
  const Connection dns{"UDP", 53};
  EXPECT_TRUE(cluster_.arrives(end(0), stranger(), Cluster::packet(end(0), stranger(), dns)));
  isolate("x", R"({"podSelector": {}, "policyTypes": ["Ingress"]})");
  EXPECT_TRUE(cluster_.arrives(stranger(), end(0), Cluster::packet(stranger(), end(0), dns, true)));
  EXPECT_FALSE(cluster_.arrives(stranger(), end(0), Cluster::packet(stranger(), end(0), dns)));
}

// No policy may make others decide again.
TEST_F(FirewallNode, AChangeClearsTheRulesOfWhomItIsAboutOnly) {
  const auto open = [&](std::size_t from, std::size_t to) {
    const Bytes forth = Cluster::packet(end(from), end(to), {"UDP", 80});
    EXPECT_TRUE(cluster_.arrives(end(from), end(to), forth));
    EXPECT_TRUE(cluster_.arrives(end(to), end(from), Cluster::packet(end(to), end(from), {"UDP", 80}, true)));
    EXPECT_TRUE(cluster_.arrives(end(from), end(to), forth));
    EXPECT_TRUE(cluster_.arrives(end(from), end(to), forth));
  };
  // Among the others, too, one that is restricted, so that its decisions look at labels.
  cluster_.set(oracle::network_policy("y", "p", oracle::parsed(R"({"podSelector": {}, "ingress": [{"from":
      [{"namespaceSelector": {}}]}]})")));
  open(3, 4);  // y/a, y/b
  open(4, 5);
  open(6, 7);  // z/a, z/b
  open(0, 4);  // x/a, y/b
  const std::uint64_t before = cluster_.node().summary().misses;
  const auto revoked = [&] { return cluster_.node().summary().revoked; };
  const std::uint64_t none = revoked();
  isolate("x", R"({"podSelector": {"matchLabels": {"pod": "b"}}})");
  EXPECT_EQ(revoked(), none) << "x/b has no flow";
  isolate("x", R"({"podSelector": {"matchLabels": {"pod": "a"}}, "policyTypes": ["Ingress"]})");
  const auto again = [&](std::size_t from, std::size_t to) {
    EXPECT_TRUE(cluster_.arrives(end(from), end(to), Cluster::packet(end(from), end(to), {"UDP", 80})));
  };
  again(3, 4);
  again(4, 5);
  again(6, 7);
  EXPECT_EQ(cluster_.node().summary().misses, before) << "they go on by their rules";
  again(0, 4);
  EXPECT_EQ(cluster_.node().summary().misses, before + 1) << "x/a's flow is decided again";
}

TEST_F(FirewallNode, APortThatItWasNotToldOfPassesNothing) {
  auto device = std::move(*MemoryDevice::make(*DeviceSpec::parse("memory:")));
  auto* const memory = static_cast<MemoryDevice*>(device.get());
  const auto port = cluster_.node().add_port("new", std::move(device));
  ASSERT_TRUE(port) << port.error().message;
  memory->inject(from_to(end(0), stranger()).udp(1, 2).bytes());
  while (cluster_.node().poll_once() != 0) {
  }
  EXPECT_EQ(cluster_.drops(), "firewall_port_unknown");
  cluster_.relabel();  // it is told of the ports there are
  memory->inject(from_to(end(0), stranger()).udp(1, 2).bytes());
  while (cluster_.node().poll_once() != 0) {
  }
  EXPECT_EQ(cluster_.service().state()["behind_ports"], 10);
}

}  // namespace
}  // namespace weir
