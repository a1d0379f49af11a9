#include <weir/flow/traced_flow.h>

#include <algorithm>
#include <exception>

#include <weir/packet/ethernet.h>
#include <weir/packet/flow_hash.h>
#include <weir/packet/sctp.h>

namespace weir {

namespace {

constexpr unsigned stage_hops_limit = 64;

}  // namespace

void TracedFlow::decide(const Key& key, const PacketFacts& facts, Nanoseconds now) {
  forget();
  rule_.clear();
  now_ = now;
  original_ = current_ = key;
  rewritten_ = consulted_ = Key{};
  layout_consulted_ = false;
  tag_origin_ = {0, 1};
  parts_ = 0;
  ttl_taken_ = 0;
  ttl_set_ = false;
  set_fields_ = 0;
  facts_ = facts;
  transport_read_ = false;
  encapsulated_ = false;
  closed_by_ = nullptr;
  decapsulated_ = false;
  trap_ = false;
  stage_ = key.stage;
  egress_ = {};
  if (pipeline_.delivers && (key.ingress & Key::delivery_bit) != 0) {
    egress_.number = static_cast<std::uint16_t>(key.ingress & ~Key::delivery_bit);
  }
  if (observer_ != nullptr) [[unlikely]] {
    observer_->begin(key);
  }
  try {
    run();
  } catch (const StageError& error) {
    state_.report(pipeline_.stages[stage_].name, error.message);
    finish_drop(drop::stage_error);
  } catch (const Unrewritable&) {
    finish_drop(drop::unrewritable);
  } catch (const std::exception& error) {
    state_.report(pipeline_.stages[stage_].name, error.what());
    finish_drop(drop::stage_error);
    rule_.not_cacheable = "the stage threw an exception";
  } catch (...) {
    state_.report(pipeline_.stages[stage_].name, "threw something that is not a std::exception");
    finish_drop(drop::stage_error);
    rule_.not_cacheable = "the stage threw an exception";
  }
  if (trap_) {
    rule_.not_cacheable = "the stage asked for every packet";
  }
  set_match();
  if (observer_ != nullptr) [[unlikely]] {
    observer_->decided(rule_);
  }
}

void TracedFlow::run() {
  for (unsigned hops = 0; hops < stage_hops_limit; ++hops) {
    const Pipeline::Node& node = pipeline_.stages[stage_];
    if (node.packet != nullptr) {
      act({.kind = ActionKind::enter, .number = enter_number(stage_)});
      return;
    }
    rule_.stages |= std::uint64_t{1} << std::min<unsigned>(stage_, 63);
    if (observer_ != nullptr) [[unlikely]] {
      observer_->stage(stage_);
    }
    const Verdict verdict = node.flow->decide(*this);
    std::uint32_t next = Pipeline::nowhere;
    if (verdict.kind == Verdict::Kind::next) {
      next = node.outputs.empty() ? Pipeline::nowhere : node.outputs[0];
    } else if (verdict.kind == Verdict::Kind::to) {
      next = verdict.number;
    } else if (verdict.kind == Verdict::Kind::output && !egress_.valid()) {
      next = begin_delivery(verdict.number);
      if (next == Pipeline::nowhere) {
        finish(verdict);
        return;
      }
    } else {
      finish(verdict);
      return;
    }
    if (next == Pipeline::nowhere && egress_.valid()) {
      act({.kind = ActionKind::output, .number = egress().number});
      return;
    }
    if (next == Pipeline::nowhere) {
      finish({Verdict::Kind::drop, 0, drop::unconnected});
      return;
    }
    if (decapsulated_) {
      act({.kind = ActionKind::enter, .number = enter_number(next)});
      return;
    }
    stage_ = static_cast<std::uint8_t>(next);
  }
  finish({Verdict::Kind::drop, 0, drop::loop_limit});
}

// Of a decapsulated packet nothing is known: it is looked up where its delivery begins.
std::uint8_t TracedFlow::begin_delivery(std::uint32_t port) {
  if (!pipeline_.delivers || encapsulated_ || port >= max_ports) {
    return Pipeline::nowhere;
  }
  const PortId to{static_cast<std::uint16_t>(port)};
  const Deliveries::Entry entry = state_.deliveries().look_up(to);
  depend(entry.dependency);
  if (entry.stage != Pipeline::nowhere) {
    egress_ = to;
    current_.ingress = static_cast<std::uint16_t>(Key::delivery_bit | to.number);
    rewritten_.ingress = 0xffff;
    parts_ |= rewritten::way;
  }
  return entry.stage;
}

std::uint32_t TracedFlow::enter_number(std::uint32_t stage) {
  return egress_.valid() ? stage | (std::uint32_t{Key::delivery_bit} | egress().number) << 16U : stage;
}

void TracedFlow::finish(const Verdict& verdict) {
  if (verdict.kind != Verdict::Kind::drop && verdict.kind != Verdict::Kind::reject) {
    require_no_delivery("output, flood, select, to_host or resolve");
  }
  switch (verdict.kind) {
    case Verdict::Kind::output:
      return act({.kind = ActionKind::output, .number = verdict.number});
    case Verdict::Kind::flood:
      return act({.kind = ActionKind::flood, .number = verdict.number});
    case Verdict::Kind::select:
      return act({.kind = ActionKind::select, .object = verdict.group});
    case Verdict::Kind::reject:
      require_open("reject");
      return act({.kind = ActionKind::reject, .reason = verdict.reason, .number = verdict.number});
    case Verdict::Kind::drop:
      return act({.kind = ActionKind::drop, .reason = verdict.reason});
    case Verdict::Kind::to_host:
      require_open("to_host");
      return act({.kind = ActionKind::to_host});
    case Verdict::Kind::resolve:
      undo();
      return act({.kind = ActionKind::resolve, .number = verdict.number, .value = to_field(verdict.address)});
    case Verdict::Kind::next:
    case Verdict::Kind::to:
      break;  // not final
  }
}

void TracedFlow::undo() {
  rule_.actions.clear();
  rule_.tunnels.clear();
  rule_.quoted.clear();
}

// A decision that failed does nothing but drop.
void TracedFlow::finish_drop(ReasonId reason) {
  undo();
  act({.kind = ActionKind::drop, .reason = reason});
}

void TracedFlow::set_match() {
  rule_.mask = consulted_;
  rule_.mask.stage = 0xff;
  if (layout_consulted_) {
    rule_.mask.layout = 0xffff;
  }
  if (pipeline_.delivers) {
    rule_.mask.ingress |= Key::delivery_bit;
  }
  rule_.value = original_ & rule_.mask;
}

PortId TracedFlow::ingress() {
  require_no_delivery("ingress");
  consulted_.ingress = 0xffff;
  return PortId{original_.ingress};
}

PortId TracedFlow::egress() {
  if (!egress_.valid()) {
    throw StageError{"egress outside of a delivery stage; only there it is known"};
  }
  consulted_.ingress = static_cast<std::uint16_t>(consulted_.ingress | ~rewritten_.ingress);
  return egress_;
}

Layout TracedFlow::layout() {
  require_open("a look at the packet");
  if (!layout_consulted_ && observer_ != nullptr) [[unlikely]] {
    observer_->layout(Layout{current_.layout});
  }
  layout_consulted_ = true;
  return Layout{current_.layout};
}

bool TracedFlow::peek(FieldId field, FieldValue& value) {
  const Layout now = layout();
  if (!present(field, now)) {
    return false;
  }
  value = extract(field, current_);
  return true;
}

void TracedFlow::consult(FieldId field, const FieldValue& mask) {
  if (field == FieldId::eth_type && Layout{current_.layout}.l3() != L3::none) {
    return;  // told by the layout
  }
  FieldValue sized = mask;
  if (spec(field).bytes == 16 && Layout{current_.layout}.l3() != L3::ipv6) {
    std::fill(sized.bytes.begin() + 4, sized.bytes.end(), 0);
  }
  if (observer_ != nullptr) [[unlikely]] {
    observer_->read(field, extract(field, current_), sized);
  }
  Key bits;
  deposit(field, sized, bits);
  consult_key(bits);
}

Key TracedFlow::key() {
  layout();
  return current_;
}

void TracedFlow::consult_key(const Key& mask) {
  Key fresh;
  for (std::size_t i = 0; i < Key::words; ++i) {
    fresh.set_word(i, mask.word(i) & ~rewritten_.word(i));
  }
  fresh.stage = 0;
  if (ttl_taken_ != 0 && mask.ttl != 0 && !ttl_set_) {
    fresh.ttl = 0xff;  // the difference depends on all bits
  }
  if ((parts_ & rewritten::tags) != 0) {
    // Bits of a tag are bits of the tag it was.
    const std::array wanted{fresh.vlan, fresh.vlan_inner};
    fresh.vlan = fresh.vlan_inner = {};
    for (std::size_t slot = 0; slot < 2; ++slot) {
      if (wanted[slot] == std::array<std::uint8_t, 2>{}) {
        continue;
      }
      auto& to = tag_origin_[slot] == 0 ? fresh.vlan : fresh.vlan_inner;
      if (tag_origin_[slot] >= 0) {
        to[0] |= wanted[slot][0];
        to[1] |= wanted[slot][1];
      }
    }
  }
  if (fresh.layout != 0) {
    layout_consulted_ = true;
    fresh.layout = 0;
  }
  consulted_ = consulted_ | fresh;
}

void TracedFlow::depend(const KeyedDependency& dependency) {
  // What was looked at first decides whether the rule still stands.
  const auto same = [&](const KeyedDependency& other) {
    return other.stripe == dependency.stripe && other.refreshed == dependency.refreshed &&
           other.token == dependency.token;
  };
  if (std::ranges::any_of(rule_.keyed, same)) {
    return;
  }
  if (rule_.keyed.size() == Rule::keyed_limit) {
    rule_.not_cacheable = "it looked up more than 24 keys";
    return;
  }
  rule_.keyed.push_back(dependency);
}

bool TracedFlow::guard(GuardKind kind, std::uint32_t number, bool holds) {
  const Guard guard{kind, holds, number};
  if (observer_ != nullptr) [[unlikely]] {
    observer_->guarded(kind, number, holds);
  }
  if (std::ranges::find(rule_.guards, guard) == rule_.guards.end()) {
    if (rule_.guards.size() == Rule::guard_limit) {
      rule_.not_cacheable = "it has more than 4 guards";
    } else {
      rule_.guards.push_back(guard);
    }
  }
  return holds;
}

// The layout says which fields the hash is made of.
std::uint64_t TracedFlow::hash() {
  require_open("a pick");
  if (observer_ != nullptr) [[unlikely]] {
    observer_->layout(Layout{original_.layout});
  }
  layout_consulted_ = true;
  Key hashed;
  if (const Layout layout{original_.layout}; layout.ip()) {
    std::fill_n(hashed.src.begin(), layout.l3() == L3::ipv6 ? 16 : 4, 0xff);
    std::fill_n(hashed.dst.begin(), layout.l3() == L3::ipv6 ? 16 : 4, 0xff);
  } else {
    hashed.eth_src.fill(0xff);
    hashed.eth_dst.fill(0xff);
  }
  hashed.protocol = 0xff;
  hashed.src_port.fill(0xff);
  hashed.dst_port.fill(0xff);
  consulted_ = consulted_ | hashed;
  return flow_hash(original_, state_.seed());
}

bool TracedFlow::test_flags(Flags flags) {
  const bool holds = (original_.tcp_flags & flags.mask) == flags.wanted;
  return guard(GuardKind::flags, std::uint32_t{flags.mask} << 8U | flags.wanted, holds);
}

const TransportFacts& TracedFlow::transport() {
  require_open("a look at the connection");
  if (facts_.packet == nullptr) {
    throw StageError{"a look at the connection where there is no packet"};
  }
  if (!transport_read_) {
    const Packet& packet = *facts_.packet;
    transport_ = read_transport({.frame = {packet.data, packet.head()},
                                 .layout = packet.layout,
                                 .l3 = packet.l3,
                                 .l4 = packet.l4,
                                 .frame_bytes = packet.length,
                                 .segments = packet.offload.gso_size != 0});
    transport_read_ = true;
  }
  return transport_;
}

// First of all actions: what others do to the packet must not matter.
void TracedFlow::track(const Track& track) {
  const Action action = action_of(track);
  rule_.actions.insert(rule_.actions.begin(), action);
  if (observer_ != nullptr) [[unlikely]] {
    observer_->acted(action);
  }
}

void TracedFlow::translate_quoted(const QuotedTranslation& translation) {
  require_open("a translation");
  transport_.quoted.apply(translation);
  act({.kind = ActionKind::translate_quoted, .number = static_cast<std::uint32_t>(rule_.quoted.size())});
  rule_.quoted.push_back(translation);
}

bool TracedFlow::test_sctp_data() {
  return guard(GuardKind::sctp_data, 0, transport_.whole && !sctp_chunk::opens_or_closes(transport_.chunk));
}

void TracedFlow::require_no_delivery(const char* what) const {
  if (egress_.valid()) {
    throw StageError{fmt::format(
        "{} in a delivery stage; there is egress, and the packet is passed on by next, dropped or rejected", what)};
  }
}

void TracedFlow::require_open(const char* what) const {
  if (closed_by_ != nullptr) {
    throw StageError{fmt::format("{} after {}", what, closed_by_)};
  }
}

std::uint32_t TracedFlow::stage_number(const void* stage) {
  for (std::size_t i = 0; i < pipeline_.stages.size(); ++i) {
    if (pipeline_.stages[i].flow == stage || pipeline_.stages[i].packet == stage) {
      return static_cast<std::uint32_t>(i);
    }
  }
  throw StageError{"passed a packet to a stage that is not in the graph"};
}

}  // namespace weir
