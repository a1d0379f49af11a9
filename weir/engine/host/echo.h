#pragma once
// Echo requests and replies (RFC 792; RFC 4443, section 4).

#include <weir/packet/packet.h>

namespace weir {

/// Whether the packet, which is parsed and is ICMP or ICMPv6, asks for an echo.
bool is_echo_request(const Packet& packet);

/// Makes the request, whole and without options, the reply to it: its addresses turned round, its TTL anew.
void turn_into_reply(Packet& packet);

}  // namespace weir
