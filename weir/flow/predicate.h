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
/// The field equals `wanted`. Where it does not, one differing bit is the proof.
struct Equals {
  FieldValue wanted;
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};
/// What `equals` returns: not yet of the field's type, so that a plain number will do.
template <class T>
struct EqualTo {
  T wanted;
  operator Equals() const { return {to_field(wanted)}; }  // NOLINT: of a value that has the field's type
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
/// `value` has the field's type, or converts to it: `flow.test(l4::dst_port, equals(80))`.
template <class T>
EqualTo<T> equals(const T& value) {
  return {value};
}
constexpr Multicast multicast() { return {}; }
inline Inside inside(const IpPrefix& prefix) { return {prefix}; }
constexpr Flags flags(std::uint8_t mask, std::uint8_t wanted) { return {mask, wanted}; }

}  // namespace weir
