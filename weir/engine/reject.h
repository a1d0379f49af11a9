#pragma once
// The node's own answers to packets that a stage rejects.

#include <weir/engine/ports.h>
#include <weir/flow/state.h>
#include <weir/flow/verdict.h>
#include <weir/packet/frame_pool.h>

namespace weir {

/// The ICMP error for a rejected packet, to leave by the port it came in by; nullptr if none may be sent: about such a
/// packet (make_icmp_error), about one that came out of a tunnel, beyond the node's rate (1,000 a second), or where the
/// port in whose name it would be has no address of its family; but that a packet is too big is then said in the name
/// of its destination, as a switch does it. The packet is parsed.
Packet* make_reject(State& state, const PortTable& ports, PacketCache& frames, const Packet& packet,
                    const RejectNumber& what, Nanoseconds now);

}  // namespace weir
