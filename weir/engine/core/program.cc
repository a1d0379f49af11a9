#include <weir/engine/core/program.h>

#include <algorithm>

#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/udp.h>
#include <weir/packet/vxlan.h>

namespace weir {

Tunnel Tunnel::make(const Vxlan& vxlan) {
  Tunnel tunnel{};
  tunnel.v6 = vxlan.src.v6;
  std::uint8_t* at = tunnel.header.data();
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(at);
  ethernet.dst = vxlan.eth_dst;
  ethernet.src = vxlan.eth_src;
  ethernet.type = tunnel.v6 ? ethertype::ipv6 : ethertype::ipv4;
  at += sizeof(EthernetHeader);
  const auto tos = static_cast<std::uint8_t>(vxlan.dscp << 2U);
  if (tunnel.v6) {
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
    tunnel.checksum_base = checksum::sum_scalar({at, sizeof(Ipv4Header)});
    at += sizeof(Ipv4Header);
  }
  auto& udp = *reinterpret_cast<UdpHeader*>(at);
  udp.dst_port = vxlan.dst_port;
  at += sizeof(UdpHeader);
  auto& header = *reinterpret_cast<VxlanHeader*>(at);
  header.flags = VxlanHeader::vni_valid;
  header.vni[0] = static_cast<std::uint8_t>(vxlan.vni >> 16U);
  header.vni[1] = static_cast<std::uint8_t>(vxlan.vni >> 8U);
  header.vni[2] = static_cast<std::uint8_t>(vxlan.vni);
  at += sizeof(VxlanHeader);
  tunnel.bytes = static_cast<std::uint8_t>(at - tunnel.header.data());
  return tunnel;
}

namespace {

// Appends operations to a buffer that is kept from rule to rule.
class Writer {
 public:
  explicit Writer(std::vector<std::uint64_t>& code) : code_(code) { code_.clear(); }

  void put(Op op, std::uint32_t number = 0, const void* operand = nullptr, std::size_t bytes = 0,
           std::uint8_t slot = 0) {
    const std::size_t words = 1 + (bytes + 7) / 8;
    last_ = code_.size();
    code_.resize(code_.size() + words, 0);
    const Operation operation{op, static_cast<std::uint8_t>(words), slot, 0, number};
    std::memcpy(&code_[last_], &operation, sizeof operation);
    if (bytes != 0) {
      std::memcpy(&code_[last_ + 1], operand, bytes);
    }
  }

  void put_set(const Action& action) {
    const auto& value = action.value.bytes;
    switch (action.field) {
      case FieldId::eth_dst:
        return put_mac(Op::set_eth_dst, Op::set_eth_src, value.data());
      case FieldId::eth_src:
        return put_mac(Op::set_eth_src, Op::set_eth_dst, value.data());
      case FieldId::vlan_id:
      case FieldId::vlan_inner_id: {
        const std::uint8_t bits[] = {static_cast<std::uint8_t>(value[0] & 0x0f), value[1], 0x0f, 0xff};
        return put(Op::set_vlan, 0, bits, 4, action.field == FieldId::vlan_inner_id ? 1 : 0);
      }
      case FieldId::vlan_pcp:
      case FieldId::vlan_inner_pcp: {
        const std::uint8_t bits[] = {static_cast<std::uint8_t>(value[0] << 5U), 0, 0xe0, 0};
        return put(Op::set_vlan, 0, bits, 4, action.field == FieldId::vlan_inner_pcp ? 1 : 0);
      }
      case FieldId::ip_src:
        return put(Op::set_src, 0, value.data(), 16);
      case FieldId::ip_dst:
        return put(Op::set_dst, 0, value.data(), 16);
      case FieldId::ip_dscp: {
        const std::uint8_t bits[] = {static_cast<std::uint8_t>(value[0] << 2U), 0xfc};
        return put(Op::set_tos, 0, bits, 2);
      }
      case FieldId::ip_ecn: {
        const std::uint8_t bits[] = {value[0], 0x03};
        return put(Op::set_tos, 0, bits, 2);
      }
      case FieldId::ip_ttl:
        return put(Op::set_ttl, value[0]);
      case FieldId::l4_src_port:
        return put(Op::set_src_port, 0, value.data(), 2);
      case FieldId::icmp_id:
        return put(Op::set_icmp_id, 0, value.data(), 2);
      default:  // the flow refuses to set anything else
        return put(Op::set_dst_port, 0, value.data(), 2);
    }
  }

 private:
  // Both Ethernet addresses in a row become one operation.
  void put_mac(Op op, Op other, const std::uint8_t* address) {
    if (!code_.empty()) {
      Operation last;
      std::memcpy(&last, &code_[last_], sizeof last);
      if (last.op == other) {
        std::uint8_t both[12];
        std::memcpy(both + (other == Op::set_eth_dst ? 0 : 6), &code_[last_ + 1], 6);
        std::memcpy(both + (other == Op::set_eth_dst ? 6 : 0), address, 6);
        code_.resize(last_);
        return put(Op::set_macs, 0, both, 12);
      }
    }
    put(op, 0, address, 6);
  }

  std::vector<std::uint64_t>& code_;
  std::size_t last_ = 0;
};

void put_action(Writer& writer, const Action& action, const Rule& rule) {
  const std::uint8_t encapsulated = rule.tunnels.empty() ? 0 : 1;
  const auto object = [&](Op op, std::uint8_t slot = 0) {
    writer.put(op, action.number, static_cast<const void*>(&action.object), sizeof action.object, slot);
  };
  switch (action.kind) {
    case ActionKind::set:
      return writer.put_set(action);
    case ActionKind::decrement_ttl:
      return writer.put(Op::decrement_ttl);
    case ActionKind::push_vlan:
      return writer.put(Op::push_vlan, action.number);
    case ActionKind::pop_vlan:
      return writer.put(Op::pop_vlan);
    case ActionKind::encapsulate: {
      const Tunnel tunnel = Tunnel::make(rule.tunnels[action.number]);
      return writer.put(Op::encapsulate, 0, &tunnel, offsetof(Tunnel, header) + tunnel.bytes);
    }
    case ActionKind::decapsulate:
      return writer.put(Op::decapsulate, action.number);
    case ActionKind::translate_quoted:
      return writer.put(Op::translate_quoted, 0, &rule.quoted[action.number], sizeof(QuotedTranslation));
    case ActionKind::track: {
      const Track track = track_of(action);
      return writer.put(Op::track, 0, &track, sizeof track);
    }
    case ActionKind::count:
      return object(Op::count);
    case ActionKind::meter:
      return object(Op::meter);
    case ActionKind::mirror:
      return writer.put(Op::mirror, action.number);
    case ActionKind::output:
      return writer.put(Op::output, action.number);
    case ActionKind::flood:
      return writer.put(Op::flood, action.number, nullptr, 0, encapsulated);
    case ActionKind::select:
      return object(Op::select, encapsulated);
    case ActionKind::reject:
      return writer.put(Op::reject, action.number, &action.reason, sizeof action.reason);
    case ActionKind::drop:
      return writer.put(Op::drop, action.reason);
    case ActionKind::enter:
      return writer.put(Op::enter, action.number);
    case ActionKind::to_host:
      return writer.put(Op::to_host);
    case ActionKind::resolve: {
      const auto address = from_field<IpAddress>(action.value);
      return writer.put(Op::resolve, action.number, &address, sizeof address);
    }
  }
}

bool reads(ActionKind kind) {
  return kind != ActionKind::count && kind != ActionKind::meter && kind != ActionKind::mirror &&
         kind != ActionKind::output && kind != ActionKind::flood && kind != ActionKind::drop;
}

}  // namespace

void Program::compile(const Rule& rule) {
  thread_local std::vector<std::uint64_t> code;
  Writer writer(code);
  reads_packet_ = false;
  for (const Action& action : rule.actions) {
    put_action(writer, action, rule);
    reads_packet_ = reads_packet_ || reads(action.kind);
  }
  if (code.size() <= inline_.size()) {
    more_.reset();
    std::ranges::copy(code, inline_.begin());
  } else {
    more_ = std::make_unique_for_overwrite<std::uint64_t[]>(code.size());
    std::ranges::copy(code, more_.get());
  }
}

}  // namespace weir
