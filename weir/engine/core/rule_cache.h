#pragma once
// A worker's rules: an exact-match cache of hints over masked tables over the rules themselves.

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include <weir/base/epoch.h>
#include <weir/base/large_array.h>
#include <weir/engine/core/program.h>
#include <weir/engine/core/rule_slots.h>
#include <weir/engine/executor.h>
#include <weir/flow/region.h>
#include <weir/packet/key.h>

namespace weir {

/// A rule as it is executed. The first cache line is what every hit touches.
struct alignas(64) RuleBody {
  RuleAnchor anchor;
  OwnedCounter packets;
  OwnedCounter bytes;
  std::uint64_t stages = 0;
  std::uint8_t mask = 0;  ///< index of its masked table
  std::uint8_t guard_count = 0;
  std::uint8_t stage_set = 0;     ///< `stages`, by its number in the cache
  RuleIndex next_same = no_rule;  ///< another rule with this match and other guards
  struct PackedGuard {
    std::uint32_t bits;  ///< number (24 bits), kind (7), expected (1)
  };
  std::array<PackedGuard, Rule::guard_limit> guards{};

  alignas(64) Program program;
  std::uint32_t first_link = ~0U;  ///< of its dependencies, in the cache's list
};
static_assert(sizeof(RuleBody) == 192);

/// The hash under which the exact-match cache keeps a key. It leaves out TTL, TOS and TCP flags, which differ from
/// packet to packet of one flow; where a rule does look at them, the hint is merely wrong.
inline std::uint64_t hint_hash(const Key& key, std::uint64_t seed) {
  constexpr std::uint64_t stable_0 = 0x0000ffffffffffffU;  // not TOS, TTL (little-endian bytes 6 and 7)
  constexpr std::uint64_t stable_3 = 0xffffffff00ffffffU;  // not the TCP flags (byte 3)
  const std::uint64_t a = multiply_fold((key.word(0) & stable_0) ^ seed, key.word(1) ^ 0x9e3779b97f4a7c15U);
  const std::uint64_t b = multiply_fold(key.word(2) ^ seed, (key.word(3) & stable_3) ^ 0xbf58476d1ce4e5b9U);
  const std::uint64_t c = multiply_fold(key.word(4) ^ seed, key.word(5) ^ 0x94d049bb133111ebU);
  const std::uint64_t d = multiply_fold(key.word(6) ^ seed, key.word(7) ^ 0xd6e8feb86659fd93U);
  return multiply_fold((a ^ b) + 0x2545f4914f6cdd1dU, (c + d) ^ 0xff51afd7ed558ccdU);
}

/// Rules of one worker. Its thread does everything but `revoke` and `for_each`, which others may call while they keep
/// an epoch online: a rule's memory is not used again before they have passed.
class RuleCache final : public RuleHolder {
 public:
  /// The last is kept for rules that find no other: it matches all of the key that a flow's packets have in common.
  static constexpr std::size_t mask_limit = 64;
  /// Rules with one match and different guards.
  static constexpr std::size_t same_limit = 8;

  /// `capacity`: the most rules, 64 to 4,194,304; the exact-match cache has twice as many entries. `masks`: the most
  /// masks, 2 to mask_limit.
  RuleCache(State& state, WorkerStats& stats, std::uint32_t capacity, std::size_t masks = mask_limit);
  ~RuleCache();
  RuleCache(const RuleCache&) = delete;
  RuleCache& operator=(const RuleCache&) = delete;

  [[nodiscard]] RuleBody& body(RuleIndex rule) { return bodies_[rule]; }
  /// Counts `packets` for the stages that decided the rule. Per set of stages, not per rule: so `stage_hits` needs to
  /// read no rule.
  void count_for_stages(const RuleBody& rule, std::uint64_t packets = 1) {
    stage_sets_[rule.stage_set].packets.add(packets);
    if (rule.stage_set == other_stage_sets) [[unlikely]] {
      for (std::uint64_t stages = rule.stages; stages != 0; stages &= stages - 1) {
        stats_.stages[static_cast<std::size_t>(std::countr_zero(stages))].hits.add(packets);
      }
    }
  }
  [[nodiscard]] const Key& value(RuleIndex rule) const { return values_[rule]; }

  /// Whether the rule is valid and its match covers `key`; guards are the caller's to test.
  [[nodiscard]] bool matches(RuleIndex rule, const Key& key) const {
    const RuleBody& body = bodies_[rule];
    return body.anchor.valid.load(std::memory_order_acquire) != 0 &&
           equal_under(key, values_[rule], masks_[body.mask].mask);
  }

  // ---- Bulk look-up, one step at a time so that memory is asked for before it is needed ----

  void prefetch_hint(std::uint64_t hash) const { __builtin_prefetch(&hints_[hash & hint_mask_]); }
  /// The rule that the exact-match cache has for the hash, unverified.
  [[nodiscard]] RuleIndex hint(std::uint64_t hash) const;
  void prefetch_rule(RuleIndex rule) const {
    __builtin_prefetch(&bodies_[rule]);
    __builtin_prefetch(&values_[rule]);
    __builtin_prefetch(reinterpret_cast<const char*>(&bodies_[rule]) + 64);
    __builtin_prefetch(reinterpret_cast<const char*>(&bodies_[rule]) + 128);
  }
  /// Masked look-up of the keys whose entry in `found` is no_rule; those that are found also become hints.
  /// Guards are not tested: see `find`.
  void find_masked(std::span<const Key> keys, std::span<const std::uint64_t> hashes, std::span<RuleIndex> found);

  /// Masked look-up of one key for a rule that `accepts` (its guards hold), trying all that match.
  template <class Accepts>
  RuleIndex find(const Key& key, std::uint64_t hash, Accepts accepts);

  // ---- Changes, by the owner ----

  /// Takes a rule, if its dependencies still hold; its index or no_rule. `key` is the packet's it was decided for.
  RuleIndex install(const Rule& rule, const Key& key, std::uint64_t hash, Nanoseconds now);

  /// A rule that reads nothing of the packet, for packets of `ingress` entering at `stage`; no_rule if there is none.
  [[nodiscard]] RuleIndex blind_rule(const Key& key) const;

  /// Between batches: removes rules found invalid, ages a few, takes back memory.
  void maintain(Nanoseconds now);

  /// By stage (63 stands for all beyond), packets of the rules in whose decision it took part, those that have left
  /// included. Reads no rule, whose lines a worker would have to get back into its cache. Any thread.
  [[nodiscard]] std::array<std::uint64_t, 64> stage_hits() const;

  /// Rules unused for so long are removed.
  void set_idle_timeout(Nanoseconds timeout) { idle_timeout_ = timeout; }

  [[nodiscard]] std::size_t size() const { return size_.get() - removed_.get(); }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] std::size_t masks() const { return mask_count_.load(std::memory_order_relaxed); }

  // ---- By anyone who keeps an epoch online ----

  std::size_t revoke(std::uint64_t sources, std::span<const KeyRegion> regions) override;

  /// Calls visit(value, mask, body) for the valid rules.
  template <class Visit>
  void for_each(Visit visit) const {
    const RuleIndex used = slots_used_.load(std::memory_order_acquire);
    for (RuleIndex rule = 0; rule < used; ++rule) {
      if (bodies_[rule].anchor.valid.load(std::memory_order_acquire) != 0) {
        visit(values_[rule], masks_[bodies_[rule].mask].mask, bodies_[rule]);
      }
    }
  }

 private:
  static constexpr std::uint32_t no_link = ~0U;

  struct alignas(64) HintBucket {
    std::array<std::uint32_t, 8> signature{};  ///< 0: empty
    std::array<RuleIndex, 8> rule{};
  };
  struct MaskedTable {
    Key mask;
    RuleSlots slots;          ///< of the first of the rules with one match
    std::uint32_t rules = 0;  ///< distinct matches; a table without any is not in order_
    std::uint64_t hits = 0;
    std::uint64_t free_after = 0;  ///< epoch that readers must have passed before an empty table gets another mask
  };
  /// What a region scan reads of a rule beside its value, packed for reading in order. Scans read both while the owner
  /// may be writing: word by word, and verified by the rule's validity.
  struct Sources {
    std::atomic<std::uint64_t> bits{0};  ///< RegionState::bit of each; 0 in a slot without a rule
    std::atomic<std::uint8_t> mask{0};   ///< RuleBody::mask
    std::atomic<std::uint8_t> parts{0};  ///< rewritten before the last of the look-ups
  };
  struct LinkSlot {
    DependencyLink link;
    std::uint32_t next = no_link;  ///< of the same rule, or free
  };
  /// Stages that decided rules together, and the packets of these rules.
  struct StageSet {
    std::atomic<std::uint64_t> stages{0};  ///< 0: not in use
    OwnedCounter packets;
  };
  /// Of rules whose set has no number: there are few paths through a graph, but could be more. They are counted stage
  /// by stage.
  static constexpr std::uint8_t other_stage_sets = 255;
  struct Limbo {
    std::uint64_t epoch;
    RuleIndex rule;
  };

  static std::uint64_t masked_hash(const Key& key, const Key& mask, std::uint64_t seed);

  [[nodiscard]] std::atomic_ref<std::uint64_t> value_word(RuleIndex rule, std::size_t word) const {
    return std::atomic_ref(reinterpret_cast<std::uint64_t*>(const_cast<Key&>(values_[rule]).bytes())[word]);
  }

  std::uint8_t stage_set_of(std::uint64_t stages);
  void remember(std::uint64_t hash, RuleIndex rule);
  RuleIndex find_in(const MaskedTable& table, const Key& key, std::uint64_t hash) const;
  std::uint8_t table_for(const Key& mask);
  void open(std::uint8_t index, const Key& mask);
  void close_if_empty(std::uint8_t index);
  bool make_room_beside(std::uint8_t index, const Key& value);
  void insert(std::uint8_t index, RuleIndex rule);
  void remove(RuleIndex rule);
  bool link(RuleIndex rule, const Rule& from);
  void unlink(RuleIndex rule);
  RuleIndex take_slot();
  void evict();
  void reclaim();
  void sort_order();

  State& state_;
  WorkerStats& stats_;
  std::uint64_t seed_;
  std::uint32_t capacity_;
  std::uint8_t last_table_;   ///< for rules that find no other table
  std::uint32_t slot_count_;  ///< capacity and some that wait for readers to pass
  Nanoseconds idle_timeout_ = 10'000'000'000;

  LargeArray<HintBucket> hints_;
  std::uint64_t hint_mask_;
  std::uint32_t hint_victim_ = 0;

  std::array<MaskedTable, mask_limit> masks_;
  std::vector<std::uint8_t> order_;  ///< tables in the order they are tried
  std::atomic<std::size_t> mask_count_{0};
  std::size_t blind_tables_ = 0;  ///< whose mask leaves the layout out
  std::uint32_t finds_since_sort_ = 0;

  alignas(64) std::array<StageSet, std::size_t{other_stage_sets} + 1> stage_sets_;

  LargeArray<Key> values_;
  LargeArray<RuleBody> bodies_;
  LargeArray<Sources> sources_;
  std::unique_ptr<bool[]> live_;          ///< in a masked table
  std::atomic<RuleIndex> slots_used_{0};  ///< slots beyond were never used
  std::vector<RuleIndex> free_;
  std::deque<Limbo> limbo_;
  std::vector<RuleIndex> fresh_limbo_;  ///< removed in this batch
  OwnedCounter size_;                   ///< rules ever inserted
  OwnedCounter removed_;                ///< and removed

  LargeArray<LinkSlot> links_;
  std::uint32_t free_link_ = no_link;

  RuleIndex hand_ = 0;   ///< of the clock that picks whom to evict
  RuleIndex sweep_ = 0;  ///< next rule to look at for age
};

template <class Accepts>
RuleIndex RuleCache::find(const Key& key, std::uint64_t hash, Accepts accepts) {
  for (const std::uint8_t i : order_) {
    MaskedTable& table = masks_[i];
    stats_.probes.add();
    for (RuleIndex rule = find_in(table, key, masked_hash(key, table.mask, seed_)); rule != no_rule;
         rule = bodies_[rule].next_same) {
      if (bodies_[rule].anchor.valid.load(std::memory_order_acquire) != 0 && accepts(rule)) {
        ++table.hits;
        remember(hash, rule);
        return rule;
      }
    }
  }
  return no_rule;
}

}  // namespace weir
