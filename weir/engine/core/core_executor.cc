#include <weir/engine/core/core_executor.h>

#include <algorithm>
#include <utility>

#include <weir/packet/edit.h>
#include <weir/packet/pull_up.h>
#include <weir/packet/sctp.h>

namespace weir {

namespace {

// Passes through the graph that a packet may make.
constexpr unsigned wave_limit = 16;

constexpr DropReason not_tried{"not_tried",
                               "a packet stage, or the node itself, would take it, which is not tried out"};

// The operations of a rule that do not fit into it.
void prefetch_program(const Program& program) {
  const auto* operations = reinterpret_cast<const char*>(program.begin());
  __builtin_prefetch(operations);
  __builtin_prefetch(operations + 64);
}

// What the first action of a rule will touch.
void prefetch_connection(const Program& program) {
  const Operation* first = program.begin();
  if (first->op == Op::track) {
    __builtin_prefetch(first->operand<Track>().entry, 1);
  }
}

Rule without_effects(Rule rule, State& state) {
  std::erase_if(rule.actions, [](const Action& action) {
    return action.kind == ActionKind::track || action.kind == ActionKind::count || action.kind == ActionKind::meter;
  });
  Action& last = rule.actions.back();
  if (last.kind == ActionKind::to_host || last.kind == ActionKind::resolve) {
    last = {.kind = ActionKind::drop, .reason = state.reason(not_tried)};
  }
  return rule;
}

}  // namespace

CoreExecutor::CoreExecutor(const ExecutorContext& context, CoreOptions options)
    : context_(context),
      cache_(context.state, context.stats, options.rule_cache == 0 ? 64 : options.rule_cache, options.masks),
      flow_(context.state, context.pipeline),
      packet_stages_(context),
      host_(context),
      caching_(options.rule_cache != 0 && !options.dry),
      dry_(options.dry),
      delivers_(context.pipeline.delivers) {
  if (dry_) {
    flow_.set_dry();
  }
}

void CoreExecutor::process(PortId ingress, std::span<Packet*> packets, Nanoseconds now, DecisionBudget& budget) {
  const std::uint8_t entry = context_.pipeline.entry_of(ingress);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    packets[i]->ingress = ingress.number;
    packets[i]->stage = entry;
    wave_[i] = packets[i];
  }
  if (entry == Pipeline::nowhere) {
    for (Packet* packet : packets) {
      drop(packet, drop::unconnected);
    }
    return;
  }
  count_ = packets.size();
  if (caching_) {
    Key key;
    key.ingress = ingress.number;
    key.stage = entry;
    if (const RuleIndex rule = cache_.blind_rule(key); rule != no_rule) {
      lookups_ = count_;
      for (std::size_t i = 0; i < count_; ++i) {
        place_[i] = static_cast<std::uint8_t>(i);
      }
      blind_ = true;
      run_blind(rule, now);
      blind_ = false;
      if (!deliveries_.empty()) {
        run_handed_back(now, budget);
      }
      return;
    }
  }
  run_waves(now, budget);
  run_handed_back(now, budget);
}

void CoreExecutor::idle(Nanoseconds now) {
  DecisionBudget unlimited;
  host_.idle(now);
  packet_stages_.idle(now, [&] { run_handed_back(now, unlimited); });
  cache_.maintain(now);
}

void CoreExecutor::finish(Nanoseconds now) {
  DecisionBudget unlimited;
  host_.idle(now);
  packet_stages_.finish(now, [&] { run_handed_back(now, unlimited); });
  host_.finish();
}

void CoreExecutor::run_handed_back(Nanoseconds now, DecisionBudget& budget) {
  while ((count_ = take_deliveries()) != 0 || (count_ = packet_stages_.take_back(wave_)) != 0 ||
         (count_ = host_.take_back(wave_)) != 0) {
    run_waves(now, budget);
  }
}

// Running them makes no more: a delivery stage cannot flood or select.
std::size_t CoreExecutor::take_deliveries() {
  const std::size_t count = std::min(wave_.size(), deliveries_.size() - delivered_);
  std::copy_n(deliveries_.begin() + static_cast<std::ptrdiff_t>(delivered_), count, wave_.begin());
  delivered_ += count;
  if (count == 0) {
    deliveries_.clear();
    delivered_ = 0;
  }
  return count;
}

void CoreExecutor::run_waves(Nanoseconds now, DecisionBudget& budget) {
  for (unsigned wave = 0;; ++wave) {
    recirculate_ = false;
    std::fill_n(next_.begin(), count_, nullptr);
    run_wave(now, budget);
    if (!recirculate_) {
      return;
    }
    std::swap(wave_, next_);
    if (wave + 1 == wave_limit) {
      for (std::size_t i = 0; i < count_; ++i) {
        if (wave_[i] != nullptr) {
          drop(wave_[i], drop::loop_limit);
        }
      }
      return;
    }
  }
}

// All packets by one rule: it is counted for the batch at once.
void CoreExecutor::run_blind(RuleIndex rule, Nanoseconds now) {
  RuleBody& body = cache_.body(rule);
  context_.stats.port_hits.add(lookups_);
  cache_.count_for_stages(body, lookups_);
  body.packets.add(lookups_);
  body.anchor.last_used.store(now, std::memory_order_relaxed);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < lookups_; ++i) {
    bytes += wave_[i]->length;
    execute(body.program, i, now);
  }
  body.bytes.add(bytes);
}

void CoreExecutor::run_wave(Nanoseconds now, DecisionBudget& budget) {
  lookups_ = 0;
  bool packet_stages = false;
  for (std::size_t i = 0; i < count_; ++i) {
    if (wave_[i] == nullptr) {
      continue;
    }
    if (context_.pipeline.stages[wave_[i]->stage].packet != nullptr) {
      packet_stages = true;
    } else {
      place_[lookups_++] = static_cast<std::uint8_t>(i);
    }
  }
  look_up(lookups_, budget);
  changed_ = false;
  for (std::size_t i = 0; i < lookups_; ++i) {
    handle(i, now, budget);
    wave_[place_[i]] = nullptr;  // it is somebody else's now
  }
  if (packet_stages && dry_) {
    for (Packet* packet : std::span(wave_).first(count_)) {
      if (packet != nullptr) {
        drop(packet, context_.state.reason(not_tried));
      }
    }
  } else if (packet_stages) {
    recirculate_ |= packet_stages_.run(std::span(wave_).first(count_), std::span(next_).first(count_), now);
  }
}

void CoreExecutor::look_up(std::size_t count, DecisionBudget& budget) {
  constexpr std::size_t ahead = 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) {
      __builtin_prefetch(wave_[place_[i + ahead]]->data);
    }
    Packet& packet = *wave_[place_[i]];
    Key& key = keys_[i];
    pull_up_and_parse(context_.frames, packet, key);
    key.ingress = packet.ingress;
    key.stage = packet.stage;
  }
  if (delivers_) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t egress = wave_[place_[i]]->egress;
      keys_[i].ingress = egress != 0 ? egress : keys_[i].ingress;
    }
  }
  exact_ = 0;
  if (!caching_) {
    std::fill_n(found_.begin(), count, no_rule);
    return;
  }
  // In a loop of its own: words read right after the bytes of a key were written would wait for the stores.
  const std::uint64_t seed = context_.state.seed();
  for (std::size_t i = 0; i < count; ++i) {
    hashes_[i] = hint_hash(keys_[i], seed);
    cache_.prefetch_hint(hashes_[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    found_[i] = cache_.hint(hashes_[i]);
    if (found_[i] != no_rule) {
      cache_.prefetch_rule(found_[i]);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (found_[i] != no_rule) {
      if (cache_.matches(found_[i], keys_[i])) [[likely]] {
        ++exact_;
        prefetch_program(cache_.body(found_[i]).program);
      } else {
        found_[i] = no_rule;
      }
    }
    if (i >= ahead && found_[i - ahead] != no_rule) {
      prefetch_connection(cache_.body(found_[i - ahead]).program);
    }
  }
  for (std::size_t i = count - std::min(count, ahead); i < count; ++i) {
    if (found_[i] != no_rule) {
      prefetch_connection(cache_.body(found_[i]).program);
    }
  }
  context_.stats.exact_hits.add(exact_);
  if (exact_ < count) {
    const Nanoseconds before = SystemClock::read();
    cache_.find_masked(std::span(keys_).first(count), std::span(hashes_).first(count), std::span(found_).first(count));
    const auto took = static_cast<std::int64_t>(SystemClock::read() - before);
    const auto missing = static_cast<std::size_t>(
        std::count(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(count), no_rule));
    context_.stats.masked_hits.add(count - exact_ - missing);
    // Those that find nothing pay: somebody else's masks must not use up the budget of flows that are known.
    budget.tokens -= took * static_cast<std::int64_t>(missing) / static_cast<std::int64_t>(count - exact_);
  }
}

bool CoreExecutor::guards_hold(const RuleBody& body, std::size_t i) const {
  for (unsigned g = 0; g < body.guard_count; ++g) {
    const std::uint32_t bits = body.guards[g].bits;
    const std::uint32_t number = bits & 0xffffffU;
    bool holds = false;
    switch (static_cast<GuardKind>(bits >> 24U & 0x7fU)) {
      case GuardKind::ttl_above:
        holds = keys_[i].ttl > number;
        break;
      case GuardKind::fits:
        holds = l3_length(*wave_[place_[i]]) <= number;
        break;
      case GuardKind::frame_fits:
        holds = frame_length(*wave_[place_[i]]) <= number;
        break;
      case GuardKind::sctp_data: {
        const Packet& packet = *wave_[place_[i]];
        const std::size_t chunk = packet.l4 + sizeof(SctpHeader);
        holds = chunk + 4 <= packet.head() && !sctp_chunk::opens_or_closes(packet.data[chunk]);
        break;
      }
      case GuardKind::flags:
        holds = (keys_[i].tcp_flags & number >> 8U) == (number & 0xffU);
        break;
    }
    if (holds != (bits >> 31U != 0)) {
      return false;
    }
  }
  return true;
}

// Packets run in the order they came in. What the bulk look-up found is provisional: a decision made since may have
// cleared the rule, or installed one.
void CoreExecutor::handle(std::size_t i, Nanoseconds now, DecisionBudget& budget) {
  RuleIndex rule = found_[i];
  if (rule != no_rule) {
    RuleBody& body = cache_.body(rule);
    if (body.anchor.valid.load(std::memory_order_acquire) != 0 && (body.guard_count == 0 || guards_hold(body, i)))
        [[likely]] {
      cache_.count_for_stages(body);
      hit(body, i, now);
      return;
    }
  }
  if (caching_ && (rule != no_rule || changed_)) {
    rule =
        cache_.find(keys_[i], hashes_[i], [&](RuleIndex candidate) { return guards_hold(cache_.body(candidate), i); });
    if (rule != no_rule) {
      context_.stats.masked_hits.add();
      cache_.count_for_stages(cache_.body(rule));
      hit(cache_.body(rule), i, now);
      return;
    }
  }
  if (budget.limited && budget.tokens <= 0) {
    drop(wave_[place_[i]], drop::decision_budget);
    return;
  }
  decide(i, now, budget);
}

void CoreExecutor::hit(RuleBody& body, std::size_t i, Nanoseconds now) {
  body.packets.add();
  body.bytes.add(wave_[place_[i]]->length);
  body.anchor.last_used.store(now, std::memory_order_relaxed);
  execute(body.program, i, now);
}

void CoreExecutor::decide(std::size_t i, Nanoseconds now, DecisionBudget& budget) {
  const Nanoseconds before = SystemClock::read();
  context_.stats.misses.add();
  changed_ = true;
  const Packet& packet = *wave_[place_[i]];
  flow_.decide(keys_[i], {l3_length(packet), frame_length(packet), &packet}, now);
  const Rule& rule = flow_.rule();
  RuleIndex index = no_rule;
  if (caching_) {
    if (rule.not_cacheable.empty()) {
      index = cache_.install(rule, keys_[i], hashes_[i], now);
    }
    if (index == no_rule) {
      context_.stats.not_installed.add();
    }
  }
  const auto took = static_cast<std::int64_t>(SystemClock::read() - before);
  budget.tokens -= took;
  auto& first = context_.stats.stages[keys_[i].stage];
  first.decision_ns.add(static_cast<std::uint64_t>(took));
  for (std::uint64_t stages = rule.stages; stages != 0; stages &= stages - 1) {
    context_.stats.stages[static_cast<std::size_t>(std::countr_zero(stages))].decisions.add();
  }
  if (index != no_rule) {
    RuleBody& body = cache_.body(index);
    cache_.count_for_stages(body);
    body.packets.add();
    body.bytes.add(wave_[place_[i]]->length);
    execute(body.program, i, now);
  } else {
    scratch_.compile(dry_ ? without_effects(rule, context_.state) : rule);
    execute(scratch_, i, now);
  }
}

}  // namespace weir
