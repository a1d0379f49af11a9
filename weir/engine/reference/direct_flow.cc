#include <weir/engine/reference/direct_flow.h>

#include <algorithm>
#include <exception>

#include <weir/engine/reference/flow_hash.h>
#include <weir/engine/reference/rewrite.h>
#include <weir/engine/reference/tunnel.h>
#include <weir/packet/sctp.h>

namespace weir {

namespace {

// Stages that one decision may run.
constexpr unsigned hop_limit = 64;

}  // namespace

void DirectFlow::decide(reference::Frame frame, Nanoseconds now) {
  forget();
  now_ = now;
  frame_ = std::move(frame);
  headers_ = reference::parse(frame_);
  arrived_ = headers_.layout;
  hash_ = reference::flow_hash(frame_, headers_, state_.seed());
  transport_ = read_transport({.frame = frame_.bytes,
                               .layout = arrived_,
                               .l3 = headers_.l3,
                               .l4 = headers_.l4,
                               .frame_bytes = frame_.length(),
                               .segments = frame_.offload.gso_size != 0});
  closed_by_ = nullptr;
  encapsulated_ = false;
  decapsulated_ = false;
  stage_ = frame_.stage;
  stages_ = 0;
  effects_.clear();
  set_.clear();
  try {
    verdict_ = run();
  } catch (const StageError& error) {
    state_.report(pipeline_.stages[stage_].name, error.message);
    verdict_ = failed(drop::stage_error);
  } catch (const Unrewritable&) {
    verdict_ = failed(drop::unrewritable);
  } catch (const std::exception& error) {
    state_.report(pipeline_.stages[stage_].name, error.what());
    verdict_ = failed(drop::stage_error);
  } catch (...) {
    state_.report(pipeline_.stages[stage_].name, "threw something that is not a std::exception");
    verdict_ = failed(drop::stage_error);
  }
}

Verdict DirectFlow::run() {
  for (unsigned hop = 0; hop < hop_limit; ++hop) {
    const Pipeline::Node& node = pipeline_.stages[stage_];
    if (node.packet != nullptr) {
      return {Verdict::Kind::to, stage_};
    }
    stages_ |= std::uint64_t{1} << std::min<unsigned>(stage_, 63);
    const Verdict verdict = node.flow->decide(*this);
    std::uint32_t next = Pipeline::nowhere;
    switch (verdict.kind) {
      case Verdict::Kind::next:
        next = node.outputs.empty() ? Pipeline::nowhere : node.outputs.front();
        break;
      case Verdict::Kind::to:
        next = verdict.number;
        break;
      case Verdict::Kind::reject:
        require_open("reject");  // the message quotes the packet, and there is another around or inside it
        return verdict;
      case Verdict::Kind::to_host:
        require_no_delivery("to_host");
        require_open("to_host");
        return verdict;
      case Verdict::Kind::resolve:
        require_no_delivery("resolve");
        effects_.clear();  // they come when the packet is run again
        return verdict;
      case Verdict::Kind::output:
        require_no_delivery("output");
        next = begin_delivery(verdict.number);
        if (next == Pipeline::nowhere) {
          return verdict;
        }
        break;
      case Verdict::Kind::flood:
      case Verdict::Kind::select:
        require_no_delivery("flood or select");
        return verdict;
      case Verdict::Kind::drop:
        return verdict;
    }
    if (next == Pipeline::nowhere && frame_.egress != 0) {
      return {Verdict::Kind::output, egress().number};
    }
    if (next == Pipeline::nowhere) {
      return {Verdict::Kind::drop, 0, drop::unconnected};
    }
    if (decapsulated_) {
      return {Verdict::Kind::to, next};
    }
    stage_ = static_cast<std::uint8_t>(next);
  }
  return {Verdict::Kind::drop, 0, drop::loop_limit};
}

// Where the packet goes on before it leaves by the port; nowhere: it just leaves.
std::uint8_t DirectFlow::begin_delivery(std::uint32_t port) {
  const std::uint8_t stage = encapsulated_ || !pipeline_.delivers ? Pipeline::nowhere : state_.deliveries().stage(port);
  if (stage != Pipeline::nowhere) {
    frame_.egress = static_cast<std::uint16_t>(Key::delivery_bit + port);
  }
  return stage;
}

PortId DirectFlow::ingress() {
  require_no_delivery("ingress");
  return PortId{frame_.ingress};
}

PortId DirectFlow::egress() {
  if (frame_.egress == 0) {
    throw StageError{"egress outside of a delivery stage; only there it is known"};
  }
  return PortId{static_cast<std::uint16_t>(frame_.egress - Key::delivery_bit)};
}

// A decision that failed does nothing but drop.
Verdict DirectFlow::failed(ReasonId reason) {
  effects_.clear();
  return {Verdict::Kind::drop, 0, reason};
}

Layout DirectFlow::layout() {
  require_open("a look at the packet");
  // Tags come and go. Anything else that a packet is cannot be rewritten.
  Layout now = arrived_;
  now.set_tags(headers_.layout.tags());
  return now;
}

Key DirectFlow::key() {
  const Layout now = layout();
  Key key = key_of(frame_, headers_);
  key.layout = now.bits;
  return key;
}

bool DirectFlow::peek(FieldId field, FieldValue& value) {
  if (!present(field, layout())) {
    return false;
  }
  value = extract(field, key());
  return true;
}

std::uint64_t DirectFlow::hash() {
  require_open("a pick");
  return hash_;
}

bool DirectFlow::test_flags(Flags flags) { return (key().tcp_flags & flags.mask) == flags.wanted; }

const TransportFacts& DirectFlow::transport() {
  require_open("a look at the connection");
  return transport_;
}

// First of all effects: what others do to the packet must not matter.
void DirectFlow::track(const Track& track) {
  const TcpSegment segment{transport_.sequence, transport_.acknowledgment, transport_.payload, transport_.window};
  effects_.insert(effects_.begin(), Tracked{track, segment});
}

void DirectFlow::translate_quoted(const QuotedTranslation& translation) {
  require_open("a translation");
  transport_.quoted.apply(translation);
  reference::translate_quoted(frame_, headers_, translation);
  parse_again();
}

bool DirectFlow::test_sctp_data() { return transport_.whole && !sctp_chunk::opens_or_closes(transport_.chunk); }

bool DirectFlow::decrement_ttl() {
  if (!layout().ip()) {
    throw StageError{"decrement_ttl on a packet without IP; ask has(layers::ip) first"};
  }
  const std::uint8_t ttl = key().ttl;
  if (ttl <= 1) {
    return false;
  }
  reference::set_ttl(frame_, headers_, static_cast<std::uint8_t>(ttl - 1));
  parse_again();
  return true;
}

bool DirectFlow::fits(std::uint32_t mtu) {
  if (decapsulated_) {
    throw StageError{"fits after decapsulate; ask in the next stage"};
  }
  return l3_length(frame_, headers_) <= mtu;
}

void DirectFlow::set_field(FieldId field, const FieldValue& value) {
  require_open("a set");
  const FieldSpec& s = spec(field);
  const Layout now = layout();
  if (!s.settable) {
    throw StageError{fmt::format("{} cannot be set", s.name)};
  }
  if (!present(field, now)) {
    throw StageError{fmt::format("set of {} on a packet that has none; ask first", s.name)};
  }
  const bool address = field == FieldId::ip_src || field == FieldId::ip_dst;
  if (address && value.v6 != (now.l3() == L3::ipv6)) {
    throw StageError{fmt::format("set of {} to an address of the other family", s.name)};
  }
  const bool port = field == FieldId::l4_src_port || field == FieldId::l4_dst_port;
  if (port && now.l4() == L4::sctp && now.fragment()) {
    throw Unrewritable{};
  }
  set_.insert(field);
  reference::set(frame_, headers_, field, value);
  parse_again();
}

// What the parser finds must not depend on how many tags there are: it reads two, and here it has seen the last.
void DirectFlow::require_plain_tags() {
  if (!layout().ethernet()) {
    throw StageError{"a VLAN tag pushed or popped on a packet without Ethernet"};
  }
  if (headers_.type == 0x8100 || headers_.type == 0x88a8) {
    throw Unrewritable{};
  }
}

void DirectFlow::push_vlan(std::uint16_t control) {
  require_open("push_vlan");
  require_plain_tags();
  if (layout().tags() == 2) {
    throw StageError{"push_vlan on a packet with two tags"};
  }
  reference::push_vlan(frame_, control);
  parse_again();
}

void DirectFlow::pop_vlan() {
  require_open("pop_vlan");
  require_plain_tags();
  if (layout().tags() == 0) {
    throw StageError{"pop_vlan on a packet without a tag; ask has(layers::vlan) first"};
  }
  reference::pop_vlan(frame_);
  parse_again();
}

void DirectFlow::encapsulate(const Vxlan& vxlan) {
  require_no_delivery("encapsulate");
  require_open("encapsulate");
  if (vxlan.src.v6 != vxlan.dst.v6 || vxlan.vni >= 1U << 24U) {
    throw StageError{"encapsulate with addresses of two families, or a VNI beyond 24 bits"};
  }
  if (!layout().ethernet()) {
    throw StageError{"encapsulate on a packet without Ethernet"};
  }
  const std::size_t payload_from_end = frame_.bytes.size() - headers_.payload;
  reference::encapsulate(frame_, headers_, vxlan, hash_);
  headers_ = reference::parse(frame_);
  headers_.payload = frame_.bytes.size() - payload_from_end;  // what segments are cut from stays the same
  encapsulated_ = true;
  close("encapsulate");
}

void DirectFlow::decapsulate(std::optional<std::uint32_t> as) {
  require_no_delivery("decapsulate");
  require_open("decapsulate");
  if (!layout().vxlan()) {
    throw StageError{"decapsulate on a packet that is not VXLAN; ask has(layers::vxlan) first"};
  }
  if (as && *as > 0xffffff) {
    throw StageError{"decapsulate as a number beyond 24 bits"};
  }
  if (const auto lost = reference::decapsulate(frame_, headers_)) {
    effects_.emplace_back(Lost{*lost});
  }
  frame_.vni = as.value_or(frame_.vni);
  headers_ = reference::parse(frame_);
  hash_ = reference::flow_hash(frame_, headers_, state_.seed());
  decapsulated_ = true;
  close("decapsulate");
}

void DirectFlow::parse_again() { headers_ = reference::parse(frame_, arrived_.vxlan()); }

void DirectFlow::require_no_delivery(const char* what) const {
  if (frame_.egress != 0) {
    throw StageError{fmt::format(
        "{} in a delivery stage; there is egress, and the packet is passed on by next, dropped or rejected", what)};
  }
}

void DirectFlow::require_open(const char* what) const {
  if (closed_by_ != nullptr) {
    throw StageError{fmt::format("{} after {}", what, closed_by_)};
  }
}

std::uint32_t DirectFlow::stage_number(const void* stage) {
  const auto& stages = pipeline_.stages;
  const auto place = std::ranges::find_if(
      stages, [&](const Pipeline::Node& node) { return node.flow == stage || node.packet == stage; });
  if (place == stages.end()) {
    throw StageError{"passed a packet to a stage that is not in the graph"};
  }
  return static_cast<std::uint32_t>(place - stages.begin());
}

}  // namespace weir
