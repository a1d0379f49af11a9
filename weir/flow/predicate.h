#pragma once
// Questions about a field that reveal less than its value: `flow.test(l4::dst_port, below(1024))`.
//
// A predicate answers for one value, and says which of the field's bits prove the answer: every value that agrees on
// those bits gives the same one. Only they become part of the rule's match.

#include <weir/flow/field.h>

namespace weir {

/// An answer and its proof.
struct Tested {
  bool holds;
  FieldValue proof;  ///< mask, right-aligned like a value
};

/// The field's number is below `limit`.
struct Below {
  std::uint64_t limit;
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};
/// The field equals `value`. Where it does not, one differing bit is the proof.
struct Equals {
  FieldValue wanted;
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};
/// The Ethernet or IP address is a group address.
struct Multicast {
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};
/// The IP address lies in `prefix`.
struct Inside {
  IpPrefix prefix;
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};
/// Of the TCP flags in `mask`, exactly those in `wanted` are set. A guard: checked on every packet, not matched.
struct Flags {
  std::uint8_t mask;
  std::uint8_t wanted;
};

constexpr Below below(std::uint64_t limit) { return {limit}; }
template <class T>
Equals equals(const T& value) {
  return {to_field(value)};
}
constexpr Multicast multicast() { return {}; }
inline Inside inside(const IpPrefix& prefix) { return {prefix}; }
constexpr Flags flags(std::uint8_t mask, std::uint8_t wanted) { return {mask, wanted}; }

}  // namespace weir
