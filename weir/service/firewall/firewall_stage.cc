#include <weir/service/firewall/firewall_stage.h>

#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>

namespace weir {

namespace {

constexpr DropReason unknown_port{"firewall_port_unknown", "at a port that the firewall was not told of"};
constexpr DropReason malformed{"malformed", "its headers cannot be read"};
constexpr DropReason spoofed_source{"spoofed_source", "from an address that is not that of the endpoint that sent it"};
constexpr DropReason denied{"denied_by_policy", "a network policy denies it: weir policy explain"};

/// ICMP that is no error and no echo is of no connection.
enum class Message : std::uint8_t { none, neighbour_discovery, notice };

Message message_of(Flow& flow) {
  constexpr std::uint8_t first_discovery = 133;  // router solicitation (RFC 4861)
  constexpr std::uint8_t last_discovery = 137;   // redirect
  if (!flow.has(layers::icmp) && !flow.has(layers::icmpv6)) {
    return Message::none;
  }
  const auto type = flow[icmp::type];
  if (!type) {
    return Message::none;
  }
  if (flow.has(layers::icmpv6) && *type >= first_discovery && *type <= last_discovery) {
    return Message::neighbour_discovery;
  }
  return is_icmp_error(flow.has(layers::icmpv6), *type) ? Message::none : Message::notice;
}

/// One packet at one side of one guarded port.
class Judge {
 public:
  Judge(Flow& flow, const FirewallTables& tables, PortId port, bool sent)
      : flow_(flow), tables_(tables), port_(port), sent_(sent) {}

  Verdict judge() {
    const PortGuard guard =
        port_.number < tables_.ports.size() ? flow_.read(*tables_.ports[port_.number]) : PortGuard();
    if (guard.kind == PortGuard::Kind::open) {
      return flow_.next();
    }
    if (guard.kind == PortGuard::Kind::unknown) {
      return flow_.drop(unknown_port);
    }
    // What cannot be read here may still be understood behind the port.
    if (!flow_.has(layers::well_formed)) {
      return flow_.drop(malformed);
    }
    if (sent_ && guard.checks_source && spoofs(*guard.slot)) {
      return flow_.drop(spoofed_source);
    }
    if (!flow_.has(layers::ip)) {
      return flow_.next();
    }
    const Message message = message_of(flow_);
    if (message == Message::neighbour_discovery) {
      return flow_.next();
    }
    const Guarded& guarded = flow_.read(guard.slot->guarded);
    guarded_ = guarded.identity.get();
    list_ = guarded.policies.get();
    if (guarded_ == nullptr || list_ == nullptr) {
      return flow_.drop(unknown_port);  // an update is about to take it away
    }
    Connection connection = flow_.connection(ConnectionZone::of_port(port_));
    if (connection.invalid()) {
      return without_connection(message, connection.initiator());
    }
    // The endpoint has begun the connection if what it sends is no reply, and what it gets is one.
    const bool began = sent_ != connection.reply();
    if (!allows(began ? Direction::egress : Direction::ingress, connection.initiator())) {
      return flow_.drop(denied);
    }
    return connection.commit() == Committed::full ? flow_.drop(drop::connections_full) : flow_.next();
  }

 private:
  // Others take an endpoint for who its source address says. Before it has one it may speak without; and on its link,
  // by its link-local address.
  bool spoofs(const EndpointSlot& slot) {
    IpAddress source;
    if (flow_.has(layers::arp)) {
      source = flow_[arp::sender_ip].value_or({});
    } else if (flow_.has(layers::ip)) {
      source = *flow_[ip::src];
    } else {
      return false;
    }
    const bool link_local = source.v6 && source.bytes[0] == 0xfe && (source.bytes[1] & 0xc0U) == 0x80;
    if (link_local || source.bytes == decltype(source.bytes){}) {
      return false;
    }
    const EndpointHandle* owner = flow_.lookup(tables_.addresses, source);
    return owner != nullptr ? owner->slot != &slot : flow_.read(slot.guarded).has_addresses;
  }

  // An endpoint that no policy is about is not restricted.
  Verdict without_connection(Message message, const ConnectionTuple& tuple) {
    if (list_->empty(Direction::ingress) && list_->empty(Direction::egress)) {
      return flow_.next();
    }
    if (message != Message::notice) {
      return flow_.drop(drop::invalid_connection);
    }
    return allows(sent_ ? Direction::egress : Direction::ingress, tuple) ? flow_.next() : flow_.drop(denied);
  }

  bool allows(Direction direction, const ConnectionTuple& first) {
    if (list_->empty(direction)) {
      return true;
    }
    const IpAddress& other = direction == Direction::egress ? first.dst : first.src;
    const EndpointHandle* handle = flow_.lookup(tables_.addresses, other);
    const Identity* peer = handle == nullptr ? nullptr : flow_.read(handle->slot->identity).get();
    Traffic traffic{.peer = other, .protocol = first.protocol};
    if (ip_protocol::has_ports(first.protocol)) {
      traffic.port = first.dst_port;
    }
    return weir::decide(direction, *guarded_, *list_, traffic, peer).allowed;
  }

  Flow& flow_;
  const FirewallTables& tables_;
  PortId port_;
  bool sent_;  ///< by the endpoint; else it is about to get it
  const Identity* guarded_ = nullptr;
  const PolicyList* list_ = nullptr;
};

}  // namespace

Verdict FirewallStage::decide(Flow& flow) const { return Judge(flow, tables_, flow.ingress(), true).judge(); }

Verdict FirewallDelivery::decide(Flow& flow) const { return Judge(flow, tables_, flow.egress(), false).judge(); }

}  // namespace weir
