#include <weir/engine/core/rule_cache.h>

#include <algorithm>
#include <bit>

#include <weir/base/simd/simd.h>

namespace weir {

namespace {

constexpr std::uint32_t spare_slots = 2048;
// The most dependency links, on average, that a rule can have; beyond, rules are not installed.
constexpr std::uint32_t links_per_rule = 6;

}  // namespace

RuleCache::RuleCache(State& state, WorkerStats& stats, std::uint32_t capacity, std::size_t masks)
    : state_(state),
      stats_(stats),
      seed_(state.seed()),
      capacity_(std::clamp(capacity, 64U, 1U << 22U)),
      last_table_(static_cast<std::uint8_t>(std::clamp<std::size_t>(masks, 2, mask_limit) - 1)),
      slot_count_(capacity_ + spare_slots),
      hints_(std::bit_ceil(capacity_ * 2U) / 8),
      hint_mask_(hints_.size() - 1),
      values_(slot_count_),
      bodies_(slot_count_),
      sources_(slot_count_),
      live_(new bool[slot_count_]{}),
      // Links are at fixed addresses while they are linked: all are made at once.
      links_(std::size_t{slot_count_} * links_per_rule) {
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    links_[i].next = i + 1 < links_.size() ? i + 1 : no_link;
  }
  free_link_ = 0;
  state_.add(*this);
}

RuleCache::~RuleCache() {
  state_.remove(*this);
  for (RuleIndex rule = 0; rule < slots_used_.load(std::memory_order_relaxed); ++rule) {
    unlink(rule);
  }
}

std::uint64_t RuleCache::masked_hash(const Key& key, const Key& mask, std::uint64_t seed) {
  const auto word = [&](std::size_t i) { return key.word(i) & mask.word(i); };
  const std::uint64_t a = multiply_fold(word(0) ^ seed, word(1) ^ 0x9e3779b97f4a7c15U);
  const std::uint64_t b = multiply_fold(word(2) ^ seed, word(3) ^ 0xbf58476d1ce4e5b9U);
  const std::uint64_t c = multiply_fold(word(4) ^ seed, word(5) ^ 0x94d049bb133111ebU);
  const std::uint64_t d = multiply_fold(word(6) ^ seed, word(7) ^ 0xd6e8feb86659fd93U);
  return multiply_fold((a ^ b) + 0x2545f4914f6cdd1dU, (c + d) ^ 0xff51afd7ed558ccdU);
}

RuleIndex RuleCache::hint(std::uint64_t hash) const {
  const HintBucket& bucket = hints_[hash & hint_mask_];
  const unsigned at = simd::first_equal(bucket.signature, RuleSlots::tag_of(hash));
  return at == bucket.signature.size() ? no_rule : bucket.rule[at];
}

void RuleCache::remember(std::uint64_t hash, RuleIndex rule) {
  HintBucket& bucket = hints_[hash & hint_mask_];
  const std::uint32_t signature = RuleSlots::tag_of(hash);
  std::size_t at = bucket.signature.size();
  for (std::size_t i = 0; i < bucket.signature.size(); ++i) {
    if (bucket.signature[i] == signature) {
      bucket.rule[i] = rule;
      return;
    }
    if (bucket.signature[i] == 0) {
      at = i;
    }
  }
  for (std::size_t i = 0; i < bucket.signature.size() && at == bucket.signature.size(); ++i) {
    if (bodies_[bucket.rule[i]].anchor.valid.load(std::memory_order_relaxed) == 0) {
      at = i;
    }
  }
  if (at == bucket.signature.size()) {
    at = hint_victim_++ % bucket.signature.size();
    stats_.hints_evicted.add();
  }
  bucket.signature[at] = signature;
  bucket.rule[at] = rule;
}

RuleIndex RuleCache::find_in(const MaskedTable& table, const Key& key, std::uint64_t hash) const {
  const RuleSlots::Slot* slot = table.slots.find(
      RuleSlots::tag_of(hash), [&](RuleIndex rule) { return equal_under(key, values_[rule], table.mask); });
  return slot != nullptr ? slot->rule : no_rule;
}

void RuleCache::find_masked(std::span<const Key> keys, std::span<const std::uint64_t> hashes,
                            std::span<RuleIndex> found) {
  std::array<std::uint8_t, Executor::batch_limit> pending;  // indices into keys
  std::array<std::uint64_t, Executor::batch_limit> hash;
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (found[i] == no_rule) {
      pending[count++] = static_cast<std::uint8_t>(i);
    }
  }
  if (++finds_since_sort_ == 1024) {
    sort_order();
  }
  for (const std::uint8_t i : order_) {
    if (count == 0) {
      return;
    }
    MaskedTable& table = masks_[i];
    stats_.probes.add(count);
    for (std::size_t p = 0; p < count; ++p) {
      hash[p] = masked_hash(keys[pending[p]], table.mask, seed_);
      table.slots.prefetch(RuleSlots::tag_of(hash[p]));
    }
    std::size_t left = 0;
    for (std::size_t p = 0; p < count; ++p) {
      const std::size_t k = pending[p];
      RuleIndex rule = find_in(table, keys[k], hash[p]);
      while (rule != no_rule && bodies_[rule].anchor.valid.load(std::memory_order_acquire) == 0) {
        rule = bodies_[rule].next_same;
      }
      if (rule == no_rule) {
        pending[left++] = static_cast<std::uint8_t>(k);
      } else {
        ++table.hits;
        found[k] = rule;
        remember(hashes[k], rule);
      }
    }
    count = left;
  }
}

// Tables that find most come first.
void RuleCache::sort_order() {
  finds_since_sort_ = 0;
  std::ranges::sort(order_, std::greater{}, [this](std::uint8_t i) { return masks_[i].hits; });
  for (const std::uint8_t i : order_) {
    masks_[i].hits /= 2;
  }
}

RuleIndex RuleCache::blind_rule(const Key& key) const {
  if (blind_tables_ == 0) {
    return no_rule;
  }
  for (const std::uint8_t i : order_) {
    if (masks_[i].mask.layout == 0) {
      for (RuleIndex rule = find_in(masks_[i], key, masked_hash(key, masks_[i].mask, seed_)); rule != no_rule;
           rule = bodies_[rule].next_same) {
        if (bodies_[rule].anchor.valid.load(std::memory_order_acquire) != 0 && bodies_[rule].guard_count == 0 &&
            !bodies_[rule].program.reads_packet()) {
          return rule;
        }
      }
    }
  }
  return no_rule;
}

void RuleCache::reclaim() {
  if (!fresh_limbo_.empty()) {
    const std::uint64_t epoch = state_.epochs().advance();
    for (const RuleIndex rule : fresh_limbo_) {
      limbo_.push_back({epoch, rule});
    }
    fresh_limbo_.clear();
  }
  while (!limbo_.empty() && state_.epochs().passed(limbo_.front().epoch)) {
    const std::uint64_t epoch = limbo_.front().epoch;
    while (!limbo_.empty() && limbo_.front().epoch == epoch) {
      free_.push_back(limbo_.front().rule);
      limbo_.pop_front();
    }
  }
}

void RuleCache::maintain(Nanoseconds now) {
  constexpr unsigned rules_a_time = 4;
  const RuleIndex used = slots_used_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < rules_a_time && used != 0; ++i) {
    sweep_ = sweep_ + 1 < used ? sweep_ + 1 : 0;
    if (!live_[sweep_]) {
      continue;
    }
    const RuleAnchor& anchor = bodies_[sweep_].anchor;
    if (anchor.valid.load(std::memory_order_relaxed) == 0) {
      stats_.revoked.add();
      remove(sweep_);
    } else if (anchor.last_used.load(std::memory_order_relaxed) + idle_timeout_ < now) {
      stats_.aged.add();
      remove(sweep_);
    }
  }
  reclaim();
}

std::array<std::uint64_t, 64> RuleCache::stage_hits() const {
  std::array<std::uint64_t, 64> hits{};
  for (std::size_t stage = 0; stage < hits.size(); ++stage) {
    hits[stage] = stats_.stages[stage].hits.get();
  }
  for (std::size_t i = 0; i < other_stage_sets; ++i) {
    const StageSet& set = stage_sets_[i];
    for (std::uint64_t stages = set.stages.load(std::memory_order_acquire); stages != 0; stages &= stages - 1) {
      hits[static_cast<std::size_t>(std::countr_zero(stages))] += set.packets.get();
    }
  }
  return hits;
}

std::size_t RuleCache::revoke(std::uint64_t sources, std::span<const KeyRegion> regions) {
  std::size_t cleared = 0;
  OverlapPlan plan;
  unsigned plan_mask = ~0U;
  unsigned plan_parts = ~0U;
  const RuleIndex used = slots_used_.load(std::memory_order_acquire);
  for (RuleIndex rule = 0; rule < used; ++rule) {
    // Of a rule that is just being installed an old value may be read here; its owner then sees that the state's
    // generation has moved on, and gives it up.
    if ((sources_[rule].bits.load(std::memory_order_relaxed) & sources) == 0) {
      continue;
    }
    const std::uint8_t mask = sources_[rule].mask.load(std::memory_order_relaxed);
    const std::uint8_t parts = sources_[rule].parts.load(std::memory_order_relaxed);
    if (mask != plan_mask || parts != plan_parts) {
      // The table's mask stands: it changes only when no rule is left, and not while this thread keeps its epoch.
      plan.assign(regions, masks_[mask].mask, parts);
      plan_mask = mask;
      plan_parts = parts;
    }
    if (plan.overlaps([&](std::size_t word) { return value_word(rule, word).load(std::memory_order_relaxed); })) {
      cleared += bodies_[rule].anchor.valid.exchange(0, std::memory_order_acq_rel);
    }
  }
  return cleared;
}

}  // namespace weir
