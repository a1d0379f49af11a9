#include <weir/flow/connection_timeouts.h>

#include <weir/packet/ipv4.h>

namespace weir {

Nanoseconds timeout_of(const ConnectionEntry& entry, const ConnectionTimeouts& t) {
  switch (entry.original.protocol) {
    case ip_protocol::tcp:
      switch (entry.tcp.state()) {
        case TcpState::syn_sent:
        case TcpState::syn_received:
          return t.tcp_opening;
        case TcpState::established:
          return t.tcp_established;
        case TcpState::closing:
          return t.tcp_closing;
        case TcpState::last_ack:
          return t.tcp_last_ack;
        case TcpState::time_wait:
          return t.tcp_time_wait;
        case TcpState::closed:
          return t.tcp_closed;
      }
      return t.tcp_opening;
    case ip_protocol::sctp:
      switch (entry.sctp.state()) {
        case SctpState::opening:
          return t.sctp_opening;
        case SctpState::established:
          return t.sctp_established;
        default:
          return t.sctp_closing;
      }
    case ip_protocol::udp:
      return entry.replied ? t.udp_established : t.udp_new;
    case ip_protocol::icmp:
    case ip_protocol::icmpv6:
      return t.icmp;
    default:
      return t.other;
  }
}

}  // namespace weir
