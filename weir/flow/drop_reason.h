#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

/// Why a packet was dropped. Stages define their own as constants; the name is what counters and traces show.
struct DropReason {
  std::string_view name;  ///< snake_case; lives as long as the node
  std::string_view help;  ///< a sentence
};

/// A reason's number on its node: State::reason.
using ReasonId = std::uint16_t;

/// The most reasons of one node; those beyond share the last.
inline constexpr unsigned max_reasons = 256;

/// The runtime's own, in the order of their numbers.
namespace drop {
enum Builtin : ReasonId {
  unconnected,
  port_unknown,
  port_down,
  output_full,
  no_member,
  flood_empty,
  metered,
  stage_error,
  unrewritable,
  loop_limit,
  kept_at_end,
  no_headroom,
  no_frames,
  decision_budget,
  hand_over_full,
  tunnel_ecn,
  bad_offload,
  not_for_host,
  host_malformed,
  host_bad_checksum,
  host_fragment,
  address_conflict,
  no_listener,
  neighbour_unreachable,
  neighbour_queue_full,
  resolving_limit,
  waiting_limit,
  bfd_not_adjacent,
  bfd_malformed,
  bfd_authenticated,
  bfd_no_session,
  builtin_count,
};
inline constexpr DropReason builtin[builtin_count] = {
    {"unconnected", "a stage passed the packet on, and nothing is connected there"},
    {"port_unknown", "sent to a port that the node does not have"},
    {"port_down", "sent to a port that is down"},
    {"output_full", "the device took no more packets"},
    {"no_member", "a select group without members, or none whose path is up"},
    {"flood_empty", "a flood domain without another port"},
    {"metered", "above a meter's rate"},
    {"stage_error", "a stage made a programming error; the log names it"},
    {"unrewritable", "a rewrite that needs bytes the packet does not hold (a fragment of SCTP)"},
    {"loop_limit", "passed through the graph too often"},
    {"kept_at_end", "a packet stage still kept it, or it waited for a neighbour, when the node ended"},
    {"no_headroom", "no room in front of the packet for another header"},
    {"no_frames", "the frame pool ran out"},
    {"decision_budget", "too many packets of new flows from this port"},
    {"hand_over_full", "the ring to the worker that owns the flow was full"},
    {"tunnel_ecn", "congestion was marked on a packet that cannot carry the mark (RFC 6040, section 4.2)"},
    {"bad_offload", "its offload state, left by its sender, does not fit its headers"},
    {"not_for_host", "given to the node itself, but for none of its addresses"},
    {"host_malformed", "for the node itself, and not what its headers promise (ARP, neighbour discovery, options)"},
    {"host_bad_checksum", "for the node itself, with a wrong checksum"},
    {"host_fragment", "a fragment for the node itself, which does not put them together"},
    {"address_conflict", "another host claims one of the node's own addresses"},
    {"no_listener", "for the node itself, and nothing there takes it"},
    {"neighbour_unreachable", "the next hop or host did not say its Ethernet address"},
    {"neighbour_queue_full", "the oldest of too many packets that wait for one neighbour's Ethernet address"},
    {"resolving_limit", "too many neighbours are being asked for their Ethernet addresses"},
    {"waiting_limit", "too many packets wait for neighbours' Ethernet addresses"},
    {"bfd_not_adjacent", "BFD whose time to live is not 255: it does not come from a neighbour (RFC 5881, section 5)"},
    {"bfd_malformed", "BFD that says what cannot be (RFC 5880, section 6.8.6)"},
    {"bfd_authenticated", "BFD with authentication, which the node does not do"},
    {"bfd_no_session", "BFD for no session of the node's"},
};
}  // namespace drop

/// The ICMP message that goes back for a rejected packet.
enum class IcmpError : std::uint8_t {
  time_exceeded,
  no_route,
  prohibited,
  port_unreachable,
  too_big,
  host_unreachable
};

/// A refusal: the packet is dropped for `reason`, and its sender told, within a rate.
struct Reject {
  IcmpError icmp;
  DropReason reason;
  std::uint16_t mtu = 0;  ///< for too_big
};

inline constexpr Reject time_exceeded{IcmpError::time_exceeded, {"time_exceeded", "its time to live ran out"}};
inline constexpr Reject no_route{IcmpError::no_route, {"no_route", "no route to its destination"}};
inline constexpr Reject prohibited{IcmpError::prohibited, {"prohibited", "refused by a policy"}};
inline constexpr Reject too_big(std::uint16_t mtu) {
  return {IcmpError::too_big, {"too_big", "longer than the MTU of its way"}, mtu};
}

}  // namespace weir
