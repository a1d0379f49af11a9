#pragma once
// What policies say, whichever kind of Kubernetes object they are: whom they are about, and rules for each direction.

#include <array>
#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/packet/address.h>
#include <weir/service/firewall/labels.h>

namespace weir {

/// In the order in which they are asked.
enum class PolicyKind : std::uint8_t {
  admin,     ///< AdminNetworkPolicy: by priority, the first rule that matches decides or passes on
  network,   ///< NetworkPolicy: isolates, and any of its rules allows
  baseline,  ///< BaselineAdminNetworkPolicy: the first rule that matches decides
};
inline constexpr std::size_t policy_kinds = 3;

/// As seen from the endpoint that is guarded.
enum class Direction : std::uint8_t { ingress, egress };
inline constexpr std::array both_directions{Direction::ingress, Direction::egress};

enum class Effect : std::uint8_t {
  allow,
  deny,
  pass,  ///< what comes after the admin policies decides
};

/// Ports of one protocol at the destination.
struct PolicyPort {
  std::uint8_t protocol = 0;  ///< of IP; 0, with a name: the one that the port of this name has
  std::uint16_t first = 0;
  std::uint16_t last = 0xffff;
  std::optional<NameId> name{};  ///< instead of numbers: what the destination endpoint calls so

  bool operator==(const PolicyPort&) const = default;
};

/// Whom a rule is about at the other end: endpoints by their labels, or addresses.
struct PolicyPeer {
  std::optional<NameId> in_namespace{};  ///< endpoints of this one only
  Selector namespaces{};                 ///< by the labels of their namespace
  Selector pods{};
  bool is_block = false;  ///< addresses, whoever has them, instead of endpoints
  IpPrefix block{};
  std::vector<IpPrefix> except{};  ///< parts of the block that this peer does not have

  bool operator==(const PolicyPeer&) const = default;
};

struct PolicyRule {
  Effect effect = Effect::allow;
  std::string name;               ///< as the file gives it, or empty
  bool any_peer = false;          ///< whoever it is
  std::vector<PolicyPeer> peers;  ///< any of them
  bool any_port = false;          ///< whatever the protocol is
  std::vector<PolicyPort> ports;  ///< any of them

  bool operator==(const PolicyRule&) const = default;
};

/// By what a policy is known.
struct PolicyKey {
  PolicyKind kind = PolicyKind::network;
  std::string in_namespace;  ///< of a NetworkPolicy
  std::string name;

  auto operator<=>(const PolicyKey&) const = default;
  /// "NetworkPolicy x/web", "AdminNetworkPolicy deny-all"
  [[nodiscard]] std::string to_string() const;
};

/// One policy. Never changes once it was read.
struct Policy {
  PolicyKey key;
  std::int32_t priority = 0;             ///< of an admin policy: the lowest is asked first
  std::optional<NameId> in_namespace{};  ///< whom it is about: endpoints of this one only,
  Selector namespaces{};                 ///< by the labels of their namespace,
  Selector pods{};                       ///< and by their own
  std::array<bool, 2> applies{};         ///< by direction: whether it says anything, if only that nothing is allowed
  std::array<std::vector<PolicyRule>, 2> rules{};

  bool operator==(const Policy&) const = default;
  [[nodiscard]] bool applies_to(Direction direction) const { return applies[static_cast<std::size_t>(direction)]; }
  [[nodiscard]] const std::vector<PolicyRule>& rules_of(Direction direction) const {
    return rules[static_cast<std::size_t>(direction)];
  }
};

using PolicyPtr = std::shared_ptr<const Policy>;

/// Whether `a` is asked before `b`, which is of the same kind: by priority; of two that have the same, and of those
/// that have none, by name.
bool asked_before(const Policy& a, const Policy& b);

/// "AdminNetworkPolicy", "NetworkPolicy", "BaselineAdminNetworkPolicy"
std::string_view kind_name(PolicyKind kind);
/// "ingress", "egress"
std::string_view direction_name(Direction direction);

}  // namespace weir
