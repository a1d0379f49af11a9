// What a traced decision does to its packet.

#include <weir/flow/traced_flow.h>
#include <weir/packet/ethernet.h>

namespace weir {

namespace {

std::uint8_t part_of(FieldId field) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
      return rewritten::eth;
    case FieldId::ip_src:
      return rewritten::src;
    case FieldId::ip_dst:
      return rewritten::dst;
    case FieldId::ip_dscp:
    case FieldId::ip_ecn:
      return rewritten::tos;
    case FieldId::ip_ttl:
      return rewritten::ttl;
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
    case FieldId::icmp_id:
      return rewritten::ports;
    default:
      return rewritten::tags;
  }
}

}  // namespace

bool TracedFlow::decrement_ttl() {
  if (!layout().ip()) {
    throw StageError{"decrement_ttl on a packet without IP; ask has(layers::ip) first"};
  }
  if (ttl_set_) {
    if (current_.ttl <= 1) {
      return false;
    }
  } else if (!guard(GuardKind::ttl_above, ttl_taken_ + 1, original_.ttl > ttl_taken_ + 1)) {
    return false;
  }
  --current_.ttl;
  parts_ |= rewritten::ttl;
  ++ttl_taken_;
  act({.kind = ActionKind::decrement_ttl});
  return true;
}

bool TracedFlow::fits(std::uint32_t mtu) {
  if (decapsulated_) {
    throw StageError{"fits after decapsulate; ask in the next stage"};
  }
  layout_consulted_ = true;
  if (!encapsulated_) {
    return guard(GuardKind::fits, mtu, facts_.l3_length <= mtu);
  }
  const std::int64_t limit = std::int64_t{mtu} - outer_length_;
  if (limit < 0) {
    return false;
  }
  return guard(GuardKind::frame_fits, static_cast<std::uint32_t>(limit), facts_.frame_length <= limit);
}

void TracedFlow::set_field(FieldId field, const FieldValue& value) {
  require_open("a set");
  const FieldSpec& s = spec(field);
  const Layout now = layout();
  if (!s.settable) {
    throw StageError{fmt::format("{} cannot be set", s.name)};
  }
  if (!present(field, now)) {
    throw StageError{fmt::format("set of {} on a packet that has none; ask first", s.name)};
  }
  const bool address = s.bytes == 16;
  if (address && value.v6 != (now.l3() == L3::ipv6)) {
    throw StageError{fmt::format("set of {} to an address of the other family", s.name)};
  }
  if ((field == FieldId::l4_src_port || field == FieldId::l4_dst_port) && now.l4() == L4::sctp && now.fragment()) {
    throw Unrewritable{};
  }
  deposit(field, value, current_);
  FieldValue all;
  all.bytes.fill(0xff);
  deposit(field, all, rewritten_);
  ttl_set_ = ttl_set_ || field == FieldId::ip_ttl;
  set_fields_ |= 1U << static_cast<unsigned>(field);
  parts_ |= part_of(field);
  act({.kind = ActionKind::set, .field = field, .value = extract(field, current_)});
}

// Tags can only be pushed or popped where the parser sees all of them: what it would find behind the last one must not
// depend on how many there are.
void TracedFlow::require_plain_tags() {
  const Maybe<std::uint16_t> type = (*this)[eth::type];
  if (!type) {
    throw StageError{"a VLAN tag pushed or popped on a packet without Ethernet"};
  }
  if (*type == ethertype::vlan || *type == ethertype::service_vlan) {
    throw Unrewritable{};
  }
}

void TracedFlow::push_vlan(std::uint16_t control) {
  require_open("push_vlan");
  require_plain_tags();
  Layout now = layout();
  if (now.tags() == 2) {
    throw StageError{"push_vlan on a packet with two tags"};
  }
  current_.vlan_inner = current_.vlan;
  rewritten_.vlan_inner = rewritten_.vlan;
  tag_origin_[1] = tag_origin_[0];
  store_big<std::uint16_t>(current_.vlan.data(), control);
  rewritten_.vlan = {0xff, 0xff};
  tag_origin_[0] = -1;
  now.set_tags(now.tags() + 1);
  current_.layout = now.bits;
  parts_ |= rewritten::tags;
  act({.kind = ActionKind::push_vlan, .number = control});
}

void TracedFlow::pop_vlan() {
  require_open("pop_vlan");
  require_plain_tags();
  Layout now = layout();
  if (now.tags() == 0) {
    throw StageError{"pop_vlan on a packet without a tag; ask has(layers::vlan) first"};
  }
  current_.vlan = current_.vlan_inner;
  rewritten_.vlan = rewritten_.vlan_inner;
  tag_origin_[0] = tag_origin_[1];
  current_.vlan_inner = {};
  rewritten_.vlan_inner = {};
  tag_origin_[1] = -1;
  now.set_tags(now.tags() - 1);
  current_.layout = now.bits;
  parts_ |= rewritten::tags;
  act({.kind = ActionKind::pop_vlan});
}

void TracedFlow::encapsulate(const Vxlan& vxlan) {
  require_no_delivery("encapsulate");
  require_open("encapsulate");
  if (vxlan.src.v6 != vxlan.dst.v6 || vxlan.vni >= 1U << 24U) {
    throw StageError{"encapsulate with addresses of two families, or a VNI beyond 24 bits"};
  }
  const Layout now = layout();
  if (!now.ethernet()) {
    throw StageError{"encapsulate on a packet without Ethernet"};
  }
  // The whole frame, with the tags it has by now and whatever padding, becomes payload of UDP.
  const int tags_added = static_cast<int>(now.tags()) - static_cast<int>(Layout{original_.layout}.tags());
  outer_length_ = 4 * tags_added + (vxlan.src.v6 ? 40 : 20) + 8 + 8;
  encapsulated_ = true;
  act({.kind = ActionKind::encapsulate, .number = static_cast<std::uint32_t>(rule_.tunnels.size())});
  rule_.tunnels.push_back(vxlan);
  close("encapsulate");
}

void TracedFlow::decapsulate(std::optional<std::uint32_t> as) {
  require_no_delivery("decapsulate");
  require_open("decapsulate");
  const Layout now = layout();
  if (!now.vxlan()) {
    throw StageError{"decapsulate on a packet that is not VXLAN; ask has(layers::vxlan) first"};
  }
  if (as && *as >= 1U << 24U) {
    throw StageError{"decapsulate as a number beyond 24 bits"};
  }
  act({.kind = ActionKind::decapsulate, .number = as ? *as | 1U << 24U : 0});
  decapsulated_ = true;
  close("decapsulate");
}

}  // namespace weir
