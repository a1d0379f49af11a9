#include <weir/service/firewall/policy.h>

#include <tuple>

#include <fmt/format.h>

namespace weir {

std::string PolicyKey::to_string() const {
  return in_namespace.empty() ? fmt::format("{} {}", kind_name(kind), name)
                              : fmt::format("{} {}/{}", kind_name(kind), in_namespace, name);
}

bool asked_before(const Policy& a, const Policy& b) {
  return std::tie(a.priority, a.key) < std::tie(b.priority, b.key);
}

std::string_view kind_name(PolicyKind kind) {
  constexpr std::array<std::string_view, policy_kinds> names{"AdminNetworkPolicy", "NetworkPolicy",
                                                             "BaselineAdminNetworkPolicy"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view direction_name(Direction direction) { return direction == Direction::ingress ? "ingress" : "egress"; }

}  // namespace weir
