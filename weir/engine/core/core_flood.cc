// Floods of the core engine: a copy for each port, tagged port and tunnel of a domain; the last is the packet itself.
#include <algorithm>

#include <weir/engine/core/core_executor.h>
#include <weir/packet/edit.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/pull_up.h>

namespace weir {

void CoreExecutor::flood(Packet* packet, std::uint32_t domain, std::size_t i, bool encapsulated) {
  const FloodDomains& domains = context_.state.flood_domains();
  if (domain < DomainId::first) [[likely]] {
    return flood_ports(packet, domains.ports(static_cast<std::uint16_t>(domain)), encapsulated);
  }
  if (const FloodDomain* found = domains.find(DomainId{domain})) {
    return flood_domain(packet, *found, i, encapsulated);
  }
  drop(packet, drop::flood_empty);
}

void CoreExecutor::flood_ports(Packet* packet, std::span<const PortId> ports, bool encapsulated) {
  const std::uint16_t ingress = packet->ingress;
  PortId last;
  for (const PortId port : ports) {
    if (port.number == ingress) {
      continue;
    }
    if (last.valid()) {
      if (Packet* copy = copy_of(*packet); copy != nullptr) {
        leave(last.number, copy, encapsulated);
      }
    }
    last = port;
  }
  if (last.valid()) {
    leave(last.number, packet, encapsulated);
  } else {
    drop(packet, drop::flood_empty);
  }
}

void CoreExecutor::flood_domain(Packet* packet, const FloodDomain& domain, std::size_t i, bool encapsulated) {
  if (blind_) {
    pull_up_and_parse(context_.frames, *packet, keys_[i]);
  }
  const PortId ingress{packet->ingress};
  const auto other = [&](PortId port) { return port != ingress; };
  const bool tunnels = packet->tunnel == 0 && !encapsulated && packet->layout.ethernet();
  auto left = static_cast<std::size_t>(std::ranges::count_if(domain.ports, other) +
                                       std::ranges::count_if(domain.tagged, other, &TaggedPort::port)) +
              (tunnels ? domain.remotes.size() : 0);
  if (left == 0) {
    return drop(packet, drop::flood_empty);
  }
  const auto next_copy = [&] { return --left == 0 ? packet : copy_of(*packet); };
  for (const PortId port : domain.ports) {
    if (other(port)) {
      if (Packet* copy = next_copy(); copy != nullptr) {
        leave(port.number, copy, encapsulated);
      }
    }
  }
  for (const TaggedPort& tagged : domain.tagged) {
    if (other(tagged.port)) {
      if (Packet* copy = next_copy(); copy != nullptr) {
        encapsulated ? drop(copy, drop::unrewritable) : send_tagged(copy, tagged);
      }
    }
  }
  if (tunnels) {
    const std::uint64_t hash = hash_of(i);
    for (const Remote& remote : domain.remotes) {
      if (Packet* copy = next_copy(); copy != nullptr) {
        send_remote(copy, domain, remote, hash);
      }
    }
  }
}

void CoreExecutor::send_tagged(Packet* packet, const TaggedPort& to) {
  const unsigned tags = packet->layout.tags();
  if (!packet->layout.ethernet() || tags == 2) {
    return drop(packet, drop::unrewritable);
  }
  const auto type = load_big<std::uint16_t>(packet->data + 12 + std::size_t{4} * tags);
  if (type == ethertype::vlan || type == ethertype::service_vlan) {
    return drop(packet, drop::unrewritable);
  }
  if (!edit::push_vlan(context_.frames, *packet, to.control)) {
    return drop(packet, drop::no_headroom);
  }
  leave(to.port.number, packet, false);
}

void CoreExecutor::send_remote(Packet* packet, const FloodDomain& domain, const Remote& remote, std::uint64_t hash) {
  Vxlan tunnel = domain.tunnel;
  tunnel.dst = remote.address;
  if (remote.group == nullptr) {
    const auto mac = context_.state.neighbours().find({remote.port, remote.next_hop});
    if (!mac) {
      return drop(packet, drop::neighbour_unreachable);
    }
    tunnel.eth_dst = *mac;
    if (context_.ports.known(remote.port.number)) {
      tunnel.eth_src = context_.ports.ports[remote.port.number].mac;
    }
  }
  if (!encapsulate(Tunnel::make(tunnel), *packet, hash)) {
    return drop(packet, drop::no_headroom);
  }
  if (remote.group != nullptr) {
    return select(packet, *remote.group, hash, true);
  }
  emit(remote.port.number, packet);
}

// nullptr, and the copy dropped, when frames ran out.
Packet* CoreExecutor::copy_of(const Packet& packet) {
  constexpr unsigned between_reliefs = 512;
  if (++copies_ % between_reliefs == 0) {
    context_.outputs.relieve();
  }
  context_.stats.cloned.add();
  Packet* copy = context_.frames.clone(packet);
  if (copy == nullptr) {
    context_.stats.drop(drop::no_frames);
  }
  return copy;
}

}  // namespace weir
