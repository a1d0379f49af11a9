// What the core engine does to a packet that has its rule.
#include <cstring>

#include <weir/engine/core/core_executor.h>
#include <weir/engine/reject.h>
#include <weir/packet/edit.h>
#include <weir/packet/flow_hash.h>
#include <weir/packet/pull_up.h>
#include <weir/packet/vxlan.h>

namespace weir {

std::uint64_t CoreExecutor::hash_of(std::size_t i) const { return flow_hash(keys_[i], context_.state.seed()); }

namespace {

// The packet is one of an established connection: its rule matches its layout and flags.
void track_packet(const Track& track, const Packet& packet, Nanoseconds now) {
  if (!track.holds()) [[unlikely]] {
    return;
  }
  track.use(now);
  if (!track.tcp) {
    return;
  }
  const auto& tcp = *reinterpret_cast<const TcpHeader*>(packet.data + packet.l4);
  const std::uint8_t* l3 = packet.data + packet.l3;
  std::uint32_t end = packet.l3;  // of the packet, as IP has it
  if (packet.offload.gso_size != 0) [[unlikely]] {
    end = packet.length;
  } else if (packet.layout.l3() == L3::ipv4) {
    end += load_big<std::uint16_t>(l3 + offsetof(Ipv4Header, total_length));
  } else {
    end += load_big<std::uint16_t>(l3 + offsetof(Ipv6Header, payload_length)) + std::uint32_t{sizeof(Ipv6Header)};
  }
  const std::uint32_t payload = end - packet.l4 - tcp.header_length();
  track.entry->tcp.advance({tcp.sequence, tcp.acknowledgment, payload, tcp.window}, track.side);
}

}  // namespace

void CoreExecutor::execute(const Program& program, std::size_t i, Nanoseconds now) {
  const std::size_t place = place_[i];
  Packet* packet = wave_[place];
  for (const Operation* operation = program.begin();; operation = operation->next()) {
    switch (operation->op) {
      case Op::set_icmp_id:
        edit::set_icmp_id(*packet, operation->bytes());
        break;
      case Op::translate_quoted:
        edit::translate_quoted(*packet, operation->operand<QuotedTranslation>());
        break;
      case Op::track:
        track_packet(operation->operand<Track>(), *packet, now);
        break;
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
        if (ReasonId reason = 0; !decapsulate(*packet, keys_[i], operation->number, reason)) {
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
        return flood(packet, operation->number, i, operation->slot != 0);
      case Op::select:
        return select(packet, *operation->operand<const Group*>(), hash_of(i), operation->slot != 0);
      case Op::reject:
        return reject(packet, operation->number, operation->operand<ReasonId>(), now);
      case Op::drop:
        return drop(packet, static_cast<ReasonId>(operation->number));
      case Op::enter:
        packet->stage = static_cast<std::uint8_t>(operation->number);
        packet->egress = static_cast<std::uint16_t>(operation->number >> 16U);
        next_[place] = packet;
        recirculate_ = true;
        return;
      case Op::to_host:
        return host_.take(packet, now);
      case Op::resolve:
        return host_.resolve(
            packet, {PortId{static_cast<std::uint16_t>(operation->number)}, operation->operand<IpAddress>()}, now);
    }
  }
}

bool CoreExecutor::encapsulate(const Tunnel& tunnel, Packet& packet, std::uint64_t hash) {
  if (packet.offload.gso_size == 0) {
    edit::finish_checksum(packet);
  } else {
    edit::enter_tunnel(packet.offload, tunnel.bytes, tunnel.v6);
  }
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

bool CoreExecutor::decapsulate(Packet& packet, Key& key, std::uint32_t as, ReasonId& reason) {
  if (packet.offload.gso_size == 0) {
    edit::finish_checksum(packet);  // of the inner packet, if its sender left that to a device
    packet.offload = {};
  } else if (!edit::exit_tunnel(packet.offload, packet.payload)) {
    reason = drop::bad_offload;  // several tunnel packets in one
    return false;
  }
  const std::uint8_t outer_ecn = edit::tos(packet) & 3U;
  const std::uint8_t* vni = packet.data + packet.payload - 4;
  const std::uint32_t number = static_cast<std::uint32_t>(vni[0] << 16U | vni[1] << 8U | vni[2]);
  PacketCache::pop_front(packet, packet.payload);
  packet.tunnel = 1;
  packet.vni = as != 0 ? as & 0xffffffU : number;
  pull_up_and_parse(context_.frames, packet, key);
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

void CoreExecutor::select(Packet* packet, const Group& group, std::uint64_t hash, bool encapsulated) {
  const Member* member = group.members().pick(hash);
  if (member == nullptr) {
    return drop(packet, drop::no_member);
  }
  if (member->rewrite && packet->layout.ethernet()) {
    std::memcpy(packet->data, member->dst.bytes.data(), 6);
    std::memcpy(packet->data + 6, member->src.bytes.data(), 6);
  }
  leave(member->port.number, packet, encapsulated);
}

void CoreExecutor::reject(Packet* packet, std::uint32_t what, ReasonId reason, Nanoseconds now) {
  Packet* message =
      make_reject(context_.state, context_.ports, context_.frames, *packet, RejectNumber::unpack(what), now);
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
  if (!context_.ports.ports[port].up.load(std::memory_order_acquire)) [[unlikely]] {
    return drop(packet, drop::port_down);
  }
  context_.outputs.push(port, packet);
}

// By way of the port's delivery side, if it has one.
void CoreExecutor::leave(std::uint32_t port, Packet* packet, bool encapsulated) {
  if (delivers_ && !encapsulated) [[unlikely]] {
    const std::uint8_t stage = context_.state.deliveries().stage(port);
    if (stage != Pipeline::nowhere) {
      packet->stage = stage;
      packet->egress = static_cast<std::uint16_t>(Key::delivery_bit | port);
      deliveries_.push_back(packet);
      return;
    }
  }
  emit(port, packet);
}

void CoreExecutor::copy_to(std::uint32_t port, const Packet& packet) {
  if (Packet* copy = copy_of(packet); copy != nullptr) {
    emit(port, copy);
  }
}

void CoreExecutor::drop(Packet* packet, ReasonId reason) {
  context_.stats.drop(reason);
  context_.frames.free(packet);
}

}  // namespace weir
