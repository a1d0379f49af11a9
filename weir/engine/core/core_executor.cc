#include <weir/engine/core/core_executor.h>

#include <algorithm>
#include <utility>

#include <weir/engine/reject.h>
#include <weir/packet/edit.h>
#include <weir/packet/flow_hash.h>
#include <weir/packet/parse.h>
#include <weir/packet/vxlan.h>

namespace weir {

namespace {

// Passes through the graph that a packet may make.
constexpr unsigned wave_limit = 16;

}  // namespace

CoreExecutor::CoreExecutor(const ExecutorContext& context, CoreOptions options)
    : context_(context),
      cache_(context.state, context.stats, options.rule_cache == 0 ? 64 : options.rule_cache, options.masks),
      flow_(context.state, context.pipeline),
      caching_(options.rule_cache != 0) {}

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
      run_blind(rule, now);
      return;
    }
  }
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

void CoreExecutor::run_blind(RuleIndex rule, Nanoseconds now) {
  RuleBody& body = cache_.body(rule);
  context_.stats.port_hits.add(lookups_);
  for (std::size_t i = 0; i < lookups_; ++i) {
    hit(body, i, now);
  }
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
  if (packet_stages) {
    run_packet_stages();
  }
}

void CoreExecutor::look_up(std::size_t count, DecisionBudget& budget) {
  constexpr std::size_t ahead = 4;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + ahead < count) {
      __builtin_prefetch(wave_[place_[i + ahead]]->data);
    }
    Packet& packet = *wave_[place_[i]];
    if (needs_pull_up(packet)) [[unlikely]] {
      context_.frames.pull_up(packet, std::min(packet.length, Packet::header_bytes));
    }
    Key& key = keys_[i];
    parse(packet, key);
    key.ingress = packet.ingress;
    key.stage = packet.stage;
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
      } else {
        found_[i] = no_rule;
      }
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
      hit(body, i, now);
      return;
    }
  }
  if (caching_ && (rule != no_rule || changed_)) {
    rule =
        cache_.find(keys_[i], hashes_[i], [&](RuleIndex candidate) { return guards_hold(cache_.body(candidate), i); });
    if (rule != no_rule) {
      context_.stats.masked_hits.add();
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
  flow_.decide(keys_[i], {l3_length(packet), frame_length(packet)}, now);
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
    body.packets.add();
    body.bytes.add(wave_[place_[i]]->length);
    execute(body.program, i, now);
  } else {
    scratch_.compile(rule);
    execute(scratch_, i, now);
  }
}

std::uint64_t CoreExecutor::hash_of(std::size_t i) const { return flow_hash(keys_[i], context_.state.seed()); }

void CoreExecutor::execute(const Program& program, std::size_t i, Nanoseconds now) {
  const std::size_t place = place_[i];
  Packet* packet = wave_[place];
  for (const Operation* operation = program.begin();; operation = operation->next()) {
    switch (operation->op) {
      case Op::set_macs:
        std::memcpy(packet->data, operation->bytes(), 12);
        break;
      case Op::set_eth_dst:
        std::memcpy(packet->data, operation->bytes(), 6);
        break;
      case Op::set_eth_src:
        std::memcpy(packet->data + 6, operation->bytes(), 6);
        break;
      case Op::set_vlan: {
        std::uint8_t* tag = packet->data + 14 + 4 * operation->slot;
        for (unsigned b = 0; b < 2; ++b) {
          tag[b] = static_cast<std::uint8_t>((tag[b] & ~operation->bytes()[b + 2]) | operation->bytes()[b]);
        }
        break;
      }
      case Op::set_src:
        edit::set_address(*packet, 0, operation->bytes());
        break;
      case Op::set_dst:
        edit::set_address(*packet, 1, operation->bytes());
        break;
      case Op::set_src_port:
        edit::set_port(*packet, 0, operation->bytes());
        break;
      case Op::set_dst_port:
        edit::set_port(*packet, 1, operation->bytes());
        break;
      case Op::set_tos:
        edit::set_tos(*packet, operation->bytes()[0], operation->bytes()[1]);
        break;
      case Op::set_ttl:
        edit::set_ttl(*packet, static_cast<std::uint8_t>(operation->number));
        break;
      case Op::decrement_ttl:
        edit::decrement_ttl(*packet);
        break;
      case Op::push_vlan:
        if (!edit::push_vlan(context_.frames, *packet, static_cast<std::uint16_t>(operation->number))) {
          return drop(packet, drop::no_headroom);
        }
        break;
      case Op::pop_vlan:
        edit::pop_vlan(*packet);
        break;
      case Op::encapsulate:
        if (!encapsulate(operation->operand<Tunnel>(), *packet, hash_of(i))) {
          return drop(packet, drop::no_headroom);
        }
        break;
      case Op::decapsulate:
        // Its key becomes the inner packet's, whose hash a select goes by.
        if (ReasonId reason = 0; !decapsulate(*packet, keys_[i], reason)) {
          return drop(packet, reason);
        }
        break;
      case Op::count:
        operation->operand<Counter*>()->add(context_.worker, packet->length);
        break;
      case Op::meter:
        if (!operation->operand<Meter*>()->conforms(packet->length, now)) {
          return drop(packet, drop::metered);
        }
        break;
      case Op::mirror:
        copy_to(operation->number, *packet);
        break;
      case Op::output:
        return emit(operation->number, packet);
      case Op::flood:
        return flood(packet, static_cast<std::uint16_t>(operation->number));
      case Op::select:
        return select(packet, *operation->operand<const Group*>(), hash_of(i));
      case Op::reject:
        return reject(packet, operation->number, operation->operand<ReasonId>(), now);
      case Op::drop:
        return drop(packet, static_cast<ReasonId>(operation->number));
      case Op::enter:
        packet->stage = static_cast<std::uint8_t>(operation->number);
        next_[place] = packet;
        recirculate_ = true;
        return;
    }
  }
}

bool CoreExecutor::encapsulate(const Tunnel& tunnel, Packet& packet, std::uint64_t hash) {
  edit::finish_checksum(packet);
  const std::uint8_t ecn = packet.layout.ip() ? edit::tos(packet) & 3U : 0;
  const std::uint32_t inner = packet.length;
  std::uint8_t* at = context_.frames.push_front(packet, tunnel.bytes);
  if (at == nullptr) {
    return false;
  }
  std::memcpy(at, tunnel.header.data(), tunnel.bytes);
  const auto udp_length = static_cast<std::uint16_t>(inner + 16);
  std::uint8_t* udp = at + tunnel.bytes - 16;
  std::uint8_t* l3 = at + 14;
  if (tunnel.v6) {
    auto& ip = *reinterpret_cast<Ipv6Header*>(l3);
    ip.payload_length = udp_length;
    l3[1] = static_cast<std::uint8_t>(l3[1] | ecn << 4U);
  } else {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    ip.total_length = static_cast<std::uint16_t>(udp_length + sizeof(Ipv4Header));
    ip.tos = static_cast<std::uint8_t>(ip.tos | ecn);
    ip.checksum =
        static_cast<std::uint16_t>(~checksum::fold(std::uint64_t{tunnel.checksum_base} + ip.total_length + ecn));
  }
  store_big<std::uint16_t>(udp, static_cast<std::uint16_t>(49152U + (hash >> 32U & 0x3fffU)));
  store_big<std::uint16_t>(udp + 4, udp_length);
  packet.layout = {};
  packet.l3 = 14;
  packet.l4 = 0;
  packet.payload = tunnel.bytes;
  return true;
}

bool CoreExecutor::decapsulate(Packet& packet, Key& key, ReasonId& reason) {
  edit::finish_checksum(packet);  // of the inner packet, if its sender left that to a device
  const std::uint8_t outer_ecn = edit::tos(packet) & 3U;
  const std::uint8_t* vni = packet.data + packet.payload - 4;
  const std::uint32_t number = static_cast<std::uint32_t>(vni[0] << 16U | vni[1] << 8U | vni[2]);
  PacketCache::pop_front(packet, packet.payload);
  packet.offload = {};
  packet.tunnel = 1;
  packet.vni = number;
  if (needs_pull_up(packet)) {
    context_.frames.pull_up(packet, std::min(packet.length, Packet::header_bytes));
  }
  parse(packet, key);
  if (!packet.layout.ip() || outer_ecn == 0) {
    return true;
  }
  // RFC 6040, section 4.2.
  const std::uint8_t inner_ecn = edit::tos(packet) & 3U;
  if (outer_ecn == 3 && inner_ecn == 0) {
    reason = drop::tunnel_ecn;
    return false;
  }
  if (outer_ecn == 3 && inner_ecn != 3) {
    edit::set_tos(packet, 3, 3);
  } else if (outer_ecn == 1 && inner_ecn == 2) {
    edit::set_tos(packet, 1, 3);
  }
  return true;
}

void CoreExecutor::flood(Packet* packet, std::uint16_t vlan) {
  const std::uint16_t ingress = packet->ingress;
  PortId last;
  for (const PortId port : context_.state.flood_domains().ports(vlan)) {
    if (port.number == ingress) {
      continue;
    }
    if (last.valid()) {
      copy_to(last.number, *packet);
    }
    last = port;
  }
  if (last.valid()) {
    emit(last.number, packet);
  } else {
    drop(packet, drop::flood_empty);
  }
}

void CoreExecutor::select(Packet* packet, const Group& group, std::uint64_t hash) {
  const Member* member = group.members().pick(hash);
  if (member == nullptr) {
    return drop(packet, drop::no_member);
  }
  if (member->rewrite && packet->layout.ethernet()) {
    std::memcpy(packet->data, member->dst.bytes.data(), 6);
    std::memcpy(packet->data + 6, member->src.bytes.data(), 6);
  }
  emit(member->port.number, packet);
}

void CoreExecutor::reject(Packet* packet, std::uint32_t what, ReasonId reason, Nanoseconds now) {
  Packet* message = make_reject(context_.state, context_.ports, context_.frames, *packet, what, now);
  if (message != nullptr) {
    context_.stats.originated.add();
    emit(message->ingress, message);
  }
  drop(packet, reason);
}

void CoreExecutor::emit(std::uint32_t port, Packet* packet) {
  if (!context_.ports.known(port)) [[unlikely]] {
    return drop(packet, drop::port_unknown);
  }
  if (!context_.ports.ports[port].up.load(std::memory_order_relaxed)) [[unlikely]] {
    return drop(packet, drop::port_down);
  }
  context_.outputs.push(port, packet);
}

void CoreExecutor::copy_to(std::uint32_t port, const Packet& packet) {
  context_.stats.cloned.add();
  Packet* copy = context_.frames.clone(packet);
  if (copy == nullptr) {
    context_.stats.drop(drop::no_frames);
    return;
  }
  emit(port, copy);
}

void CoreExecutor::drop(Packet* packet, ReasonId reason) {
  context_.stats.drop(reason);
  context_.frames.free(packet);
}

void CoreExecutor::run_packet_stages() {
  std::array<bool, 256> waiting{};
  for (std::size_t i = 0; i < count_; ++i) {
    if (wave_[i] != nullptr) {
      waiting[wave_[i]->stage] = true;
    }
  }
  for (std::size_t stage = 0; stage < context_.pipeline.stages.size(); ++stage) {
    if (waiting[stage] && context_.pipeline.stages[stage].packet != nullptr) {
      run_packet_stage(static_cast<std::uint8_t>(stage));
    }
  }
}

void CoreExecutor::run_packet_stage(std::uint8_t stage) {
  const Pipeline::Node& node = context_.pipeline.stages[stage];
  std::array<Packet*, batch_limit> packets;
  std::array<std::uint8_t, batch_limit> places;
  std::size_t count = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (wave_[i] != nullptr && wave_[i]->stage == stage) {
      packets[count] = std::exchange(wave_[i], nullptr);  // it may go on to a stage that runs after this one
      places[count++] = static_cast<std::uint8_t>(i);
    }
  }
  Batch batch(std::span<Packet*>(packets.data(), count), context_.state, context_.worker);
  node.packet->process(batch);
  context_.stats.stages[stage].processed.add(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Batch::Fate fate = batch.fate(i);
    if (fate.dropped) {
      drop(packets[i], fate.number);
    } else if (fate.number >= node.outputs.size() || node.outputs[fate.number] == Pipeline::nowhere) {
      drop(packets[i], drop::unconnected);
    } else {
      packets[i]->stage = node.outputs[fate.number];
      next_[places[i]] = packets[i];
      recirculate_ = true;
    }
  }
}

}  // namespace weir
