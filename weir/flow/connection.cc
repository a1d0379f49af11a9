#include <weir/flow/connection.h>

#include <algorithm>

#include <weir/flow/flow.h>
#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/sctp.h>
#include <weir/packet/tcp.h>

namespace weir {

namespace {

using Role = ConnectionTuple::Role;

// Queries and their answers carry the same identifier. Everything else that ICMP says belongs to no conversation.
Role role_of(std::uint8_t protocol, std::uint8_t type) {
  constexpr std::uint8_t timestamp = 13;
  constexpr std::uint8_t timestamp_reply = 14;
  if (protocol == ip_protocol::icmpv6) {
    return type == icmpv6_type::echo ? Role::request : type == icmpv6_type::echo_reply ? Role::reply : Role::none;
  }
  return type == icmp_type::echo || type == timestamp               ? Role::request
         : type == icmp_type::echo_reply || type == timestamp_reply ? Role::reply
                                                                    : Role::none;
}

bool is_icmp(std::uint8_t protocol) { return protocol == ip_protocol::icmp || protocol == ip_protocol::icmpv6; }

}  // namespace

Connection Flow::connection(ConnectionZone zone) {
  Connection connection(*this);
  connection.look_up(zone);
  if (observer_ != nullptr) [[unlikely]] {
    observer_->looked_up("connections", connection.tuple_.to_string(), std::string(name_of(connection.state_)));
  }
  return connection;
}

// False if the packet can be of no connection.
bool Connection::read_tuple(ConnectionZone zone, const TransportFacts& facts) {
  Flow& flow = flow_;
  if (!flow.has(layers::ip) || !flow.has(layers::well_formed)) {
    return false;
  }
  tuple_.zone = zone;
  if (zone.kind() != ConnectionZone::services) {
    if (const auto vlan = flow[vlan::id]) {
      tuple_.zone.add_vlan(*vlan);
    }
  }
  if (zone.kind() == ConnectionZone::links) {
    if (const auto vni = flow[tunnel::vni]) {
      tuple_.zone.add_vni(*vni);
    }
  }
  tuple_.src = *flow[ip::src];
  tuple_.dst = *flow[ip::dst];
  tuple_.protocol = *flow[ip::protocol];
  if (flow.has(layers::ports)) {
    tuple_.src_port = *flow[l4::src_port];
    tuple_.dst_port = *flow[l4::dst_port];
    return facts.whole || facts.later_fragment;
  }
  if (is_icmp(tuple_.protocol)) {
    const auto type = flow[icmp::type];
    if (!type || facts.error) {
      return type.present && facts.quotes;
    }
    tuple_.role = role_of(tuple_.protocol, *type);
    tuple_.src_port = tuple_.dst_port = flow[icmp::id].value_or(0);
    return tuple_.role != Role::none;
  }
  const bool first_seen = facts.later_fragment && flow.layout().l4() == L4::other;
  return (facts.whole || first_seen) && !ip_protocol::has_ports(tuple_.protocol);
}

void Connection::look_up(ConnectionZone zone) {
  const TransportFacts& facts = flow_.transport();
  if (!read_tuple(zone, facts)) {
    if (facts.error || (!facts.whole && !facts.later_fragment)) {
      flow_.not_cacheable("what makes the packet invalid is not in its key");
    }
    return;
  }
  if (facts.error) {
    return judge_error(facts);
  }
  if (facts.later_fragment) {
    // Its layout says so; it has no flags or chunks.
  } else if (tuple_.protocol == ip_protocol::tcp) {
    flow_.test(tcp::flags, flags(tcp_flag::control, facts.flags & tcp_flag::control));
  } else if (tuple_.protocol == ip_protocol::sctp && !flow_.test_sctp_data()) {
    flow_.not_cacheable("the packet opens or closes an association");
  }
  found_ = flow_.state().connections().find(tuple_, facts);
  flow_.depend(found_.dependency);
  if (found_.entry == nullptr) {
    state_ = Connections::may_begin(tuple_, facts) ? ConnectionState::fresh : ConnectionState::invalid;
    return;
  }
  if (!found_.plain) {
    flow_.not_cacheable("its connection opens or closes");
  }
  if (found_.invalid) {
    return;
  }
  if (found_.reopens) {
    state_ = ConnectionState::fresh;
    return;
  }
  state_ = found_.side == 1 || found_.replied ? ConnectionState::established : ConnectionState::fresh;
  tuple_ = found_.original;
}

// An error goes the way of an answer to the packet that it quotes.
void Connection::judge_error(const TransportFacts& facts) {
  flow_.not_cacheable("an ICMP error is judged by the packet that it quotes");
  const QuotedPacket& quoted = facts.quoted;
  if (quoted.src != tuple_.dst) {
    return;  // it is told to somebody else than the sender
  }
  ConnectionTuple sent{.src = quoted.src, .dst = quoted.dst, .protocol = quoted.protocol, .zone = tuple_.zone};
  if (ip_protocol::has_ports(quoted.protocol)) {
    sent.src_port = quoted.src_port;
    sent.dst_port = quoted.dst_port;
  } else if (is_icmp(quoted.protocol)) {
    sent.role = role_of(quoted.protocol, quoted.icmp_type);
    sent.src_port = sent.dst_port = quoted.icmp_id;
  }
  found_ = flow_.state().connections().find(sent.mirrored(), facts);
  flow_.depend(found_.dependency);
  if (found_.entry != nullptr) {
    state_ = ConnectionState::related;
    tuple_ = found_.original;
  }
}

bool Connection::put_initiator(Key& key) const {
  const Key before = key;
  key.src = tuple_.src.bytes;
  key.dst = tuple_.dst.bytes;
  if (found_.entry != nullptr && !found_.reopens && (key.ingress & Key::delivery_bit) == 0) {
    key.ingress = found_.ingress.number;
  }
  if (ip_protocol::has_ports(key.protocol) && ip_protocol::has_ports(tuple_.protocol)) {
    store_big<std::uint16_t>(key.src_port.data(), tuple_.src_port);
    store_big<std::uint16_t>(key.dst_port.data(), tuple_.dst_port);
  }
  return !(key == before);
}

Key Connection::without_initiator(Key mask) {
  mask.ingress = 0;
  mask.src = mask.dst = {};
  mask.src_port = mask.dst_port = {};
  return mask;
}

PortId Connection::ingress() const {
  return found_.entry != nullptr && !found_.reopens ? found_.ingress : flow_.ingress();
}

Committed Connection::commit() { return commit(Translation{}); }

Committed Connection::commit(const Translation& translation) {
  if (invalid() || related()) {
    return Committed::unchanged;
  }
  if (found_.entry == nullptr || found_.reopens) {
    flow_.not_cacheable("a connection was begun by this packet");
    const auto reply = find_reply(translation);
    if (!reply) {
      if (!flow_.dry_) {
        flow_.state().connections().count_exhausted();
      }
      return Committed::no_port;
    }
    return begin(*reply);
  }
  if (found_.plain) {
    const bool tcp = tuple_.protocol == ip_protocol::tcp && !flow_.transport().later_fragment;
    flow_.track({found_.entry, found_.serial, found_.side, tcp});
  } else if (!flow_.dry_) {
    flow_.state().connections().note(found_, flow_.transport(), flow_.now());
  }
  return Committed::noted;
}

Committed Connection::begin(const ConnectionTuple& reply) {
  Committed outcome = Committed::created;
  if (!flow_.dry_) {
    Connections& connections = flow_.state().connections();
    if (found_.reopens) {
      connections.remove(*found_.entry, found_.serial, found_.original);
    }
    outcome = connections.begin(tuple_, reply, flow_.transport(), flow_.arrived_by(), flow_.now());
  }
  if (outcome == Committed::created) {
    found_ = {};
    found_.original = tuple_;
    found_.reply = reply;
    found_.translated = reply != tuple_.mirrored();
  }
  return outcome;
}

// The tuple of answers: that of the translated packet, mirrored. Absent if all ports that may be used are taken.
Maybe<ConnectionTuple> Connection::find_reply(const Translation& translation) const {
  constexpr std::uint32_t most_probes = 128;
  ConnectionTuple sent = tuple_;
  sent.dst = translation.dst.value_or(sent.dst);
  if (ip_protocol::has_ports(sent.protocol)) {
    sent.dst_port = translation.dst_port.value_or(sent.dst_port);
  }
  if (!translation.src) {
    return sent.mirrored();  // whether it is taken shows when the connection begins
  }
  sent.src = *translation.src;
  const Connections& connections = flow_.state().connections();
  if (!ip_protocol::has_ports(sent.protocol) && sent.role == Role::none) {
    return connections.taken(sent.mirrored()) ? Maybe<ConnectionTuple>() : sent.mirrored();
  }
  const PortRange range = translation.src_ports;
  const std::uint32_t size = range.last - range.first + 1U;
  const auto put_port = [&](std::uint16_t port) {
    sent.src_port = port;
    if (sent.role != Role::none) {
      sent.dst_port = port;
    }
  };
  if (sent.src_port >= range.first && sent.src_port <= range.last && !connections.taken(sent.mirrored())) {
    return sent.mirrored();
  }
  const std::uint64_t start = tuple_.symmetric_hash(flow_.state().seed() + 1) >> 32U;
  for (std::uint32_t i = 0; i < std::min(size, most_probes); ++i) {
    put_port(static_cast<std::uint16_t>(range.first + (start + i) % size));
    if (!connections.taken(sent.mirrored())) {
      return sent.mirrored();
    }
  }
  return {};
}

void Connection::translate() {
  if (!found_.translated || invalid()) {
    return;
  }
  const bool back = reply();
  const ConnectionTuple came = back ? found_.reply : found_.original;
  const ConnectionTuple goes = back ? found_.original.mirrored() : found_.reply.mirrored();
  if (related()) {
    return translate_error(came, goes);
  }
  if (goes.src != came.src) {
    flow_.set(ip::src, goes.src);
  }
  if (goes.dst != came.dst) {
    flow_.set(ip::dst, goes.dst);
  }
  if (ip_protocol::has_ports(came.protocol)) {
    if (goes.src_port != came.src_port) {
      flow_.set(l4::src_port, goes.src_port);
    }
    if (goes.dst_port != came.dst_port) {
      flow_.set(l4::dst_port, goes.dst_port);
    }
  } else if (goes.src_port != came.src_port) {
    flow_.set(icmp::id, goes.src_port);
  }
}

// It goes the way of a packet from `came` to `goes`, and quotes one that went the other way. Its source is whoever
// could not pass that on; what is behind a translated address stays hidden.
void Connection::translate_error(const ConnectionTuple& came, const ConnectionTuple& goes) {
  if (goes.src != came.src) {
    flow_.set(ip::src, goes.src);
  }
  if (goes.dst != came.dst) {
    flow_.set(ip::dst, goes.dst);
  }
  const QuotedPacket& quoted = flow_.transport().quoted;
  const auto header = static_cast<std::uint16_t>(quoted.l3 - sizeof(IcmpHeader));  // where the message begins
  flow_.translate_quoted({.src = goes.dst,
                          .dst = goes.src,
                          .src_port = goes.dst_port,
                          .dst_port = goes.src_port,
                          .icmp_id = goes.src_port,
                          .protocol = quoted.protocol,
                          .l3 = sizeof(IcmpHeader),
                          .l4 = static_cast<std::uint16_t>(quoted.l4 - header),
                          .bytes = quoted.bytes});
}

}  // namespace weir
