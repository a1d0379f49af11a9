#pragma once
// What a rule does, in the form every engine is given. Engines compile it to their own.

#include <cstdint>
#include <vector>

#include <weir/flow/connection_entry.h>
#include <weir/flow/drop_reason.h>
#include <weir/flow/encapsulation.h>
#include <weir/flow/field.h>
#include <weir/flow/port.h>

namespace weir {

class Counter;
class Group;
class Meter;

enum class ActionKind : std::uint8_t {
  set,  ///< field, value
  decrement_ttl,
  push_vlan,    ///< number: tag control; becomes the outer tag, type 0x8100
  pop_vlan,     ///< takes the outer tag
  encapsulate,  ///< number: index into Rule::tunnels
  decapsulate,  ///< takes everything up to and with the VXLAN header; number: what its VNI shall be and bit 24, or 0
  translate_quoted,  ///< number: index into Rule::quoted
  track,             ///< object: ConnectionEntry, with number and value: see track_of. Comes first
  count,             ///< object: Counter
  meter,             ///< object: Meter; ends with drop(metered) above the rate
  mirror,            ///< number: port
  // The last action of a rule is one of these.
  output,  ///< number: port
  flood,   ///< number: VLAN or DomainId of the domain
  select,  ///< object: Group
  reject,  ///< number: RejectNumber; reason
  drop,    ///< reason
  enter,   ///< number: stage at which the packet is looked up again, or packet stage that gets it; above bit 16, on the
           ///< delivery side of a port, Key::delivery_bit and the port's number
  to_host,  ///< the node itself takes the packet
  resolve,  ///< number: port; value: address. The packet waits until its Ethernet address is known
};

struct Action {
  ActionKind kind;
  FieldId field{};
  ReasonId reason = 0;
  std::uint32_t number = 0;
  FieldValue value{};
  void* object = nullptr;
};

Action action_of(const Track& track);
Track track_of(const Action& action);

/// A condition on each packet, tested before the first action. A rule applies to packets that match and pass all.
enum class GuardKind : std::uint8_t {
  ttl_above,   ///< TTL > number
  fits,        ///< L3 length <= number
  flags,       ///< TCP flags & (number >> 8) == number & 0xff
  frame_fits,  ///< length of the frame <= number
  sctp_data,   ///< SCTP, and its first chunk neither opens nor closes an association
};

struct Guard {
  GuardKind kind;
  bool expected;  ///< the outcome that the rule is for
  std::uint32_t number;

  bool operator==(const Guard&) const = default;
};

std::string_view name_of(ActionKind kind);
std::string_view name_of(GuardKind kind);

}  // namespace weir
