#pragma once
// What policies make of traffic: a function of nothing but its arguments.

#include <weir/flow/maybe.h>
#include <weir/service/firewall/endpoint.h>

namespace weir {

/// The policies that are about one endpoint, in the order in which they are asked. Never changes once it was made.
struct PolicyList {
  /// By direction and kind; those that say something for that direction.
  std::array<std::array<std::vector<PolicyPtr>, policy_kinds>, 2> all;

  bool operator==(const PolicyList&) const = default;
  [[nodiscard]] const std::vector<PolicyPtr>& of(Direction direction, PolicyKind kind) const {
    return all[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)];
  }
  /// Whether nothing is said for the direction.
  [[nodiscard]] bool empty(Direction direction) const;
};
using PolicyListPtr = std::shared_ptr<const PolicyList>;

/// What a connection's first packet says of it, as the guarded endpoint sees it.
struct Traffic {
  Maybe<IpAddress> peer{};  ///< absent: unknown, and no block of addresses holds it
  std::uint8_t protocol = 0;
  Maybe<std::uint16_t> port{};  ///< at the destination; absent: the protocol has none, or it is not known
};

struct Decision {
  enum class By : std::uint8_t {
    nothing,    ///< no policy says anything: allowed
    itself,     ///< traffic of an endpoint to itself: allowed
    rule,       ///< of `policy`
    isolation,  ///< network policies are about the endpoint, of which `policy` is the first, and none allows it
  };

  bool allowed = true;
  By by = By::nothing;
  const Policy* policy = nullptr;  ///< lives as long as the list that was asked
  std::size_t rule = 0;            ///< its place among the policy's rules of the direction
};

/// Whether `guarded`, with the policies of `list`, may have the traffic. `peer`: the endpoint at the other end; nullptr
/// if it is none that is known.
Decision decide(Direction direction, const Identity& guarded, const PolicyList& list, const Traffic& traffic,
                const Identity* peer);

}  // namespace weir
