#include <weir/flow/flow.h>

#include <weir/flow/stage.h>

namespace weir {

void Flow::translate(const Nat& nat) {
  if (nat.set_src) {
    set(ip::src, nat.src);
  }
  if (nat.set_dst) {
    set(ip::dst, nat.dst);
  }
  if (nat.set_src_port) {
    set(l4::src_port, nat.src_port);
  }
  if (nat.set_dst_port) {
    set(l4::dst_port, nat.dst_port);
  }
}

Verdict Flow::to(const FlowStage& stage) { return {Verdict::Kind::to, stage_number(&stage)}; }
Verdict Flow::to(const PacketStage& stage) { return {Verdict::Kind::to, stage_number(&stage)}; }

Verdict Flow::select(const NextHops& hops) {
  Group* group = state().find_group(hops.group);
  if (group == nullptr) {
    every_packet();  // it may be created yet, which no rule would be told
    throw StageError{fmt::format("select of group {}, which does not exist", hops.group)};
  }
  return select(*group);
}

}  // namespace weir
