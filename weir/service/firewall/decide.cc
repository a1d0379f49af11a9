#include <weir/service/firewall/decide.h>

#include <algorithm>

namespace weir {

namespace {

bool is(const PolicyPeer& wanted, const Traffic& traffic, const Identity* peer) {
  if (wanted.is_block) {
    const auto holds = [&](const IpPrefix& prefix) { return prefix.contains(*traffic.peer); };
    return traffic.peer && holds(wanted.block) && std::ranges::none_of(wanted.except, holds);
  }
  return peer != nullptr && (!wanted.in_namespace || *wanted.in_namespace == peer->in_namespace) &&
         wanted.namespaces.selects(peer->namespace_labels) && wanted.pods.selects(peer->labels);
}

// A name that the destination does not have stands for no port. So does one at a destination that is no endpoint.
bool is(const PolicyPort& wanted, const Traffic& traffic, const Identity* destination) {
  if (wanted.protocol != 0 && wanted.protocol != traffic.protocol) {
    return false;
  }
  if (wanted.name) {
    return destination != nullptr && traffic.port &&
           std::ranges::any_of(destination->ports, [&](const NamedPort& port) {
             return port.name == *wanted.name && port.protocol == traffic.protocol && port.number == *traffic.port;
           });
  }
  const bool whole = wanted.first == 0 && wanted.last == 0xffff;
  return whole || (traffic.port && *traffic.port >= wanted.first && *traffic.port <= wanted.last);
}

class Decider {
 public:
  Decider(Direction direction, const Identity& guarded, const Traffic& traffic, const Identity* peer)
      : direction_(direction),
        traffic_(traffic),
        peer_(peer),
        destination_(direction == Direction::ingress ? &guarded : peer) {}

  /// The first rule that matches, of the first policy that has one.
  [[nodiscard]] Decision first_of(const std::vector<PolicyPtr>& policies) const {
    for (const PolicyPtr& policy : policies) {
      const std::vector<PolicyRule>& rules = policy->rules_of(direction_);
      const auto rule = std::ranges::find_if(rules, [&](const PolicyRule& each) { return matches(each); });
      if (rule != rules.end()) {
        return {rule->effect == Effect::allow, Decision::By::rule, policy.get(),
                static_cast<std::size_t>(rule - rules.begin())};
      }
    }
    return {};
  }

 private:
  [[nodiscard]] bool matches(const PolicyRule& rule) const {
    return (rule.any_port ||
            std::ranges::any_of(rule.ports,
                                [&](const PolicyPort& port) { return is(port, traffic_, destination_); })) &&
           (rule.any_peer ||
            std::ranges::any_of(rule.peers, [&](const PolicyPeer& peer) { return is(peer, traffic_, peer_); }));
  }

  Direction direction_;
  const Traffic& traffic_;
  const Identity* peer_;
  const Identity* destination_;
};

bool passes(const Decision& decision, Direction direction) {
  return decision.by == Decision::By::nothing ||
         decision.policy->rules_of(direction)[decision.rule].effect == Effect::pass;
}

}  // namespace

bool PolicyList::empty(Direction direction) const {
  return std::ranges::all_of(all[static_cast<std::size_t>(direction)],
                             [](const std::vector<PolicyPtr>& policies) { return policies.empty(); });
}

Decision decide(Direction direction, const Identity& guarded, const PolicyList& list, const Traffic& traffic,
                const Identity* peer) {
  if (peer != nullptr && peer->is(guarded)) {
    return {.by = Decision::By::itself};
  }
  const Decider decider(direction, guarded, traffic, peer);
  const Decision admin = decider.first_of(list.of(direction, PolicyKind::admin));
  if (!passes(admin, direction)) {
    return admin;
  }
  const std::vector<PolicyPtr>& network = list.of(direction, PolicyKind::network);
  if (network.empty()) {
    return decider.first_of(list.of(direction, PolicyKind::baseline));
  }
  const Decision allowed = decider.first_of(network);
  return allowed.by == Decision::By::rule
             ? allowed
             : Decision{.allowed = false, .by = Decision::By::isolation, .policy = network.front().get()};
}

}  // namespace weir
