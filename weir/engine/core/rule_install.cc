// How rules come into a cache, and how they leave it.
#include <algorithm>
#include <bit>

#include <weir/engine/core/rule_cache.h>

namespace weir {

namespace {

// All of a key but what differs between the packets of one flow.
Key whole_flow_mask() {
  Key mask;
  std::memset(mask.bytes(), 0xff, sizeof mask);
  mask.tos = mask.ttl = mask.tcp_flags = 0;
  return mask;
}

}  // namespace

// Sets up a table that holds nothing for `mask`.
void RuleCache::open(std::uint8_t index, const Key& mask) {
  MaskedTable& table = masks_[index];
  table.mask = mask;
  table.slots.clear();
  table.hits = 0;
  order_.push_back(index);
  blind_tables_ += mask.layout == 0 ? 1 : 0;
  mask_count_.store(order_.size(), std::memory_order_relaxed);
}

void RuleCache::close_if_empty(std::uint8_t index) {
  MaskedTable& table = masks_[index];
  if (table.rules == 0 && std::erase(order_, index) != 0) {
    blind_tables_ -= table.mask.layout == 0 ? 1 : 0;
    mask_count_.store(order_.size(), std::memory_order_relaxed);
    table.free_after = state_.epochs().advance();
  }
}

// A table whose mask is `mask` or, if there is room for no more, has all of its bits and more: consulting more is
// always right. mask_limit if there is none.
std::uint8_t RuleCache::table_for(const Key& mask) {
  std::uint8_t empty = mask_limit;
  for (std::uint8_t i = 0; i < last_table_; ++i) {
    const MaskedTable& table = masks_[i];
    if (table.rules != 0 && table.mask == mask) {
      return i;
    }
    if (table.rules == 0 && empty == mask_limit && state_.epochs().passed(table.free_after)) {
      empty = i;
    }
  }
  if (empty != mask_limit) {
    open(empty, mask);
    return empty;
  }
  // The one with the fewest bits too many.
  std::uint8_t best = mask_limit;
  int best_bits = 513;
  for (std::uint8_t i = 0; i < last_table_; ++i) {
    if (masks_[i].rules != 0 && covers(masks_[i].mask, mask)) {
      int bits = 0;
      for (std::size_t w = 0; w < Key::words; ++w) {
        bits += std::popcount(masks_[i].mask.word(w));
      }
      if (bits < best_bits) {
        best = i;
        best_bits = bits;
      }
    }
  }
  if (best == mask_limit && covers(whole_flow_mask(), mask)) {
    best = last_table_;
    if (masks_[best].rules == 0) {
      open(best, whole_flow_mask());
    }
  }
  if (best != mask_limit) {
    stats_.widened.add();
  }
  return best;
}

// Clears away dead rules with the same match; false if there are too many others.
bool RuleCache::make_room_beside(std::uint8_t index, const Key& value) {
  for (;;) {
    const MaskedTable& table = masks_[index];
    RuleIndex rule = find_in(table, value, masked_hash(value, table.mask, seed_));
    std::size_t count = 0;
    while (rule != no_rule && bodies_[rule].anchor.valid.load(std::memory_order_relaxed) != 0) {
      ++count;
      rule = bodies_[rule].next_same;
    }
    if (rule == no_rule) {
      return count < same_limit;
    }
    // The table may not close on the way: it is about to get a rule.
    ++masks_[index].rules;
    stats_.revoked.add();
    remove(rule);
    --masks_[index].rules;
  }
}

void RuleCache::insert(std::uint8_t index, RuleIndex rule) {
  MaskedTable& table = masks_[index];
  const std::uint64_t hash = masked_hash(values_[rule], table.mask, seed_);
  const RuleIndex same = find_in(table, values_[rule], hash);
  live_[rule] = true;
  size_.add();
  if (same != no_rule) {
    bodies_[rule].next_same = bodies_[same].next_same;
    bodies_[same].next_same = rule;
    return;
  }
  table.slots.insert(RuleSlots::tag_of(hash), rule);
  ++table.rules;
}

void RuleCache::remove(RuleIndex rule) {
  RuleBody& body = bodies_[rule];
  body.anchor.valid.store(0, std::memory_order_release);
  unlink(rule);
  live_[rule] = false;
  sources_[rule].bits.store(0, std::memory_order_relaxed);
  removed_.add();
  fresh_limbo_.push_back(rule);

  MaskedTable& table = masks_[body.mask];
  bool behind = false;  // the first of its match
  RuleSlots::Slot* slot =
      table.slots.find(RuleSlots::tag_of(masked_hash(values_[rule], table.mask, seed_)), [&](RuleIndex first) {
        for (RuleIndex at = first; at != rule && at != no_rule; at = bodies_[at].next_same) {
          if (bodies_[at].next_same == rule) {
            bodies_[at].next_same = body.next_same;
            behind = true;
          }
        }
        return behind || first == rule;
      });
  if (behind) {
    return;
  }
  if (body.next_same != no_rule) {
    slot->rule = body.next_same;
    return;
  }
  table.slots.erase(slot);
  --table.rules;
  close_if_empty(body.mask);
}

bool RuleCache::link(RuleIndex rule, const Rule& from) {
  RuleBody& body = bodies_[rule];
  for (const KeyedDependency& dependency : from.keyed) {
    if (free_link_ == no_link) {
      return false;
    }
    const std::uint32_t index = free_link_;
    LinkSlot& slot = links_[index];
    slot.link.rule = &body.anchor;
    slot.link.refreshed = dependency.refreshed;
    slot.link.token = dependency.token;
    if (!dependency.stripe->link(slot.link, dependency.generation)) {
      return false;
    }
    free_link_ = slot.next;
    slot.next = body.first_link;
    body.first_link = index;
  }
  return true;
}

void RuleCache::unlink(RuleIndex rule) {
  RuleBody& body = bodies_[rule];
  while (body.first_link != no_link) {
    LinkSlot& slot = links_[body.first_link];
    Dependents::unlink(slot.link);
    const std::uint32_t next = slot.next;
    slot.next = free_link_;
    free_link_ = body.first_link;
    body.first_link = next;
  }
}

std::uint8_t RuleCache::stage_set_of(std::uint64_t stages) {
  for (std::uint8_t i = 0; i < other_stage_sets && stages != 0; ++i) {
    const std::uint64_t known = stage_sets_[i].stages.load(std::memory_order_relaxed);
    if (known == 0) {
      stage_sets_[i].stages.store(stages, std::memory_order_release);
    }
    if (known == 0 || known == stages) {
      return i;
    }
  }
  return other_stage_sets;
}

RuleIndex RuleCache::take_slot() {
  if (size() >= capacity_) {
    evict();
  }
  if (!free_.empty()) {
    const RuleIndex rule = free_.back();
    free_.pop_back();
    return rule;
  }
  const RuleIndex used = slots_used_.load(std::memory_order_relaxed);
  if (used < slot_count_) {
    return used;  // published by install, once it is filled
  }
  return no_rule;
}

// A clock over the slots: an invalid rule, or else the longest unused of the next eight.
void RuleCache::evict() {
  const RuleIndex used = slots_used_.load(std::memory_order_relaxed);
  RuleIndex victim = no_rule;
  Nanoseconds oldest = ~Nanoseconds{0};
  for (unsigned seen = 0, tried = 0; seen < 8 && tried < used; ++tried) {
    hand_ = hand_ + 1 < used ? hand_ + 1 : 0;
    if (!live_[hand_]) {
      continue;
    }
    ++seen;
    if (bodies_[hand_].anchor.valid.load(std::memory_order_relaxed) == 0) {
      stats_.revoked.add();
      remove(hand_);
      return;
    }
    const Nanoseconds last = bodies_[hand_].anchor.last_used.load(std::memory_order_relaxed);
    if (last < oldest) {
      oldest = last;
      victim = hand_;
    }
  }
  if (victim != no_rule) {
    stats_.evicted.add();
    remove(victim);
  }
}

RuleIndex RuleCache::install(const Rule& rule, const Key& key, std::uint64_t hash, Nanoseconds now) {
  if (rule.guards.size() > Rule::guard_limit) {
    return no_rule;
  }
  const RuleIndex index = take_slot();
  if (index == no_rule) {
    return no_rule;
  }
  const auto give_up = [&] {
    unlink(index);
    if (index < slots_used_.load(std::memory_order_relaxed)) {
      free_.push_back(index);
    }
    return no_rule;
  };
  const std::uint8_t table = table_for(rule.mask);
  if (table == mask_limit) {
    return give_up();
  }
  const Key value = key & masks_[table].mask;
  if (!make_room_beside(table, value)) {
    return give_up();
  }
  RuleBody& body = bodies_[index];
  for (std::size_t word = 0; word < Key::words; ++word) {
    value_word(index, word).store(value.word(word), std::memory_order_relaxed);
  }
  body.mask = table;
  body.next_same = no_rule;
  body.guard_count = static_cast<std::uint8_t>(rule.guards.size());
  for (std::size_t i = 0; i < rule.guards.size(); ++i) {
    const Guard& guard = rule.guards[i];
    body.guards[i].bits = std::min(guard.number, 0xffffffU) | static_cast<std::uint32_t>(guard.kind) << 24U |
                          (guard.expected ? 1U << 31U : 0U);
  }
  body.stages = rule.stages;
  body.stage_set = stage_set_of(rule.stages);
  body.packets.set(0);
  body.bytes.set(0);
  body.anchor.last_used.store(now, std::memory_order_relaxed);
  body.program.compile(rule);
  std::uint64_t bits = 0;
  std::uint8_t parts = 0;
  for (const RegionDependency& region : rule.regions) {
    bits |= region.state->bit();
    parts |= region.parts;
  }
  sources_[index].bits.store(bits, std::memory_order_relaxed);
  sources_[index].parts.store(parts, std::memory_order_relaxed);
  sources_[index].mask.store(table, std::memory_order_relaxed);

  body.anchor.valid.store(1, std::memory_order_release);
  if (index == slots_used_.load(std::memory_order_relaxed)) {
    slots_used_.store(index + 1, std::memory_order_release);
  }
  bool holds = link(index, rule);
  // A change before the store above is seen here; one after it finds the rule in its scan.
  for (const RegionDependency& region : rule.regions) {
    holds = holds && region.state->holds(region.generation);
  }
  if (!holds) {
    body.anchor.valid.store(0, std::memory_order_release);
    unlink(index);
    sources_[index].bits.store(0, std::memory_order_relaxed);
    close_if_empty(table);
    fresh_limbo_.push_back(index);
    return no_rule;
  }
  insert(table, index);
  remember(hash, index);
  stats_.installed.add();
  return index;
}

}  // namespace weir
