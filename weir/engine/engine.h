#pragma once
// What an engine above the core engine offers: the kernel's hooks, a NIC's flow tables.

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

#include <weir/flow/rule.h>

namespace weir {

/// What an engine can hold.
struct Capabilities {
  std::string_view name;       ///< "kernel"
  std::size_t rules;           ///< at most
  std::size_t actions;         ///< of one rule
  std::uint32_t action_kinds;  ///< bit per ActionKind
  std::uint32_t guard_kinds;   ///< bit per GuardKind
};

/// A rule's number in an engine.
using RuleHandle = std::uint64_t;

struct RuleStatistics {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  Nanoseconds last_used = 0;
};

/// Where a rule belongs, and if not higher up, why.
struct Placement {
  std::string_view engine;  ///< "none" for a decision that cannot be kept
  std::string reason;       ///< in words; empty if it is in the highest engine
};

/// One engine. Called by one installer at a time, never while a packet waits.
class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual Capabilities capabilities() const = 0;

  /// Takes the rule, or says in words why not. A rule installed with an `epoch` older than a revocation that concerns
  /// it is refused.
  virtual std::expected<RuleHandle, std::string> install(const Rule& rule, std::uint64_t epoch) = 0;
  virtual void revoke(RuleHandle handle) = 0;
  [[nodiscard]] virtual RuleStatistics statistics(RuleHandle handle) const = 0;

  /// Returns when no packet is being handled by a rule that was revoked before the call.
  virtual void barrier() = 0;
};

/// Why an engine of these capabilities cannot hold `rule`; empty if it can.
std::string unfit(const Rule& rule, const Capabilities& capabilities);

/// The highest of `above` (highest first) that can hold the rule, or else the core engine, which holds every rule that
/// can be kept.
Placement place(const Rule& rule, std::span<const Capabilities> above);

}  // namespace weir
