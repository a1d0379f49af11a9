#pragma once
// For tests: what Kubernetes says that policies allow, worked out from the objects as they are written, one rule after
// the other. Shares nothing with the code that it checks, not even the reader: the objects are JSON here.

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weir::oracle {

using Object = nlohmann::json;
using Words = std::map<std::string, std::string>;

struct Port {
  std::string name;
  std::string protocol;
  int number;
};

struct Pod {
  std::string in;  ///< its namespace
  std::string name;
  Words labels;
  std::string address;  ///< of IPv4
  std::vector<Port> ports;
};

struct World {
  std::map<std::string, Words> namespaces;  ///< without kubernetes.io/metadata.name
  std::vector<Pod> pods;
  std::vector<Object> policies;
};

/// Protocol "ICMP" has no port.
struct Connection {
  std::string protocol;
  int port;
};

inline const Object* part(const Object& object, const char* key) {
  const auto place = object.find(key);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

inline bool selected(const Object& selector, const Words& labels) {
  if (const Object* wanted = part(selector, "matchLabels")) {
    for (const auto& [key, value] : wanted->items()) {
      if (!labels.contains(key) || labels.at(key) != value.get<std::string>()) {
        return false;
      }
    }
  }
  if (const Object* expressions = part(selector, "matchExpressions")) {
    for (const Object& each : *expressions) {
      const std::string key = each.at("key");
      const std::string op = each.at("operator");
      const bool there = labels.contains(key);
      bool in = false;
      if (there && part(each, "values") != nullptr) {
        for (const Object& value : each.at("values")) {
          in = in || labels.at(key) == value.get<std::string>();
        }
      }
      if ((op == "In" && !in) || (op == "NotIn" && in) || (op == "Exists" && !there) ||
          (op == "DoesNotExist" && there)) {
        return false;
      }
    }
  }
  return true;
}

inline Words namespace_labels(const World& world, const std::string& name) {
  Words labels = world.namespaces.contains(name) ? world.namespaces.at(name) : Words();
  labels["kubernetes.io/metadata.name"] = name;
  return labels;
}

inline bool inside(const std::string& block, const std::string& address) {
  unsigned a[4], b[4], length = 0;
  std::sscanf(block.c_str(), "%u.%u.%u.%u/%u", a, a + 1, a + 2, a + 3, &length);
  std::sscanf(address.c_str(), "%u.%u.%u.%u", b, b + 1, b + 2, b + 3);
  for (unsigned bit = 0; bit < length; ++bit) {
    if (((a[bit / 8] >> (7 - bit % 8)) & 1U) != ((b[bit / 8] >> (7 - bit % 8)) & 1U)) {
      return false;
    }
  }
  return true;
}

inline bool named(const Pod* at, const std::string& name, const std::string& protocol, int number) {
  return at != nullptr && std::ranges::any_of(at->ports, [&](const Port& port) {
           return port.name == name && port.protocol == protocol && port.number == number;
         });
}

inline bool port_matches(const Object& port, const Connection& connection, const Pod* destination) {
  if (const Object* named_port = part(port, "namedPort")) {
    return named(destination, *named_port, connection.protocol, connection.port);
  }
  if (const Object* one = part(port, "portNumber")) {
    return one->value("protocol", "TCP") == connection.protocol && one->at("port") == connection.port;
  }
  if (const Object* range = part(port, "portRange")) {
    return range->value("protocol", "TCP") == connection.protocol && connection.port >= range->at("start").get<int>() &&
           connection.port <= range->at("end").get<int>();
  }
  if (port.value("protocol", "TCP") != connection.protocol) {
    return false;
  }
  const Object* number = part(port, "port");
  if (number == nullptr) {
    return true;
  }
  if (number->is_string()) {
    return named(destination, *number, connection.protocol, connection.port);
  }
  const Object* end = part(port, "endPort");
  const int last = end == nullptr ? number->get<int>() : end->get<int>();
  return connection.port >= number->get<int>() && connection.port <= last;
}

inline bool peer_matches(const World& world, const Object& peer, const std::string& policy_namespace, const Pod* pod,
                         const std::string& address) {
  if (const Object* block = part(peer, "ipBlock")) {
    bool in = inside(block->at("cidr"), address);
    if (const Object* except = part(*block, "except")) {
      for (const Object& each : *except) {
        in = in && !inside(each, address);
      }
    }
    return in;
  }
  if (const Object* networks = part(peer, "networks")) {
    return std::ranges::any_of(*networks, [&](const Object& each) { return inside(each, address); });
  }
  if (pod == nullptr) {
    return false;
  }
  const Words of_namespace = namespace_labels(world, pod->in);
  if (const Object* namespaces = part(peer, "namespaces")) {
    return selected(*namespaces, of_namespace);
  }
  if (const Object* pods = part(peer, "pods")) {
    return selected(pods->at("namespaceSelector"), of_namespace) && selected(pods->at("podSelector"), pod->labels);
  }
  const Object* in = part(peer, "namespaceSelector");
  const Object* which = part(peer, "podSelector");
  return (in == nullptr ? pod->in == policy_namespace : selected(*in, of_namespace)) &&
         (which == nullptr || selected(*which, pod->labels));
}

inline bool rule_matches(const World& world, const Object& rule, bool ingress, const std::string& policy_namespace,
                         const Pod& pod, const Pod* peer, const std::string& address, const Connection& connection) {
  const Object* ports = part(rule, "ports");
  const Pod* destination = ingress ? &pod : peer;
  if (ports != nullptr && !ports->empty() &&
      std::ranges::none_of(*ports, [&](const Object& port) { return port_matches(port, connection, destination); })) {
    return false;
  }
  const Object* peers = part(rule, ingress ? "from" : "to");
  return peers == nullptr || peers->empty() || std::ranges::any_of(*peers, [&](const Object& each) {
           return peer_matches(world, each, policy_namespace, peer, address);
         });
}

/// What the first rule that matches says: "Allow", "Deny", "Pass", or nothing if none does.
inline std::string first_action(const World& world, const Object& policy, bool ingress, const Pod& pod, const Pod* peer,
                                const std::string& address, const Connection& connection) {
  const Object& spec = policy.at("spec");
  const Object& subject = spec.at("subject");
  const Words of_namespace = namespace_labels(world, pod.in);
  const bool about = part(subject, "namespaces") != nullptr
                         ? selected(subject.at("namespaces"), of_namespace)
                         : selected(subject.at("pods").at("namespaceSelector"), of_namespace) &&
                               selected(subject.at("pods").at("podSelector"), pod.labels);
  const Object* rules = part(spec, ingress ? "ingress" : "egress");
  if (about && rules != nullptr) {
    for (const Object& rule : *rules) {
      if (rule_matches(world, rule, ingress, "", pod, peer, address, connection)) {
        return rule.at("action");
      }
    }
  }
  return "";
}

/// What `pod` itself may have, with whoever has `address`; `peer` is nullptr if that is no pod.
inline bool allowed(const World& world, bool ingress, const Pod& pod, const Pod* peer, const std::string& address,
                    const Connection& connection) {
  if (peer != nullptr && peer->in == pod.in && peer->name == pod.name) {
    return true;
  }
  std::vector<const Object*> admin;
  const Object* baseline = nullptr;
  for (const Object& policy : world.policies) {
    if (policy.at("kind") == "AdminNetworkPolicy") {
      admin.push_back(&policy);
    } else if (policy.at("kind") == "BaselineAdminNetworkPolicy") {
      baseline = &policy;
    }
  }
  std::ranges::sort(admin, [](const Object* a, const Object* b) {
    const int first = a->at("spec").at("priority");
    const int second = b->at("spec").at("priority");
    return first != second ? first < second : a->at("metadata").at("name") < b->at("metadata").at("name");
  });
  for (const Object* policy : admin) {
    const std::string action = first_action(world, *policy, ingress, pod, peer, address, connection);
    if (action == "Pass") {
      break;
    }
    if (!action.empty()) {
      return action == "Allow";
    }
  }
  bool isolated = false;
  for (const Object& policy : world.policies) {
    if (policy.at("kind") != "NetworkPolicy") {
      continue;
    }
    const Object& spec = policy.at("spec");
    const std::string in = policy.at("metadata").value("namespace", "default");
    const Object* selector = part(spec, "podSelector");
    if (in != pod.in || (selector != nullptr && !selected(*selector, pod.labels))) {
      continue;
    }
    const Object* types = part(spec, "policyTypes");
    const Object* egress = part(spec, "egress");
    bool about = false;
    if (types != nullptr && !types->empty()) {
      about = std::ranges::find(*types, Object(ingress ? "Ingress" : "Egress")) != types->end();
    } else {
      about = ingress || (egress != nullptr && !egress->empty());
    }
    if (!about) {
      continue;
    }
    isolated = true;
    if (const Object* rules = part(spec, ingress ? "ingress" : "egress")) {
      for (const Object& rule : *rules) {
        if (rule_matches(world, rule, ingress, in, pod, peer, address, connection)) {
          return true;
        }
      }
    }
  }
  if (isolated) {
    return false;
  }
  if (baseline != nullptr) {
    return first_action(world, *baseline, ingress, pod, peer, address, connection) != "Deny";
  }
  return true;
}

}  // namespace weir::oracle
