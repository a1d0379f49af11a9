#pragma once
// Packets of a few conversations, in any order: openings, data, endings, answers to translated addresses, ICMP errors
// that quote any of them, and what belongs to none.

#include <vector>

#include <weir/base/random.h>
#include <weir/engine/testing/packets.h>

namespace weir::testing {

/// Hosts 10.0.0.1 to 10.0.0.3 speak to 10.0.1.1 and 10.0.1.2 (or 2001:db8::1, ... to 2001:db8:1::1, ...); what is
/// translated comes from 203.0.113.1 (2001:db8:9::1) and, for those who ask 10.0.1.9, goes to 10.0.1.1.
Bytes conversation_packet(Random& random);

}  // namespace weir::testing
