#pragma once
// How a rule and the state it was decided from find each other.
//
// State that is looked up by key keeps, per stripe of keys, a generation and the list of rules that depend on it. A
// trace records the generation it saw; the rule is linked only if that still stands, and is unlinked by its owner.
// Whoever changes the stripe moves the generation on and clears the linked rules' validity, all under the stripe's
// lock: a rule can neither miss a change nor outlive one.

#include <atomic>
#include <cstdint>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/spin_lock.h>

namespace weir {

/// What others may touch of a rule that a worker owns. Lives until every link to it is undone.
struct RuleAnchor {
  /// Cleared by whoever changes what the rule depends on; set by the owner before the first link is made.
  std::atomic<std::uint32_t> valid{0};
  std::atomic<Nanoseconds> last_used{0};  ///< written by the rule's owner only
};

/// State whose entries age unless rules keep them alive.
class Refreshable {
 public:
  /// Entry `token` was used at `time`. Called with the lock of its stripe held.
  virtual void touch(std::uint32_t token, Nanoseconds time) = 0;

 protected:
  ~Refreshable() = default;
};

class Dependents;

/// One rule's dependency on one stripe. Memory of the rule's owner; at a fixed address while linked. A change of the
/// stripe empties its list without writing to the links, which lie in the owner's cache: one that was linked in an
/// earlier generation is no longer linked.
struct DependencyLink {
  RuleAnchor* rule = nullptr;
  Dependents* list = nullptr;        ///< nullptr: not linked
  Refreshable* refreshed = nullptr;  ///< whose entry `token` the rule keeps alive, if any
  std::uint32_t token = 0;
  std::uint32_t generation = 0;  ///< of the list, when it was linked
  std::uint32_t place = 0;       ///< in the list
};
static_assert(sizeof(DependencyLink) <= 64);

/// The rules that depend on a stripe of state. Everything under `lock`.
class Dependents {
 public:
  [[nodiscard]] SpinLock& lock() { return lock_; }

  /// Of the stripe's content. Lock held.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// The stripe has changed: clears every rule linked. Returns how many were valid. Lock held.
  std::size_t changed();

  /// Links, if `generation` is still the stripe's; takes the lock. `link` is filled but for what this sets.
  bool link(DependencyLink& link, std::uint32_t generation);

  /// Undoes `link`, by its owner; takes the lock. Nothing to do where a change has already unlinked it.
  static void unlink(DependencyLink& link);

  /// Latest use among the rules that keep entry `token` of `refreshed` alive. Lock held.
  [[nodiscard]] Nanoseconds last_used(const Refreshable& refreshed, std::uint32_t token) const;

 private:
  static void fold(const DependencyLink& link);

  SpinLock lock_;
  std::uint32_t generation_ = 0;
  std::vector<DependencyLink*> links_;  // not a linked list: `changed` reads ahead in many links at once
};

/// What a trace records of a look-up by key.
struct KeyedDependency {
  Dependents* stripe;
  std::uint32_t generation;
  Refreshable* refreshed = nullptr;
  std::uint32_t token = 0;
};

}  // namespace weir
