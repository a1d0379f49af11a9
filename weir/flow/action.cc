#include <weir/flow/action.h>

namespace weir {

std::string_view name_of(ActionKind kind) {
  static constexpr std::string_view names[] = {
      "set",    "decrement_ttl", "push_vlan", "pop_vlan", "encapsulate", "decapsulate", "translate_quoted",
      "track",  "count",         "meter",     "mirror",   "output",      "flood",       "select",
      "reject", "drop",          "enter",     "to_host",  "resolve",
  };
  return names[static_cast<unsigned>(kind)];
}

Action action_of(const Track& track) {
  Action action{.kind = ActionKind::track, .number = track.serial, .object = track.entry};
  action.value.bytes[0] = track.side;
  action.value.bytes[1] = track.tcp ? 1 : 0;
  return action;
}

Track track_of(const Action& action) {
  return {static_cast<ConnectionEntry*>(action.object), action.number, action.value.bytes[0],
          action.value.bytes[1] != 0};
}

std::string_view name_of(GuardKind kind) {
  static constexpr std::string_view names[] = {"ttl_above", "fits", "tcp_flags", "frame_fits", "sctp_data"};
  return names[static_cast<unsigned>(kind)];
}

}  // namespace weir
