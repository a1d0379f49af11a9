#pragma once
// Endpoints: whom policies are about. What Kubernetes calls a pod.

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/packet/address.h>
#include <weir/service/firewall/policy.h>

namespace weir {

struct EndpointKey {
  std::string in_namespace;
  std::string name;

  auto operator<=>(const EndpointKey&) const = default;
  /// "x/a"
  [[nodiscard]] std::string to_string() const { return in_namespace + "/" + name; }
};

/// What an endpoint calls one of its ports.
struct NamedPort {
  NameId name = 0;
  std::uint8_t protocol = 0;
  std::uint16_t number = 0;

  bool operator==(const NamedPort&) const = default;
};

/// What an endpoint is to policies. Never changes once it was made.
struct Identity {
  NameId in_namespace = 0;
  NameId name = 0;
  Labels labels;
  Labels namespace_labels;
  std::vector<NamedPort> ports;

  bool operator==(const Identity&) const = default;
  /// Whether both are the same endpoint, if perhaps with other labels.
  [[nodiscard]] bool is(const Identity& other) const {
    return in_namespace == other.in_namespace && name == other.name;
  }
};
using IdentityPtr = std::shared_ptr<const Identity>;

/// Whether the policy is about the endpoint.
inline bool selects(const Policy& policy, const Identity& endpoint) {
  return (!policy.in_namespace || *policy.in_namespace == endpoint.in_namespace) &&
         policy.namespaces.selects(endpoint.namespace_labels) && policy.pods.selects(endpoint.labels);
}

/// An endpoint as files describe it.
struct EndpointEntry {
  EndpointKey key;
  std::map<std::string, std::string> labels{};
  std::vector<IpAddress> addresses{};
  std::vector<NamedPort> ports{};
  std::string port{};  ///< of the node, that it is behind; empty: it is elsewhere
  std::string place{};

  /// Wherever both stand.
  bool operator==(const EndpointEntry& other) const {
    return key == other.key && labels == other.labels && addresses == other.addresses && ports == other.ports &&
           port == other.port;
  }
};

/// Labels of namespaces, by name. Each also has `kubernetes.io/metadata.name`, as in Kubernetes.
using Namespaces = std::map<std::string, std::map<std::string, std::string>>;

/// Endpoints and namespaces together, no two with the same key, address or port.
struct Endpoints {
  Namespaces namespaces;
  std::vector<EndpointEntry> entries;
};

IdentityPtr identity_of(const EndpointEntry& entry, const Namespaces& namespaces, Names& names);

}  // namespace weir
