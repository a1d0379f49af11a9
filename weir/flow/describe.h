#pragma once
// Rules in words: matches by field, guards and actions, for `weir trace` and `weir show rules`.

#include <string>
#include <vector>

#include <weir/flow/pipeline.h>
#include <weir/flow/rule.h>

namespace weir {

/// Where descriptions find names. What it refers to outlives it.
class Names {
 public:
  Names(const State& state, const Pipeline& pipeline, std::vector<std::string> ports)
      : state_(state), pipeline_(pipeline), ports_(std::move(ports)) {}

  [[nodiscard]] std::string port(std::uint32_t number) const;
  [[nodiscard]] std::string stage(std::uint32_t number) const;
  [[nodiscard]] const State& state() const { return state_; }

 private:
  const State& state_;
  const Pipeline& pipeline_;
  std::vector<std::string> ports_;
};

/// "tcp.flags=0x12", "ip.dst=10.0.0.0/8", "eth.dst=01:00:00:00:00:00/01:00:00:00:00:00": the field and those of its
/// bits that `mask` has. `value` and `mask` are right-aligned, as in FieldValue.
std::string describe(FieldId field, const FieldValue& value, const FieldValue& mask);

/// What a match asks for, a phrase each: the ingress port, the layout, then the fields. `layout` tells which fields the
/// key holds (of a rule: its own). Empty: it matches everything.
std::vector<std::string> describe_match(const Key& value, const Key& mask, Layout layout, const Names& names);

/// "TTL above 1", "not longer than 1500 bytes from the L3 header on"
std::string describe(GuardKind kind, std::uint32_t number, bool holds);

/// "output to bob", "drop: denied_by_rule (a rule of the firewall denies it)"
std::string describe(const Action& action, const Names& names);

/// "ICMP time exceeded", of Action::number of a reject.
std::string describe_icmp(std::uint32_t reject);

}  // namespace weir
