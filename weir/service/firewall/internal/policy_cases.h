#pragma once
// For tests: a cluster of three namespaces with three pods each, and policies about it in great variety.

#include <random>

#include <weir/service/firewall/internal/policy_oracle.h>

namespace weir::oracle {

/// Namespaces x, y, z; pods a, b, c in each: x/a has 10.0.1.1, y/b 10.0.2.2. All serve 80 and 81, which a and b have
/// names for: `http` is 80 in a and 81 in b, `dns` is 81 of UDP in a, and of UDP and TCP in b; c has none.
inline World three_by_three() {
  World world;
  int in = 0;
  for (const std::string name : {"x", "y", "z"}) {
    world.namespaces[name] = {{"ns", name}, {"tier", name == "z" ? "back" : "front"}};
    ++in;
    int number = 0;
    for (const std::string pod : {"a", "b", "c"}) {
      ++number;
      Pod made{name, pod, {{"pod", pod}}, "10.0." + std::to_string(in) + "." + std::to_string(number), {}};
      if (pod != "c") {
        made.labels["app"] = "web";
        made.ports.push_back({"http", "TCP", pod == "a" ? 80 : 81});
        made.ports.push_back({"dns", "UDP", 81});
        made.ports.push_back({"sig", "SCTP", 80});
      }
      if (pod == "b") {
        made.ports.push_back({"dns", "TCP", 80});
      }
      world.pods.push_back(made);
    }
  }
  return world;
}

inline const std::vector<Connection>& connections() {
  static const std::vector<Connection> all{{"TCP", 80},  {"TCP", 81},  {"UDP", 80}, {"UDP", 81},
                                           {"SCTP", 80}, {"SCTP", 81}, {"ICMP", 0}};
  return all;
}

/// Addresses of nobody in the cluster.
inline const std::vector<std::string>& strangers() {
  static const std::vector<std::string> all{"10.0.1.77", "192.0.2.1"};
  return all;
}

inline Object network_policy(const std::string& in, const std::string& name, Object spec) {
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", {{"name", name}, {"namespace", in}}},
          {"spec", std::move(spec)}};
}

/// A baseline policy has no name of its own.
inline Object admin_policy(const std::string& name, int priority, Object spec) {
  const bool baseline = name == "default";
  if (!baseline) {
    spec["priority"] = priority;
  }
  return {{"apiVersion", "policy.networking.k8s.io/v1alpha1"},
          {"kind", baseline ? "BaselineAdminNetworkPolicy" : "AdminNetworkPolicy"},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

/// JSON text as an object; fails the test program if it is none.
inline Object parsed(const std::string& text) { return Object::parse(text); }

/// Lists of peers of a NetworkPolicy's rule; null: without one.
inline const std::vector<Object>& peer_lists() {
  static const std::vector<Object> all = [] {
    std::vector<Object> lists;
    for (
        const char* text : {
            "null",
            "[]",
            R"([{"podSelector": {}}])",
            R"([{"podSelector": {"matchLabels": {"pod": "a"}}}])",
            R"([{"podSelector": {"matchLabels": {"pod": "none"}}}])",
            R"([{"podSelector": {"matchExpressions": [{"key": "pod", "operator": "In", "values": ["a", "c"]}]}}])",
            R"([{"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}])",
            R"([{"podSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}])",
            R"([{"podSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}])",
            R"([{"namespaceSelector": {}}])",
            R"([{"namespaceSelector": {"matchLabels": {"ns": "y"}}}])",
            R"([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "z"}}}])",
            R"([{"namespaceSelector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]}}])",
            R"([{"namespaceSelector": {"matchLabels": {"ns": "y"}}, "podSelector": {"matchLabels": {"pod": "b"}}}])",
            R"([{"namespaceSelector": {}, "podSelector": {"matchLabels": {"pod": "b"}}}])",
            R"([{"namespaceSelector": {"matchLabels": {"ns": "y"}}}, {"podSelector": {"matchLabels": {"pod": "b"}}}])",
            R"([{"ipBlock": {"cidr": "0.0.0.0/0"}}])",
            R"([{"ipBlock": {"cidr": "10.0.2.0/24"}}])",
            R"([{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.2.0/24", "10.0.1.77/32"]}}])",
            R"([{"ipBlock": {"cidr": "10.0.2.2/32"}}, {"podSelector": {"matchLabels": {"pod": "a"}}}])",
            R"([{"ipBlock": {"cidr": "10.0.1.9/24", "except": []}}])",
        }) {
      lists.push_back(parsed(text));
    }
    return lists;
  }();
  return all;
}

/// Lists of ports of a NetworkPolicy's rule; null: without one.
inline const std::vector<Object>& port_lists() {
  static const std::vector<Object> all = [] {
    std::vector<Object> lists;
    for (const char* text : {
             "null",
             "[]",
             R"([{}])",
             R"([{"port": 80}])",
             R"([{"port": 81, "protocol": "UDP"}])",
             R"([{"protocol": "SCTP"}])",
             R"([{"port": 80, "endPort": 81, "protocol": "UDP"}])",
             R"([{"port": 70, "endPort": 80}, {"port": 81, "endPort": 90, "protocol": "SCTP"}])",
             R"([{"port": "http"}])",
             R"([{"port": "dns", "protocol": "UDP"}])",
             R"([{"port": "dns"}])",
             R"([{"port": "sig", "protocol": "SCTP"}, {"port": "missing"}])",
             R"([{"port": "missing", "protocol": "UDP"}])",
         }) {
      lists.push_back(parsed(text));
    }
    return lists;
  }();
  return all;
}

inline const std::vector<Object>& selectors() {
  static const std::vector<Object> all{
      parsed("{}"), parsed(R"({"matchLabels": {"pod": "a"}})"),
      parsed(R"({"matchExpressions": [{"key": "pod", "operator": "NotIn", "values": ["b"]}]})"),
      parsed(R"({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "pod", "operator": "Exists"}]})")};
  return all;
}

inline const std::vector<Object>& namespace_selectors() {
  static const std::vector<Object> all{
      parsed("{}"), parsed(R"({"matchLabels": {"ns": "x"}})"), parsed(R"({"matchLabels": {"tier": "front"}})"),
      parsed(
          R"({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["y", "z"]}]})")};
  return all;
}

/// Lists of peers of an admin policy's rule; the last two are for egress only.
inline const std::vector<Object>& admin_peer_lists() {
  static const std::vector<Object> all = [] {
    std::vector<Object> lists;
    for (const char* text : {
             R"([{"namespaces": {}}])",
             R"([{"namespaces": {"matchLabels": {"ns": "y"}}}])",
             R"([{"pods": {"namespaceSelector": {}, "podSelector": {"matchLabels": {"pod": "a"}}}}])",
             R"([{"pods": {"namespaceSelector": {"matchLabels": {"tier": "back"}}, "podSelector": {}}}])",
             R"([{"namespaces": {"matchLabels": {"ns": "none"}}}, {"pods": {"namespaceSelector": {"matchLabels":
                 {"ns": "x"}}, "podSelector": {"matchLabels": {"pod": "b"}}}}])",
             R"([{"networks": ["10.0.2.0/24", "192.0.2.0/24"]}])",
             R"([{"networks": ["0.0.0.0/0"]}])",
         }) {
      lists.push_back(parsed(text));
    }
    return lists;
  }();
  return all;
}

inline const std::vector<Object>& admin_port_lists() {
  static const std::vector<Object> all = [] {
    std::vector<Object> lists;
    for (const char* text : {
             "null",
             R"([{"portNumber": {"protocol": "TCP", "port": 80}}])",
             R"([{"portNumber": {"protocol": "UDP", "port": 81}}, {"portNumber": {"port": 81}}])",
             R"([{"portRange": {"protocol": "SCTP", "start": 80, "end": 81}}])",
             R"([{"namedPort": "dns"}])",
             R"([{"namedPort": "missing"}])",
         }) {
      lists.push_back(parsed(text));
    }
    return lists;
  }();
  return all;
}

/// A rule of the parts that are not null.
inline Object rule_of(bool ingress, const Object& peers, const Object& ports) {
  Object rule = Object::object();
  if (!peers.is_null()) {
    rule[ingress ? "from" : "to"] = peers;
  }
  if (!ports.is_null()) {
    rule["ports"] = ports;
  }
  return rule;
}

/// Random policies; the same for the same seed.
class RandomPolicies {
 public:
  explicit RandomPolicies(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  Object network(const std::string& name) {
    const std::vector<std::string> namespaces{"x", "y", "z"};
    Object spec{{"podSelector", one_of(selectors())}};
    const std::vector<Object> types{nullptr, parsed("[]"), parsed(R"(["Ingress"])"), parsed(R"(["Egress"])"),
                                    parsed(R"(["Ingress", "Egress"])")};
    if (const Object& chosen = one_of(types); !chosen.is_null()) {
      spec["policyTypes"] = chosen;
    }
    for (const bool ingress : {true, false}) {
      if (below(4) == 0) {
        continue;
      }
      Object rules = Object::array();
      for (std::size_t i = below(3); i > 0; --i) {
        rules.push_back(rule_of(ingress, one_of(peer_lists()), one_of(port_lists())));
      }
      spec[ingress ? "ingress" : "egress"] = rules;
    }
    return network_policy(one_of(namespaces), name, std::move(spec));
  }

  Object admin(const std::string& name) {
    Object subject =
        below(2) == 0
            ? Object{{"namespaces", one_of(namespace_selectors())}}
            : Object{{"pods",
                      {{"namespaceSelector", one_of(namespace_selectors())}, {"podSelector", one_of(selectors())}}}};
    Object spec{{"subject", subject}};
    for (const bool ingress : {true, false}) {
      Object rules = Object::array();
      for (std::size_t i = below(4); i > 0; --i) {
        const std::size_t peers = below(admin_peer_lists().size() - (ingress ? 2 : 0));
        Object rule = rule_of(ingress, admin_peer_lists()[peers], one_of(admin_port_lists()));
        rule["action"] = one_of(std::vector<std::string>{"Allow", "Deny", name == "default" ? "Deny" : "Pass"});
        rules.push_back(rule);
      }
      spec[ingress ? "ingress" : "egress"] = rules;
    }
    return admin_policy(name, static_cast<int>(below(5)), std::move(spec));
  }

  /// One that may take the place of another: there are few names.
  Object any() {
    const std::size_t kind = below(10);
    const std::string name = "p" + std::to_string(below(5));
    return kind < 6 ? network(name) : kind < 9 ? admin(name) : admin("default");
  }

 private:
  std::mt19937_64 random_;
};

/// Policies in all combinations of peers with ports, of both directions, with other subjects in turn; of policyTypes
/// with rules; and of tiers.
inline std::vector<std::vector<Object>> all_cases() {
  std::vector<std::vector<Object>> cases;
  const std::vector<std::string> namespaces{"x", "y", "z"};
  std::size_t turn = 0;
  for (const bool ingress : {true, false}) {
    const char* const key = ingress ? "ingress" : "egress";
    const Object types = Object::array({ingress ? "Ingress" : "Egress"});
    for (const Object& peers : peer_lists()) {
      for (const Object& ports : port_lists()) {
        ++turn;
        cases.push_back({network_policy(namespaces[turn % 3], "p",
                                        {{"podSelector", selectors()[turn % selectors().size()]},
                                         {"policyTypes", types},
                                         {key, Object::array({rule_of(ingress, peers, ports)})}})});
      }
    }
    for (const Object& peers : admin_peer_lists()) {
      if (ingress && peers[0].contains("networks")) {
        continue;
      }
      for (const Object& ports : admin_port_lists()) {
        for (const std::string action : {"Allow", "Deny", "Pass"}) {
          ++turn;
          Object rule = rule_of(ingress, peers, ports);
          rule["action"] = action;
          const Object subject{{"namespaces", namespace_selectors()[turn % namespace_selectors().size()]}};
          const Object admin = admin_policy("first", 10, {{"subject", subject}, {key, Object::array({rule})}});
          Object denial{{"action", "Deny"}, {ingress ? "from" : "to", parsed(R"([{"namespaces": {}}])")}};
          const Object everyone = parsed(R"({"namespaces": {}})");
          const Object second = admin_policy("second", 20, {{"subject", everyone}, {key, Object::array({denial})}});
          const Object baseline = admin_policy("default", 0, {{"subject", everyone}, {key, Object::array({denial})}});
          const Object isolation =
              network_policy("x", "isolation",
                             {{"podSelector", parsed(R"({"matchLabels":
              {"pod": "a"}})")},
                              {"policyTypes", types},
                              {key, Object::array({rule_of(ingress, peer_lists()[9], port_lists()[3])})}});
          cases.push_back({admin, turn % 2 == 0 ? second : baseline, isolation});
          cases.push_back({admin, baseline});
          if (action != "Pass") {
            Object spec = admin.at("spec");
            spec.erase("priority");
            cases.push_back({admin_policy("default", 0, spec), isolation});
          }
        }
      }
    }
  }
  const std::vector<Object> types{nullptr, parsed("[]"), parsed(R"(["Ingress"])"), parsed(R"(["Egress"])"),
                                  parsed(R"(["Egress", "Ingress"])")};
  const std::vector<Object> rules{nullptr, parsed("[]"), parsed("[{}]"), parsed(R"([{"ports": [{"port": 80}]}])")};
  for (const Object& type : types) {
    for (const Object& in : rules) {
      for (const Object& out : rules) {
        Object spec{{"podSelector", selectors()[++turn % selectors().size()]}};
        for (const auto& [key, value] : {std::pair{"policyTypes", type}, {"ingress", in}, {"egress", out}}) {
          if (!value.is_null()) {
            spec[key] = value;
          }
        }
        cases.push_back({network_policy("y", "types", std::move(spec))});
      }
    }
  }
  return cases;
}

}  // namespace weir::oracle
