// What policies decide, for every pair of nine pods, against what Kubernetes says (internal/policy_oracle.h).

#include <gtest/gtest.h>

#include <weir/packet/ipv4.h>
#include <weir/service/firewall/internal/policy_cases.h>
#include <weir/service/firewall/policy_model.h>

namespace weir {
namespace {

using oracle::Connection;
using oracle::Object;
using oracle::World;

std::uint8_t number_of(const std::string& protocol) {
  return protocol == "TCP"    ? ip_protocol::tcp
         : protocol == "UDP"  ? ip_protocol::udp
         : protocol == "SCTP" ? ip_protocol::sctp
                              : ip_protocol::icmp;
}

/// A world, and the model of it, changed together.
class Cluster {
 public:
  explicit Cluster(World world) : world_(std::move(world)), model_(names_) { relabel(); }

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] PolicyModel& model() { return model_; }

  /// The model has the world's pods and namespaces.
  PolicyModel::Draft relabel() {
    Endpoints endpoints{.namespaces = world_.namespaces, .entries = {}};
    for (const oracle::Pod& pod : world_.pods) {
      EndpointEntry entry{
          .key = {pod.in, pod.name}, .labels = pod.labels, .addresses = {*IpAddress::parse(pod.address)}};
      for (const oracle::Port& port : pod.ports) {
        entry.ports.push_back(
            {names_.id(port.name), number_of(port.protocol), static_cast<std::uint16_t>(port.number)});
      }
      endpoints.entries.push_back(std::move(entry));
    }
    return change({.endpoints = std::move(endpoints)});
  }

  PolicyModel::Draft set(const Object& policy) {
    remove_from_world(policy);
    world_.policies.push_back(policy);
    return change({.policies = read(policy)});
  }

  PolicyModel::Draft remove(const Object& policy) {
    remove_from_world(policy);
    return change({.removed = {read(policy)[0].policy->key}});
  }

  std::vector<ReadPolicy> read(const Object& policy) {
    const auto documents = Config::parse_documents(policy.dump(1), "p.yaml");
    EXPECT_TRUE(documents) << documents.error().message;
    auto policies = read_policies(*documents, names_);
    EXPECT_TRUE(policies) << policies.error().message;
    return policies ? std::move(*policies) : std::vector<ReadPolicy>();
  }

  [[nodiscard]] Decision decides(Direction direction, const oracle::Pod& pod, const oracle::Pod* peer,
                                 const std::string& address, const Connection& connection) const {
    const PolicyModel::Endpoint& guarded = *model_.find(EndpointKey{pod.in, pod.name});
    const PolicyModel::Endpoint* other = model_.find(*IpAddress::parse(address));
    EXPECT_EQ(other != nullptr, peer != nullptr);
    Traffic traffic{.peer = *IpAddress::parse(address), .protocol = number_of(connection.protocol)};
    if (connection.protocol != "ICMP") {
      traffic.port = static_cast<std::uint16_t>(connection.port);
    }
    return decide(direction, *guarded.identity, *guarded.policies, traffic,
                  other == nullptr ? nullptr : other->identity.get());
  }

  /// All that differs, a line each; the first few.
  [[nodiscard]] std::string differences() const {
    std::string text;
    int lines = 0;
    const auto compare = [&](const oracle::Pod& pod, const oracle::Pod* peer, const std::string& address) {
      for (const Connection& connection : oracle::connections()) {
        for (const Direction direction : both_directions) {
          const bool wanted = oracle::allowed(world_, direction == Direction::ingress, pod, peer, address, connection);
          const Decision found = decides(direction, pod, peer, address, connection);
          if (wanted != found.allowed && ++lines < 10) {
            text += fmt::format("{} of {}/{} with {}, {} {}: {}, not {}\n", direction_name(direction), pod.in, pod.name,
                                address, connection.protocol, connection.port, found.allowed, wanted);
          }
        }
      }
    };
    for (const oracle::Pod& pod : world_.pods) {
      for (const oracle::Pod& peer : world_.pods) {
        compare(pod, &peer, peer.address);
      }
      for (const std::string& stranger : oracle::strangers()) {
        compare(pod, nullptr, stranger);
      }
    }
    return text;
  }

  [[nodiscard]] std::string policies_text() const { return Object(world_.policies).dump(1); }

 private:
  PolicyModel::Draft change(PolicyModel::Change change) {
    PolicyModel::Draft draft = model_.draft(std::move(change));
    model_.commit(draft);
    return draft;
  }

  void remove_from_world(const Object& policy) {
    std::erase_if(world_.policies, [&](const Object& other) {
      return other.at("kind") == policy.at("kind") &&
             other.at("metadata").at("name") == policy.at("metadata").at("name") &&
             other.at("metadata").value("namespace", "") == policy.at("metadata").value("namespace", "");
    });
  }

  Names names_;
  World world_;
  PolicyModel model_;
};

// ---- The oracle's own tests: cases of which the answer is written here ----

struct Known {
  const char* description;
  const char* policies;  ///< a list
  const char* allowed;   ///< of x/a, with TCP to port 80: "<b" it may be reached by x/b, ">y/c" it may reach y/c
};

class KnownCase : public testing::TestWithParam<Known> {};

constexpr const char* all_in = "<b <c <y/a <y/b <y/c <z/a <z/b <z/c <192.0.2.1";
constexpr const char* all_out = ">b >c >y/a >y/b >y/c >z/a >z/b >z/c >192.0.2.1";
constexpr const char* everything =
    "<b <c <y/a <y/b <y/c <z/a <z/b <z/c <192.0.2.1 >b >c >y/a >y/b >y/c >z/a >z/b >z/c >192.0.2.1";

std::string allowed_text(const auto& is_allowed) {
  std::string text;
  for (const bool ingress : {true, false}) {
    for (const char* peer : {"x/b", "x/c", "y/a", "y/b", "y/c", "z/a", "z/b", "z/c", "192.0.2.1"}) {
      if (is_allowed(ingress, std::string(peer))) {
        text += fmt::format("{}{}{}", text.empty() ? "" : " ", ingress ? '<' : '>', peer[0] == 'x' ? peer + 2 : peer);
      }
    }
  }
  return text;
}

TEST_P(KnownCase, IsDecidedSoByBoth) {
  Cluster cluster(oracle::three_by_three());
  for (const Object& policy : oracle::parsed(GetParam().policies)) {
    cluster.set(policy);
  }
  const oracle::Pod& guarded = cluster.world().pods[0];
  const auto ask = [&](const std::string& name, auto answer) {
    for (const oracle::Pod& pod : cluster.world().pods) {
      if (pod.in + "/" + pod.name == name) {
        return answer(&pod, pod.address);
      }
    }
    return answer(static_cast<const oracle::Pod*>(nullptr), name);
  };
  EXPECT_EQ(allowed_text([&](bool ingress, const std::string& name) {
              return ask(name, [&](const oracle::Pod* peer, const std::string& address) {
                return oracle::allowed(cluster.world(), ingress, guarded, peer, address, {"TCP", 80});
              });
            }),
            GetParam().allowed)
      << "the oracle";
  EXPECT_EQ(allowed_text([&](bool ingress, const std::string& name) {
              return ask(name, [&](const oracle::Pod* peer, const std::string& address) {
                return cluster
                    .decides(ingress ? Direction::ingress : Direction::egress, guarded, peer, address, {"TCP", 80})
                    .allowed;
              });
            }),
            GetParam().allowed);
}

#define NETWORK(SPEC)                                                                                                              \
  R"([{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p", "namespace": "x"}, "spec": )" SPEC \
  "}]"
#define ADMIN(SPEC)                                                                                                                \
  R"([{"apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "AdminNetworkPolicy", "metadata": {"name": "p"}, "spec": )" SPEC \
  "}]"

INSTANTIATE_TEST_SUITE_P(
    Policies, KnownCase,
    testing::Values(
        Known{"no policy", "[]", everything},
        Known{"an empty one denies all that comes in", NETWORK(R"({"podSelector": {}})"), all_out},
        Known{"egress alone", NETWORK(R"({"podSelector": {}, "policyTypes": ["Egress"]})"), all_in},
        Known{"egress: [] is none", NETWORK(R"({"podSelector": {}, "egress": []})"), all_out},
        Known{"egress rules count without policyTypes",
              NETWORK(R"({"podSelector": {}, "egress": [{"to": [{"podSelector": {}}]}]})"), ">b >c"},
        Known{
            "ingress rules count for nothing under policyTypes Egress",
            NETWORK(R"({"podSelector": {}, "policyTypes": ["Egress"], "ingress": [{"from": [{"podSelector": {}}]}]})"),
            all_in},
        Known{"of another pod", NETWORK(R"({"podSelector": {"matchLabels": {"pod": "b"}}})"), everything},
        Known{"from: [] is from everyone", NETWORK(R"({"podSelector": {}, "ingress": [{"from": []}]})"), everything},
        Known{"an empty pod selector is the own namespace",
              NETWORK(R"({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]})"),
              "<b <c >b >c >y/a >y/b >y/c >z/a >z/b >z/c >192.0.2.1"},
        Known{
            "an empty namespace selector is all pods, and no stranger",
            NETWORK(
                R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [{"namespaceSelector": {}}]}]})"),
            "<b <c <y/a <y/b <y/c <z/a <z/b <z/c"},
        Known{"both selectors together",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from":
              [{"namespaceSelector": {"matchLabels": {"ns": "y"}}, "podSelector": {"matchLabels": {"pod": "b"}}}]}]})"),
              "<y/b"},
        Known{"one or the other",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from":
              [{"namespaceSelector": {"matchLabels": {"ns": "y"}}}, {"podSelector": {"matchLabels": {"pod": "b"}}}]}]})"),
              "<b <y/a <y/b <y/c"},
        Known{"addresses with an exception",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{"to":
              [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.2.0/24"]}}]}]})"),
              ">b >c >z/a >z/b >z/c"},
        Known{"an exception takes nothing from another peer",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{"to":
              [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.2.0/24"]}}, {"ipBlock": {"cidr": "10.0.2.2/32"}}]}]})"),
              ">b >c >y/b >z/a >z/b >z/c"},
        Known{"a name that the destination does not have",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress":
              [{"ports": [{"port": "missing"}]}]})"),
              ""},
        Known{"a name is the destination's: going out, 80 is http at a only",
              NETWORK(R"({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress":
              [{"ports": [{"port": "http"}]}]})"),
              ">y/a >z/a"},
        Known{"an admin policy denies, others it does not know",
              ADMIN(R"({"priority": 1, "subject": {"namespaces": {}}, "ingress":
              [{"action": "Allow", "from": [{"namespaces": {"matchLabels": {"ns": "x"}}}]}, {"action": "Deny", "from": [{"namespaces": {}}]}]})"),
              "<b <c <192.0.2.1 >b >c >y/a >y/b >y/c >z/a >z/b >z/c >192.0.2.1"},
        Known{"networks hold pods as well", ADMIN(R"({"priority": 1, "subject": {"namespaces": {}}, "egress":
              [{"action": "Deny", "to": [{"networks": ["10.0.0.0/8"]}]}]})"),
              "<b <c <y/a <y/b <y/c <z/a <z/b <z/c <192.0.2.1 >192.0.2.1"}));

// ---- Against the oracle ----

TEST(PolicySemantics, AllCombinations) {
  const auto cases = oracle::all_cases();
  EXPECT_GE(cases.size(), 200U);
  Cluster cluster(oracle::three_by_three());
  for (const std::vector<Object>& policies : cases) {
    for (const Object& policy : policies) {
      cluster.set(policy);
    }
    ASSERT_EQ(cluster.differences(), "") << cluster.policies_text();
    for (const Object& policy : policies) {
      cluster.remove(policy);
    }
  }
  EXPECT_EQ(cluster.differences(), "") << "something was left behind";
  EXPECT_TRUE(cluster.model().policies().empty());
}

TEST(PolicySemantics, RandomPoliciesAndLabelsWhileTheyChange) {
  constexpr std::uint64_t seeds = 60;
  constexpr int steps = 12;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    oracle::RandomPolicies random(seed);
    Cluster cluster(oracle::three_by_three());
    World& world = cluster.world();
    for (int step = 0; step < steps; ++step) {
      switch (random.below(6)) {
        case 0:
          if (!world.policies.empty()) {
            cluster.remove(Object(random.one_of(world.policies)));
          }
          break;
        case 1: {
          oracle::Pod& pod = world.pods[random.below(world.pods.size())];
          pod.labels["pod"] = random.one_of(std::vector<std::string>{"a", "b", "c"});
          random.below(2) == 0 ? static_cast<void>(pod.labels.erase("app"))
                               : static_cast<void>(pod.labels["app"] = "web");
          cluster.relabel();
          break;
        }
        case 2:
          world.namespaces[random.one_of(std::vector<std::string>{"x", "y", "z"})]["tier"] =
              random.one_of(std::vector<std::string>{"front", "back"});
          cluster.relabel();
          break;
        default:
          cluster.set(random.any());
          break;
      }
      ASSERT_EQ(cluster.differences(), "") << "seed " << seed << ", step " << step << "\n" << cluster.policies_text();
    }
  }
}

// ---- What a change touches ----

std::vector<std::string> touched(const PolicyModel::Draft& draft) {
  std::vector<std::string> keys;
  for (const auto& [key, endpoint] : draft.endpoints) {
    keys.push_back(key.to_string());
  }
  return keys;
}

TEST(PolicyModel, AChangeTouchesWhomItIsAbout) {
  Cluster cluster(oracle::three_by_three());
  const Object of_a = oracle::network_policy("x", "p", {{"podSelector", {{"matchLabels", {{"pod", "a"}}}}}});
  EXPECT_EQ(touched(cluster.set(of_a)), (std::vector<std::string>{"x/a"}));
  EXPECT_EQ(touched(cluster.set(of_a)), std::vector<std::string>()) << "nothing new";
  const Object of_b = oracle::network_policy("x", "p", {{"podSelector", {{"matchLabels", {{"pod", "b"}}}}}});
  EXPECT_EQ(touched(cluster.set(of_b)), (std::vector<std::string>{"x/a", "x/b"}));
  EXPECT_EQ(touched(cluster.remove(of_b)), (std::vector<std::string>{"x/b"}));
  cluster.world().pods[4].labels["more"] = "yes";
  EXPECT_EQ(touched(cluster.relabel()), (std::vector<std::string>{"y/b"}));
  cluster.world().namespaces["z"]["more"] = "yes";
  EXPECT_EQ(touched(cluster.relabel()), (std::vector<std::string>{"z/a", "z/b", "z/c"}));
}

TEST(PolicyModel, APolicyDoesNotChangeWhoItsEndpointsAre) {
  Cluster cluster(oracle::three_by_three());
  const IdentityPtr before = cluster.model().find(EndpointKey{"x", "a"})->identity;
  cluster.set(oracle::network_policy("x", "p", {{"podSelector", Object::object()}}));
  EXPECT_EQ(cluster.model().find(EndpointKey{"x", "a"})->identity, before);
}

TEST(PolicyModel, EndpointsWithTheSamePoliciesShareAList) {
  Cluster cluster(oracle::three_by_three());
  cluster.set(oracle::network_policy("x", "p", {{"podSelector", Object::object()}}));
  cluster.set(oracle::network_policy("x", "q", {{"podSelector", Object::object()}}));
  EXPECT_EQ(cluster.model().find(EndpointKey{"x", "a"})->policies,
            cluster.model().find(EndpointKey{"x", "c"})->policies);
}

TEST(PolicyModel, ADraftChangesNothing) {
  Cluster cluster(oracle::three_by_three());
  const Object policy = oracle::network_policy("x", "p", {{"podSelector", Object::object()}});
  const auto draft = cluster.model().draft({.policies = cluster.read(policy)});
  EXPECT_EQ(touched(draft).size(), 3U);
  EXPECT_TRUE(cluster.model().policies().empty());
  EXPECT_EQ(cluster.differences(), "");
}

TEST(PolicyModel, AnAddressMayMoveToAnotherEndpoint) {
  Cluster cluster(oracle::three_by_three());
  std::swap(cluster.world().pods[0].address, cluster.world().pods[8].address);
  EXPECT_EQ(touched(cluster.relabel()), (std::vector<std::string>{"x/a", "z/c"}));
  EXPECT_EQ(cluster.differences(), "");
  EXPECT_EQ(cluster.model().find(*IpAddress::parse("10.0.1.1"))->entry->key.to_string(), "z/c");
}

TEST(Decide, Ipv6BlocksAndWhoDecided) {
  Cluster cluster(oracle::three_by_three());
  cluster.set(oracle::network_policy(
      "x", "v6",
      oracle::parsed(R"({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"pod": "z"}}}]},
          {"from": [{"ipBlock": {"cidr": "2001:db8::/32", "except": ["2001:db8:1::/48"]}}]}]})")));
  const PolicyModel::Endpoint& endpoint = *cluster.model().find(EndpointKey{"x", "a"});
  const auto from = [&](const char* address) {
    return decide(Direction::ingress, *endpoint.identity, *endpoint.policies,
                  {.peer = *IpAddress::parse(address), .protocol = ip_protocol::udp, .port = std::uint16_t{53}},
                  nullptr);
  };
  const Decision allowed = from("2001:db8::1");
  EXPECT_TRUE(allowed.allowed);
  EXPECT_EQ(allowed.by, Decision::By::rule);
  EXPECT_EQ(allowed.policy->key.to_string(), "NetworkPolicy x/v6");
  EXPECT_EQ(allowed.rule, 1U);
  const Decision denied = from("2001:db8:1::1");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.by, Decision::By::isolation);
  EXPECT_EQ(denied.policy->key.name, "v6");
  EXPECT_FALSE(from("10.0.1.2").allowed) << "an address of IPv4 is in no block of IPv6";
}

}  // namespace
}  // namespace weir
