#pragma once
// The flow hash (packet/flow_hash.h), once more, from its definition.

#include <weir/engine/reference/headers.h>

namespace weir::reference {

/// Each end of the conversation is mixed with the seed by itself and the results are added, so that both directions
/// have the same hash; the sum is mixed with the protocol. An end is an IP address and a port, the identifier of an
/// ICMP message or, in fragments and other protocols, 0; without IP it is an Ethernet address.
std::uint64_t flow_hash(const Frame& frame, const Headers& headers, std::uint64_t seed);

}  // namespace weir::reference
