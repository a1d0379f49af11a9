#include <weir/flow/field.h>

namespace weir {

namespace {

constexpr std::uint8_t at_vlan = offsetof(Key, vlan);
constexpr std::uint8_t at_inner = offsetof(Key, vlan_inner);
constexpr std::uint8_t at_src = offsetof(Key, src);
constexpr std::uint8_t at_dst = offsetof(Key, dst);
constexpr std::uint8_t at_src_port = offsetof(Key, src_port);
constexpr std::uint8_t at_dst_port = offsetof(Key, dst_port);

// In the order of FieldId.
constexpr FieldSpec specs[field_count] = {
    {"eth.dst", offsetof(Key, eth_dst), 6, 0, 0, false, true},
    {"eth.src", offsetof(Key, eth_src), 6, 0, 0, false, true},
    {"eth.type", at_src, 2, 0, 0xffff, true, false},
    {"vlan.id", at_vlan, 2, 0, 0x0fff, true, true},
    {"vlan.pcp", at_vlan, 1, 5, 0x7, true, true},
    {"vlan.inner_id", at_inner, 2, 0, 0x0fff, true, true},
    {"vlan.inner_pcp", at_inner, 1, 5, 0x7, true, true},
    {"arp.operation", at_src_port, 2, 0, 0xffff, true, false},
    {"arp.sender_ip", at_src, 4, 0, 0, false, false},
    {"arp.sender_mac", at_src + 4, 6, 0, 0, false, false},
    {"arp.target_ip", at_dst, 4, 0, 0, false, false},
    {"arp.target_mac", at_dst + 4, 6, 0, 0, false, false},
    {"ip.src", at_src, 16, 0, 0, false, true},
    {"ip.dst", at_dst, 16, 0, 0, false, true},
    {"ip.protocol", offsetof(Key, protocol), 1, 0, 0xff, true, false},
    {"ip.dscp", offsetof(Key, tos), 1, 2, 0x3f, true, true},
    {"ip.ecn", offsetof(Key, tos), 1, 0, 0x3, true, true},
    {"ip.ttl", offsetof(Key, ttl), 1, 0, 0xff, true, true},
    {"l4.src_port", at_src_port, 2, 0, 0xffff, true, true},
    {"l4.dst_port", at_dst_port, 2, 0, 0xffff, true, true},
    {"tcp.flags", offsetof(Key, tcp_flags), 1, 0, 0xff, true, false},
    {"icmp.type", at_src_port, 1, 0, 0xff, true, false},
    {"icmp.code", at_src_port + 1, 1, 0, 0xff, true, false},
    {"icmp.id", at_dst_port, 2, 0, 0xffff, true, true},
    {"vxlan.vni", offsetof(Key, vni), 3, 0, 0, false, false},
    {"tunnel.vni", offsetof(Key, vni), 3, 0, 0, false, false},
};

}  // namespace

const FieldSpec& spec(FieldId field) { return specs[static_cast<unsigned>(field)]; }

bool present(FieldId field, Layout layout) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
    case FieldId::eth_type:
      return layout.ethernet();
    case FieldId::vlan_id:
    case FieldId::vlan_pcp:
      return layout.tags() >= 1;
    case FieldId::vlan_inner_id:
    case FieldId::vlan_inner_pcp:
      return layout.tags() >= 2;
    case FieldId::arp_operation:
    case FieldId::arp_sender_ip:
    case FieldId::arp_sender_mac:
    case FieldId::arp_target_ip:
    case FieldId::arp_target_mac:
      return layout.l3() == L3::arp;
    case FieldId::ip_src:
    case FieldId::ip_dst:
    case FieldId::ip_protocol:
    case FieldId::ip_dscp:
    case FieldId::ip_ecn:
    case FieldId::ip_ttl:
      return layout.ip();
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
      return layout.ports();
    case FieldId::tcp_flags:
      return layout.l4() == L4::tcp;
    case FieldId::icmp_type:
    case FieldId::icmp_code:
    case FieldId::icmp_id:
      return layout.l4() == L4::icmp || layout.l4() == L4::icmpv6;
    case FieldId::vxlan_vni:
      return layout.vxlan();
    case FieldId::tunnel_vni:
      return layout.tunnel();
  }
  return false;
}

FieldValue extract(FieldId field, const Key& key) {
  const FieldSpec& s = spec(field);
  const Layout layout{key.layout};
  FieldValue value;
  const std::uint8_t* from = key.bytes() + s.offset;
  if (field == FieldId::eth_type && layout.l3() != L3::none) {
    static constexpr std::uint16_t types[] = {0, 0x0806, 0x0800, 0x86dd};
    store_big<std::uint16_t>(value.bytes.data(), types[static_cast<unsigned>(layout.l3())]);
  } else if (!s.number) {
    std::memcpy(value.bytes.data(), from, value_bytes(field, layout));
    value.v6 = s.bytes == 16 && layout.l3() == L3::ipv6;
  } else if (s.bytes == 1) {
    value.bytes[0] = static_cast<std::uint8_t>((from[0] >> s.shift) & s.mask);
  } else {
    store_big<std::uint16_t>(value.bytes.data(),
                             static_cast<std::uint16_t>((load_big<std::uint16_t>(from) >> s.shift) & s.mask));
  }
  return value;
}

void deposit(FieldId field, const FieldValue& value, Key& key) {
  const FieldSpec& s = spec(field);
  std::uint8_t* to = key.bytes() + s.offset;
  if (!s.number) {
    std::memcpy(to, value.bytes.data(), s.bytes);
  } else if (s.bytes == 1) {
    to[0] = static_cast<std::uint8_t>((to[0] & ~(s.mask << s.shift)) | ((value.bytes[0] & s.mask) << s.shift));
  } else {
    const std::uint16_t kept = load_big<std::uint16_t>(to) & static_cast<std::uint16_t>(~(s.mask << s.shift));
    const std::uint16_t bits = load_big<std::uint16_t>(value.bytes.data()) & s.mask;
    store_big<std::uint16_t>(to, static_cast<std::uint16_t>(kept | (bits << s.shift)));
  }
}

bool has(Layer layer, Layout layout) {
  switch (layer) {
    case Layer::ethernet:
      return layout.ethernet();
    case Layer::vlan:
      return layout.tags() >= 1;
    case Layer::vlan_inner:
      return layout.tags() >= 2;
    case Layer::arp:
      return layout.l3() == L3::arp;
    case Layer::ip:
      return layout.ip();
    case Layer::ipv4:
      return layout.l3() == L3::ipv4;
    case Layer::ipv6:
      return layout.l3() == L3::ipv6;
    case Layer::tcp:
      return layout.l4() == L4::tcp;
    case Layer::udp:
      return layout.l4() == L4::udp;
    case Layer::sctp:
      return layout.l4() == L4::sctp;
    case Layer::icmp:
      return layout.l4() == L4::icmp;
    case Layer::icmpv6:
      return layout.l4() == L4::icmpv6;
    case Layer::ports:
      return layout.ports();
    case Layer::vxlan:
      return layout.vxlan();
    case Layer::tunnel:
      return layout.tunnel();
    case Layer::fragment:
      return layout.fragment();
    case Layer::later_fragment:
      return layout.later_fragment();
    case Layer::options:
      return layout.options();
    case Layer::well_formed:
      return layout.verdict() == ParseVerdict::ok;
  }
  return false;
}

}  // namespace weir
