#include <weir/engine/core/program.h>

#include <algorithm>

#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/udp.h>
#include <weir/packet/vxlan.h>

namespace weir {

Tunnel::Tunnel(const Vxlan& vxlan) : v6(vxlan.src.v6) {
  std::uint8_t* at = header.data();
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(at);
  ethernet.dst = vxlan.eth_dst;
  ethernet.src = vxlan.eth_src;
  ethernet.type = v6 ? ethertype::ipv6 : ethertype::ipv4;
  at += sizeof(EthernetHeader);
  const auto tos = static_cast<std::uint8_t>(vxlan.dscp << 2U);
  if (v6) {
    auto& ip = *reinterpret_cast<Ipv6Header*>(at);
    ip.version_class_label = 6U << 28U | std::uint32_t{tos} << 20U;
    ip.next_header = ip_protocol::udp;
    ip.hop_limit = vxlan.ttl;
    ip.src = vxlan.src.to_v6();
    ip.dst = vxlan.dst.to_v6();
    at += sizeof(Ipv6Header);
  } else {
    auto& ip = *reinterpret_cast<Ipv4Header*>(at);
    ip.version_length = 0x45;
    ip.tos = tos;
    ip.fragment = Ipv4Header::dont_fragment;
    ip.ttl = vxlan.ttl;
    ip.protocol = ip_protocol::udp;
    ip.src = vxlan.src.to_v4();
    ip.dst = vxlan.dst.to_v4();
    checksum_base = checksum::sum_scalar({at, sizeof(Ipv4Header)});
    at += sizeof(Ipv4Header);
  }
  auto& udp = *reinterpret_cast<UdpHeader*>(at);
  udp.dst_port = vxlan.dst_port;
  at += sizeof(UdpHeader);
  auto& tunnel = *reinterpret_cast<VxlanHeader*>(at);
  tunnel.flags = VxlanHeader::vni_valid;
  tunnel.vni[0] = static_cast<std::uint8_t>(vxlan.vni >> 16U);
  tunnel.vni[1] = static_cast<std::uint8_t>(vxlan.vni >> 8U);
  tunnel.vni[2] = static_cast<std::uint8_t>(vxlan.vni);
  at += sizeof(VxlanHeader);
  bytes = static_cast<std::uint8_t>(at - header.data());
}

namespace {

Operation set_operation(const Action& action) {
  Operation operation{};
  operation.bytes = action.value.bytes;
  switch (action.field) {
    case FieldId::eth_dst:
      operation.op = Op::set_eth_dst;
      break;
    case FieldId::eth_src:
      operation.op = Op::set_eth_src;
      break;
    case FieldId::vlan_id:
    case FieldId::vlan_inner_id:
      operation.op = Op::set_vlan;
      operation.slot = action.field == FieldId::vlan_inner_id ? 1 : 0;
      operation.bytes[0] &= 0x0f;
      operation.bytes[2] = 0x0f;
      operation.bytes[3] = 0xff;
      break;
    case FieldId::vlan_pcp:
    case FieldId::vlan_inner_pcp:
      operation.op = Op::set_vlan;
      operation.slot = action.field == FieldId::vlan_inner_pcp ? 1 : 0;
      operation.bytes[0] = static_cast<std::uint8_t>(action.value.bytes[0] << 5U);
      operation.bytes[1] = 0;
      operation.bytes[2] = 0xe0;
      operation.bytes[3] = 0;
      break;
    case FieldId::ip_src:
      operation.op = Op::set_src;
      break;
    case FieldId::ip_dst:
      operation.op = Op::set_dst;
      break;
    case FieldId::ip_dscp:
      operation.op = Op::set_tos;
      operation.bytes[0] = static_cast<std::uint8_t>(action.value.bytes[0] << 2U);
      operation.bytes[1] = 0xfc;
      break;
    case FieldId::ip_ecn:
      operation.op = Op::set_tos;
      operation.bytes[1] = 0x03;
      break;
    case FieldId::ip_ttl:
      operation.op = Op::set_ttl;
      break;
    case FieldId::l4_src_port:
      operation.op = Op::set_src_port;
      break;
    default:  // the flow refuses to set anything else
      operation.op = Op::set_dst_port;
      break;
  }
  return operation;
}

Operation operation_of(const Action& action) {
  Operation operation{};
  operation.number = action.number;
  operation.reason = action.reason;
  operation.object = action.object;
  switch (action.kind) {
    case ActionKind::set:
      return set_operation(action);
    case ActionKind::decrement_ttl:
      operation.op = Op::decrement_ttl;
      break;
    case ActionKind::push_vlan:
      operation.op = Op::push_vlan;
      break;
    case ActionKind::pop_vlan:
      operation.op = Op::pop_vlan;
      break;
    case ActionKind::encapsulate:
      operation.op = Op::encapsulate;
      break;
    case ActionKind::decapsulate:
      operation.op = Op::decapsulate;
      break;
    case ActionKind::count:
      operation.op = Op::count;
      break;
    case ActionKind::meter:
      operation.op = Op::meter;
      break;
    case ActionKind::mirror:
      operation.op = Op::mirror;
      break;
    case ActionKind::output:
      operation.op = Op::output;
      break;
    case ActionKind::flood:
      operation.op = Op::flood;
      break;
    case ActionKind::select:
      operation.op = Op::select;
      break;
    case ActionKind::reject:
      operation.op = Op::reject;
      break;
    case ActionKind::drop:
      operation.op = Op::drop;
      break;
    case ActionKind::enter:
      operation.op = Op::enter;
      break;
  }
  return operation;
}

// Both Ethernet addresses at once, if `second` sets the one that `first` does not.
bool join(Operation& first, const Operation& second) {
  const bool src_last = first.op == Op::set_eth_dst && second.op == Op::set_eth_src;
  const bool dst_last = first.op == Op::set_eth_src && second.op == Op::set_eth_dst;
  if (!src_last && !dst_last) {
    return false;
  }
  std::array<std::uint8_t, 16> both{};
  const auto& dst = src_last ? first.bytes : second.bytes;
  const auto& src = src_last ? second.bytes : first.bytes;
  std::copy_n(dst.begin(), 6, both.begin());
  std::copy_n(src.begin(), 6, both.begin() + 6);
  first.op = Op::set_macs;
  first.bytes = both;
  return true;
}

}  // namespace

void Program::compile(const Rule& rule) {
  // Compiled once per install into buffers of the thread; the common short program is then copied into the rule.
  thread_local std::vector<Operation> operations;
  operations.clear();
  reads_packet_ = false;
  for (const Action& action : rule.actions) {
    const Operation operation = operation_of(action);
    if (operations.empty() || !join(operations.back(), operation)) {
      operations.push_back(operation);
    }
    reads_packet_ = reads_packet_ || (operation.op != Op::count && operation.op != Op::meter &&
                                      operation.op != Op::mirror && operation.op != Op::output &&
                                      operation.op != Op::flood && operation.op != Op::drop);
  }
  size_ = static_cast<std::uint8_t>(std::min<std::size_t>(operations.size(), 255));
  if (operations.size() <= inline_size && rule.tunnels.empty()) {
    std::ranges::copy(operations, inline_.begin());
    more_.reset();
    return;
  }
  size_ = std::max<std::uint8_t>(size_, inline_size + 1);
  more_ = std::make_unique<More>();
  more_->operations = operations;
  for (const Vxlan& vxlan : rule.tunnels) {
    more_->tunnels.emplace_back(vxlan);
  }
  for (Operation& operation : more_->operations) {
    if (operation.op == Op::encapsulate) {
      operation.object = &more_->tunnels[operation.number];
    }
  }
}

}  // namespace weir
