#pragma once

#include <weir/base/clock.h>
#include <weir/flow/connection_entry.h>

namespace weir {

/// How long a connection stays without a packet, by what it is doing. Nanoseconds.
struct ConnectionTimeouts {
  static constexpr Nanoseconds second = 1'000'000'000;

  Nanoseconds tcp_opening = 60 * second;          ///< until the handshake is complete
  Nanoseconds tcp_established = 86'400 * second;  ///< RFC 5382 asks for 7,440 s at least
  Nanoseconds tcp_closing = 120 * second;         ///< one side has sent its FIN
  Nanoseconds tcp_last_ack = 30 * second;
  Nanoseconds tcp_time_wait = 60 * second;
  Nanoseconds tcp_closed = 10 * second;
  Nanoseconds udp_new = 30 * second;  ///< without an answer
  Nanoseconds udp_established = 180 * second;
  Nanoseconds sctp_opening = 10 * second;
  Nanoseconds sctp_established = 210 * second;
  Nanoseconds sctp_closing = 10 * second;
  Nanoseconds icmp = 30 * second;
  Nanoseconds other = 600 * second;

  bool operator==(const ConnectionTimeouts&) const = default;
};

/// Of an entry whose lock is held.
Nanoseconds timeout_of(const ConnectionEntry& entry, const ConnectionTimeouts& timeouts);

}  // namespace weir
