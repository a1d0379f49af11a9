#pragma once
// Matches, prefixes and addresses as files write them.

#include <string_view>
#include <vector>

#include <weir/base/config.h>
#include <weir/flow/match.h>

namespace weir {

/// The keys that `read_match` reads, for Config::check_keys.
std::span<const std::string_view> match_keys();

/// The matches that together are what the map asks for: conditions on protocol (tcp, udp, sctp, icmp, icmpv6, arp,
/// ipv4, ipv6, ip), src and dst (prefixes), src_port and dst_port (a number, "1000-2000", or a list of them), vlan (1
/// to 4094); all optional, other keys are passed over. Port ranges become several matches. Errors name every mistake.
Result<std::vector<Match>> read_match(const Config& rule);

Result<IpPrefix> read_prefix(const Config& text);
Result<MacAddress> read_mac(const Config& text);

}  // namespace weir
