#include <weir/flow/action.h>

namespace weir {

std::string_view name_of(ActionKind kind) {
  static constexpr std::string_view names[] = {
      "set",    "decrement_ttl", "push_vlan", "pop_vlan", "encapsulate", "decapsulate", "count",   "meter",   "mirror",
      "output", "flood",         "select",    "reject",   "drop",        "enter",       "to_host", "resolve",
  };
  return names[static_cast<unsigned>(kind)];
}

std::string_view name_of(GuardKind kind) {
  static constexpr std::string_view names[] = {"ttl_above", "fits", "tcp_flags", "frame_fits"};
  return names[static_cast<unsigned>(kind)];
}

}  // namespace weir
