#pragma once
// State that is looked up by ranges (prefixes, ordered rules) changes only by control updates. An update names the
// region of keys it affects, and the holders of rules find the ones that lie in it by comparing masks.

#include <atomic>
#include <cstdint>
#include <span>

#include <weir/flow/field.h>

namespace weir {

/// The packets whose key equals `value` on the bits of `mask`.
struct KeyRegion {
  Key value;
  Key mask;
};

/// The packets whose `field` (ip.src or ip.dst) lies in `prefix`.
KeyRegion region_of(FieldId field, const IpPrefix& prefix);

/// Whether some packet lies in both.
inline bool overlap(const KeyRegion& region, const Key& value, const Key& mask) {
  return equal_under(region.value, value, region.mask & mask);
}

/// Who holds rules: a worker's cache, later the kernel's tables.
class RuleHolder {
 public:
  /// Clears the valid rules that depend on any of the `sources` (bits of RegionState::bit) and overlap one of the
  /// `regions`, and those that depend on them in a way the match does not show. Returns how many. Any thread that
  /// keeps an epoch online; workers go on meanwhile.
  virtual std::size_t revoke(std::uint64_t sources, std::span<const KeyRegion> regions) = 0;

 protected:
  ~RuleHolder() = default;
};

/// Common part of state that changes by region. `generation` moves on before holders are scanned: a rule whose trace
/// saw an older one must not stay installed (RegionDependency).
class RegionState {
 public:
  explicit RegionState(std::uint64_t bit) : bit_(bit) {}

  [[nodiscard]] std::uint64_t bit() const { return bit_; }
  [[nodiscard]] std::uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

  void changed() {
    generation_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  /// To be called after a rule was made visible to holders' scans: whether the trace's view still stands.
  [[nodiscard]] bool holds(std::uint32_t generation) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return generation_.load(std::memory_order_seq_cst) == generation;
  }

 private:
  std::uint64_t bit_;
  std::atomic<std::uint32_t> generation_{0};
};

/// What a trace records of a look-up by range. `opaque`: the rule's match shows bits as they were before a rewrite,
/// where the look-up saw (or would see, were more entries there) what they were rewritten to; so every change concerns
/// the rule.
struct RegionDependency {
  const RegionState* state;
  std::uint32_t generation;
  bool opaque;
};

}  // namespace weir
