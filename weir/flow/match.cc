#include <weir/flow/match.h>

namespace weir {

namespace {

// The layout bits that a packet must have for the field to be there.
std::pair<std::uint16_t, std::uint16_t> requirement(FieldId field, bool v6) {
  const auto l3 = [](L3 kind) {
    return std::pair{static_cast<std::uint16_t>(static_cast<unsigned>(kind) << 2U), Layout::l3_mask};
  };
  switch (field) {
    case FieldId::arp_operation:
    case FieldId::arp_sender_ip:
    case FieldId::arp_sender_mac:
    case FieldId::arp_target_ip:
    case FieldId::arp_target_mac:
      return l3(L3::arp);
    case FieldId::ip_src:
    case FieldId::ip_dst:
      return l3(v6 ? L3::ipv6 : L3::ipv4);
    case FieldId::ip_protocol:
    case FieldId::ip_dscp:
    case FieldId::ip_ecn:
    case FieldId::ip_ttl:
      return {Layout::ip_bit, Layout::ip_bit};
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
      return {Layout::ports_bit, Layout::ports_bit};
    case FieldId::tcp_flags:
      return {static_cast<std::uint16_t>(static_cast<unsigned>(L4::tcp) << 4U), Layout::l4_mask};
    case FieldId::icmp_type:
    case FieldId::icmp_code:
    case FieldId::icmp_id:  // icmp and icmpv6 share all bits but the lowest
      return {static_cast<std::uint16_t>(0x2U << 4U), static_cast<std::uint16_t>(0x6U << 4U)};
    case FieldId::vxlan_vni:
      return {Layout::vxlan_bit, Layout::vxlan_bit};
    case FieldId::tunnel_vni:
      return {Layout::tunnel_bit, Layout::tunnel_bit};
    default:
      return {0, 0};  // a tag count of one or two, and Ethernet, are told by the field's bits or not at all
  }
}

}  // namespace

Match& Match::require(std::uint16_t value, std::uint16_t mask) {
  region_.value.layout = static_cast<std::uint16_t>((region_.value.layout & ~mask) | value);
  region_.mask.layout |= mask;
  return *this;
}

Match& Match::set(FieldId field, const FieldValue& value, const FieldValue& mask) {
  if (field == FieldId::eth_type) {
    const std::uint16_t type = load_big<std::uint16_t>(value.bytes.data());
    const L3 l3 = type == 0x0806 ? L3::arp : type == 0x0800 ? L3::ipv4 : type == 0x86dd ? L3::ipv6 : L3::none;
    require(static_cast<std::uint16_t>(static_cast<unsigned>(l3) << Layout::l3_shift), Layout::l3_mask);
    if (l3 != L3::none) {
      return *this;
    }
  }
  FieldValue sized = mask;
  if (spec(field).bytes == 16 && !value.v6) {
    std::fill(sized.bytes.begin() + 4, sized.bytes.end(), 0);
  }
  deposit(field, value, region_.value);
  deposit(field, sized, region_.mask);
  if (field == FieldId::vlan_id || field == FieldId::vlan_pcp) {
    return require(1, Layout::tags_mask);
  }
  if (field == FieldId::vlan_inner_id || field == FieldId::vlan_inner_pcp) {
    return require(2, Layout::tags_mask);
  }
  const auto [bits, bits_mask] = requirement(field, value.v6);
  return require(bits, bits_mask);
}

Match& Match::with(Field<IpAddress> field, const IpPrefix& prefix) {
  FieldValue mask;
  mask.bytes.fill(0xff);
  mask.bytes = IpPrefix(Ipv6Address{mask.bytes}, prefix.length).address.bytes;
  return set(field.id, to_field(prefix.address), mask);
}

Match& Match::with_block(Field<std::uint16_t> field, std::uint16_t value, unsigned free_bits) {
  FieldValue mask;
  store_big<std::uint16_t>(mask.bytes.data(), static_cast<std::uint16_t>(0xffffU << free_bits));
  return set(field.id, to_field(value), mask);
}

Match& Match::with(Layer layer) {
  const auto l3 = [this](L3 kind) {
    return require(static_cast<std::uint16_t>(static_cast<unsigned>(kind) << Layout::l3_shift), Layout::l3_mask);
  };
  const auto l4 = [this](L4 kind) {
    return require(static_cast<std::uint16_t>(static_cast<unsigned>(kind) << Layout::l4_shift), Layout::l4_mask);
  };
  switch (layer) {
    case Layer::arp:
      l3(L3::arp);
      break;
    case Layer::ipv4:
      l3(L3::ipv4);
      break;
    case Layer::ipv6:
      l3(L3::ipv6);
      break;
    case Layer::ip:
      require(Layout::ip_bit, Layout::ip_bit);
      break;
    case Layer::tcp:
      l4(L4::tcp);
      break;
    case Layer::udp:
      l4(L4::udp);
      break;
    case Layer::sctp:
      l4(L4::sctp);
      break;
    case Layer::icmp:
      l4(L4::icmp);
      break;
    case Layer::icmpv6:
      l4(L4::icmpv6);
      break;
    case Layer::ports:
      require(Layout::ports_bit, Layout::ports_bit);
      break;
    case Layer::vlan:
      require(1, Layout::tags_mask);
      break;
    case Layer::vlan_inner:
      require(2, Layout::tags_mask);
      break;
    case Layer::fragment:
      require(Layout::fragment_bit, Layout::fragment_bit);
      break;
    case Layer::later_fragment:
      require(Layout::later_fragment_bit, Layout::later_fragment_bit);
      break;
    case Layer::options:
      require(Layout::options_bit, Layout::options_bit);
      break;
    case Layer::vxlan:
      require(Layout::vxlan_bit, Layout::vxlan_bit);
      break;
    case Layer::tunnel:
      require(Layout::tunnel_bit, Layout::tunnel_bit);
      break;
    case Layer::well_formed:
      require(0, Layout::verdict_mask);
      break;
    case Layer::ethernet:
      break;
  }
  return *this;
}

Match& Match::with_egress(PortId port) {
  region_.value.ingress = static_cast<std::uint16_t>(Key::delivery_bit | port.number);
  region_.mask.ingress = 0xffff;
  return *this;
}

Match& Match::with_ingress(PortId port) {
  region_.value.ingress = port.number;
  region_.mask.ingress = 0xffff;
  return *this;
}

std::vector<std::pair<std::uint16_t, unsigned>> port_ranges(std::uint16_t low, std::uint16_t high) {
  std::vector<std::pair<std::uint16_t, unsigned>> blocks;
  std::uint32_t at = low;
  while (at <= high) {
    unsigned bits = at == 0 ? 16 : static_cast<unsigned>(std::countr_zero(at));
    while (at + (std::uint32_t{1} << bits) - 1 > high) {
      --bits;
    }
    blocks.emplace_back(static_cast<std::uint16_t>(at), bits);
    at += std::uint32_t{1} << bits;
  }
  return blocks;
}

}  // namespace weir
