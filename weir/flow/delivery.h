#pragma once
// Where a packet that is about to leave by a port goes first: the port's delivery side.

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include <weir/flow/dependency.h>
#include <weir/flow/port.h>

namespace weir {

/// By port, the stage at which delivery to it begins, or none. A rule that outputs to a port depends on that port's
/// entry; floods and select groups look when they run, as they do for their members. Changed by Update::set_delivery.
class Deliveries {
 public:
  static constexpr std::uint8_t nowhere = 0xff;

  struct Entry {
    std::uint8_t stage;
    KeyedDependency dependency;
  };

  Deliveries() {
    for (auto& stage : stages_) {
      stage.store(nowhere, std::memory_order_relaxed);
    }
  }

  /// For engines, when a packet leaves. Any number.
  [[nodiscard]] std::uint8_t stage(std::uint32_t port) const {
    return port < max_ports ? stages_[port].load(std::memory_order_acquire) : nowhere;
  }
  /// For a trace: with what the rule depends on. The port's number is below max_ports.
  [[nodiscard]] Entry look_up(PortId port) {
    Dependents& dependents = dependents_[port.number];
    const std::lock_guard guard(dependents.lock());
    return {stages_[port.number].load(std::memory_order_relaxed), {&dependents, dependents.generation()}};
  }

 private:
  friend class Update;

  // Returns how many rules it cleared.
  std::size_t set(PortId port, std::uint8_t stage) {
    Dependents& dependents = dependents_[port.number];
    const std::lock_guard guard(dependents.lock());
    if (stages_[port.number].exchange(stage, std::memory_order_acq_rel) == stage) {
      return 0;
    }
    return dependents.changed();
  }

  std::array<std::atomic<std::uint8_t>, max_ports> stages_;
  std::array<Dependents, max_ports> dependents_;
};

}  // namespace weir
