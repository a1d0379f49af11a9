#include <weir/flow/describe.h>

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include <weir/flow/state.h>

namespace weir {

namespace {

constexpr unsigned ip_bytes = 16;

bool is_address(FieldId field) { return spec(field).bytes == ip_bytes; }

bool is_ipv4_address(FieldId field) { return field == FieldId::arp_sender_ip || field == FieldId::arp_target_ip; }

std::string bytes_text(const FieldValue& value, unsigned bytes) {
  return fmt::format("{:02x}", fmt::join(value.bytes.begin(), value.bytes.begin() + bytes, ":"));
}

/// Bits of a number's field, right-aligned.
std::uint32_t number_of(FieldId field, const FieldValue& value) {
  const FieldSpec& s = spec(field);
  if (!s.number) {  // a VNI
    return static_cast<std::uint32_t>(value.bytes[0] << 16U | value.bytes[1] << 8U | value.bytes[2]);
  }
  return (s.bytes == 1 ? value.bytes[0] : load_big<std::uint16_t>(value.bytes.data())) & s.mask;
}

std::string number_text(FieldId field, std::uint32_t number) {
  switch (field) {
    case FieldId::eth_type:
      return fmt::format("0x{:04x}", number);
    case FieldId::tcp_flags: {
      static constexpr std::array<const char*, 8> names{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"};
      std::vector<std::string> set;
      for (unsigned bit = 0; bit < names.size(); ++bit) {
        if ((number >> bit & 1U) != 0) {
          set.emplace_back(names[bit]);
        }
      }
      return set.empty() ? "none" : fmt::format("{}", fmt::join(set, "+"));
    }
    case FieldId::ip_protocol:
      return number == 6 ? "6 (tcp)" : number == 17 ? "17 (udp)" : number == 1 ? "1 (icmp)" : fmt::format("{}", number);
    default:
      return fmt::format("{}", number);
  }
}

/// The length of a mask that is a prefix of `bytes` bytes; -1 if it is none.
int prefix_length(const FieldValue& mask, unsigned bytes) {
  int length = 0;
  bool ended = false;
  for (unsigned bit = 0; bit < 8 * bytes; ++bit) {
    const bool set = (mask.bytes[bit / 8] >> (7 - bit % 8) & 1U) != 0;
    if (set && ended) {
      return -1;
    }
    ended = ended || !set;
    length += set ? 1 : 0;
  }
  return length;
}

std::string address_text(FieldId field, const FieldValue& value, const FieldValue& mask) {
  const unsigned bytes = value.v6 ? 16 : 4;
  FieldValue bits;
  for (unsigned i = 0; i < bytes; ++i) {
    bits.bytes[i] = value.bytes[i] & mask.bytes[i];
  }
  bits.v6 = value.v6;
  const int length = prefix_length(mask, bytes);
  std::string text = from_field<IpAddress>(bits).to_string();
  if (length < 0) {
    FieldValue shown = mask;
    shown.v6 = value.v6;
    text += "/" + from_field<IpAddress>(shown).to_string();
  } else if (length < static_cast<int>(8 * bytes)) {
    text += fmt::format("/{}", length);
  }
  return fmt::format("{}={}", spec(field).name, text);
}

}  // namespace

std::string Names::port(std::uint32_t number) const {
  return number < ports_.size() ? ports_[number] : fmt::format("port {}", number);
}

std::string Names::stage(std::uint32_t number) const {
  return number < pipeline_.stages.size() ? pipeline_.stages[number].name : fmt::format("stage {}", number);
}

std::string describe(FieldId field, const FieldValue& value, const FieldValue& mask) {
  const FieldSpec& s = spec(field);
  if (is_address(field) || is_ipv4_address(field)) {
    return address_text(field, value, mask);
  }
  if (s.number || s.bytes == 3) {
    const std::uint32_t all = s.number ? s.mask : 0xffffffU;
    const std::uint32_t bits = number_of(field, mask);
    const std::uint32_t number = number_of(field, value) & bits;
    return bits == all ? fmt::format("{}={}", s.name, number_text(field, number))
                       : fmt::format("{}=0x{:x}/0x{:x}", s.name, number, bits);
  }
  FieldValue bits;
  bool whole = true;
  for (unsigned i = 0; i < s.bytes; ++i) {
    bits.bytes[i] = value.bytes[i] & mask.bytes[i];
    whole = whole && mask.bytes[i] == 0xff;
  }
  return whole ? fmt::format("{}={}", s.name, bytes_text(bits, s.bytes))
               : fmt::format("{}={}/{}", s.name, bytes_text(bits, s.bytes), bytes_text(mask, s.bytes));
}

std::vector<std::string> describe_match(const Key& value, const Key& mask, Layout layout, const Names& names) {
  std::vector<std::string> phrases;
  if (value.stage != 0 && mask.stage != 0) {
    phrases.push_back(fmt::format("at {}", names.stage(value.stage)));
  }
  const bool delivery = (value.ingress & Key::delivery_bit) != 0;
  const auto port = static_cast<std::uint16_t>(value.ingress & ~Key::delivery_bit);
  const auto port_mask = static_cast<std::uint16_t>(mask.ingress & ~Key::delivery_bit);
  if (port_mask == static_cast<std::uint16_t>(~Key::delivery_bit)) {
    phrases.push_back(fmt::format("{} by {}", delivery ? "out" : "in", names.port(port)));
  } else if (port_mask != 0) {
    phrases.push_back(fmt::format("{}={:#x}/{:#x}", delivery ? "egress" : "ingress", port, port_mask));
  }
  if (mask.layout == 0xffff) {
    phrases.push_back(layout.to_string());
  } else if (mask.layout != 0) {
    phrases.push_back(fmt::format("a layout like {}", layout.to_string()));
  }
  Key shaped_value = value;
  Key shaped_mask = mask;
  shaped_value.layout = shaped_mask.layout = layout.bits;
  for (unsigned i = 0; i < field_count; ++i) {
    const auto field = static_cast<FieldId>(i);
    if (!present(field, layout) || (field == FieldId::eth_type && layout.l3() != L3::none) ||
        (field == FieldId::vxlan_vni && layout.tunnel())) {
      continue;
    }
    const FieldValue bits = extract(field, shaped_mask);
    FieldValue compared = bits;
    compared.v6 = false;
    if (compared != FieldValue{}) {
      phrases.push_back(describe(field, extract(field, shaped_value), bits));
    }
  }
  return phrases;
}

std::string describe(GuardKind kind, std::uint32_t number, bool holds) {
  switch (kind) {
    case GuardKind::ttl_above:
      return holds ? fmt::format("TTL above {}", number) : fmt::format("TTL not above {}", number);
    case GuardKind::fits:
      return fmt::format("{} than {} bytes from the L3 header on", holds ? "not longer" : "longer", number);
    case GuardKind::frame_fits:
      return fmt::format("a frame {} than {} bytes", holds ? "not longer" : "longer", number);
    case GuardKind::sctp_data:
      return holds ? "an SCTP chunk of data" : "an SCTP chunk that opens or closes";
    case GuardKind::flags: {
      const std::uint32_t asked = number >> 8U;
      return fmt::format("TCP flags {} {} {}", number_text(FieldId::tcp_flags, asked), holds ? "are" : "are not",
                         number_text(FieldId::tcp_flags, number & 0xffU));
    }
  }
  return {};
}

std::string describe_icmp(std::uint32_t reject) {
  const RejectNumber what = RejectNumber::unpack(reject);
  switch (what.error) {
    case IcmpError::time_exceeded:
      return "ICMP time exceeded";
    case IcmpError::no_route:
      return "ICMP no route";
    case IcmpError::prohibited:
      return "ICMP prohibited";
    case IcmpError::port_unreachable:
      return "ICMP port unreachable";
    case IcmpError::host_unreachable:
      return "ICMP host unreachable";
    case IcmpError::too_big:
      return fmt::format("ICMP too big, MTU {}", what.mtu);
  }
  return "an ICMP error";
}

std::string describe(const Action& action, const Names& names) {
  const auto reason = [&] {
    const DropReason known = names.state().reason(action.reason);
    return fmt::format("{} ({})", known.name, known.help);
  };
  switch (action.kind) {
    case ActionKind::set: {
      FieldValue all;
      all.bytes.fill(0xff);
      const std::string text = describe(action.field, action.value, all);
      const std::size_t equals = text.find('=');
      return fmt::format("set {} to {}", text.substr(0, equals), text.substr(equals + 1));
    }
    case ActionKind::decrement_ttl:
      return "take one off the TTL";
    case ActionKind::push_vlan:
      return fmt::format("push a tag of VLAN {}", action.number & 0xfffU);
    case ActionKind::pop_vlan:
      return "pop the VLAN tag";
    case ActionKind::encapsulate:
      return "encapsulate in VXLAN";
    case ActionKind::decapsulate:
      return "take off the headers up to VXLAN";
    case ActionKind::translate_quoted:
      return "translate the packet that it quotes";
    case ActionKind::track:
      return "note it in its connection";
    case ActionKind::count:
      return fmt::format("count as '{}'", static_cast<const Counter*>(action.object)->name());
    case ActionKind::meter:
      return fmt::format("drop above the rate of '{}'", static_cast<const Meter*>(action.object)->name());
    case ActionKind::mirror:
      return fmt::format("mirror to {}", names.port(action.number));
    case ActionKind::output:
      return fmt::format("output to {}", names.port(action.number));
    case ActionKind::flood:
      return action.number == 0                ? "flood"
             : action.number < DomainId::first ? fmt::format("flood VLAN {}", action.number)
                                               : fmt::format("flood domain {}", action.number);
    case ActionKind::select:
      return fmt::format("send by a member of '{}'", static_cast<const Group*>(action.object)->name());
    case ActionKind::reject:
      return fmt::format("reject with {}: {}", describe_icmp(action.number), reason());
    case ActionKind::drop:
      return fmt::format("drop: {}", reason());
    case ActionKind::enter:
      return (action.number >> 16U) != 0
                 ? fmt::format("go on at {}, on the way out by {}", names.stage(action.number & 0xffU),
                               names.port(action.number >> 16U & ~std::uint32_t{Key::delivery_bit}))
                 : fmt::format("go on at {}", names.stage(action.number));
    case ActionKind::to_host:
      return "give to the node itself";
    case ActionKind::resolve:
      return fmt::format("wait until the Ethernet address of {} on {} is known",
                         from_field<IpAddress>(action.value).to_string(), names.port(action.number));
  }
  return {};
}

}  // namespace weir
