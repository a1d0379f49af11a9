#pragma once
// State that is looked up by ranges (prefixes, ordered rules) changes only by control updates. An update names the
// region of keys it affects, and the holders of rules find the ones that lie in it by comparing masks.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include <weir/flow/field.h>

namespace weir {

/// The packets whose key equals `value` on the bits of `mask`.
struct KeyRegion {
  Key value;
  Key mask;
};

/// The packets whose `field` (ip.src or ip.dst) lies in `prefix`.
KeyRegion region_of(FieldId field, const IpPrefix& prefix);

/// Parts of a packet that a decision had rewritten before it looked something up: what the look-up saw there is not
/// what the rule's match shows.
namespace rewritten {
inline constexpr std::uint8_t eth = 1;
inline constexpr std::uint8_t tags = 2;
inline constexpr std::uint8_t ttl = 4;
inline constexpr std::uint8_t tos = 8;
inline constexpr std::uint8_t src = 16;
inline constexpr std::uint8_t dst = 32;
inline constexpr std::uint8_t ports = 64;
/// The ingress port, in whose place delivery shows the egress port, and a connection's first packet its own.
inline constexpr std::uint8_t way = 128;
inline constexpr unsigned combinations = 256;

/// The bits of a key that belong to the parts.
const Key& bits(std::uint8_t parts);
}  // namespace rewritten

/// Whether some packet of a rule may have been seen in one of several regions by a look-up behind rewrites of some
/// parts, whose bits are unknown. For many rules of one mask: only the words that matter are compared.
class OverlapPlan {
 public:
  void assign(std::span<const KeyRegion> regions, const Key& mask, std::uint8_t parts) {
    words_.clear();
    ends_.clear();
    const Key& unknown = rewritten::bits(parts);
    for (const KeyRegion& region : regions) {
      for (std::size_t i = 0; i < Key::words; ++i) {
        const std::uint64_t bits = region.mask.word(i) & mask.word(i) & ~unknown.word(i);
        if (bits != 0) {
          words_.push_back({i, bits, region.value.word(i) & bits});
        }
      }
      ends_.push_back(words_.size());
    }
  }

  /// Whether a rule whose value has these words (word(i)) overlaps one of the regions.
  template <class Word>
  [[nodiscard]] bool overlaps(Word word) const {
    std::size_t at = 0;
    for (const std::size_t end : ends_) {
      while (at < end && (word(words_[at].index) & words_[at].bits) == words_[at].value) {
        ++at;
      }
      if (at == end) {
        return true;
      }
      at = end;
    }
    return false;
  }

 private:
  struct Word {
    std::size_t index;
    std::uint64_t bits;
    std::uint64_t value;
  };
  std::vector<Word> words_;
  std::vector<std::size_t> ends_;  ///< of each region's words
};

/// Who holds rules: a worker's cache, later the kernel's tables.
class RuleHolder {
 public:
  /// Clears the valid rules that depend on any of the `sources` (bits of RegionState::bit) and overlap one of the
  /// `regions`. Returns how many. Any thread that keeps an epoch online; workers go on meanwhile.
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

/// What a trace records of a look-up by range.
struct RegionDependency {
  const RegionState* state;
  std::uint32_t generation;
  std::uint8_t parts;  ///< rewritten before it
};

}  // namespace weir
