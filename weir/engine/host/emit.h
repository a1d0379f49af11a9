#pragma once

#include <weir/engine/executor.h>

namespace weir {

/// Sends a packet that the node made itself; nullptr, where frames ran out, is nothing. Counted as originated, and
/// dropped by name where the port is down.
inline void originate(const ExecutorContext& context, Packet* packet, std::uint16_t port) {
  if (packet == nullptr) {
    return;
  }
  context.stats.originated.add();
  if (context.ports.up(port)) {
    context.outputs.push(port, packet);
    return;
  }
  context.stats.drop(drop::port_down);
  context.frames.free(packet);
}

}  // namespace weir
