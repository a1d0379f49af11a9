#pragma once
// What a node has counted, as plain data.

#include <cstdint>
#include <string>
#include <vector>

#include <weir/base/clock.h>

namespace weir {

struct Summary {
  struct PortLine {
    std::string name;
    std::uint64_t in_packets, in_bytes, out_packets, out_bytes;
    std::uint64_t lost;       ///< by the device, before the node took them
    std::uint64_t digest;     ///< of what was sent, where the device computes one
    std::uint64_t bad_input;  ///< records that could not be read
  };
  struct StageLine {
    std::string name;
    bool packet_stage;
    std::uint64_t decisions;
    std::uint64_t decision_ns;  ///< of the decisions whose trace began at this stage
    std::uint64_t hits;         ///< packets handled by rules that it took part in; or processed, by a packet stage
  };
  struct DropLine {
    std::string reason;
    std::string help;
    std::uint64_t packets;
  };
  struct WorkerLine {
    std::uint64_t cpu_ns;
    std::uint64_t wall_ns;
  };
  struct CounterLine {
    std::string name;
    std::uint64_t packets, bytes;
  };
  struct TableLine {
    std::string name;
    std::uint64_t size, capacity, rejected;
  };

  std::vector<PortLine> ports;
  PortLine removed_ports{};  ///< sums over the ports that are there no more; without a name
  std::vector<StageLine> stages;
  std::vector<DropLine> drops;  ///< those that occurred, most first
  std::vector<WorkerLine> workers;
  std::vector<CounterLine> counters;
  std::vector<TableLine> tables;

  // The rule caches, over all workers.
  std::uint64_t exact_hits = 0, masked_hits = 0, port_hits = 0, misses = 0, probes = 0;
  std::uint64_t rules = 0, masks = 0, installed = 0, not_installed = 0, widened = 0, evicted = 0, aged = 0, revoked = 0;
  std::uint64_t hints_evicted = 0;

  std::uint64_t cloned = 0, originated = 0, consumed = 0, held = 0, no_frames = 0;
  std::uint64_t wall_ns = 0;  ///< since the workers started

  [[nodiscard]] std::uint64_t in_packets() const {
    std::uint64_t sum = removed_ports.in_packets;
    for (const PortLine& port : ports) {
      sum += port.in_packets;
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t out_packets() const {
    std::uint64_t sum = removed_ports.out_packets;
    for (const PortLine& port : ports) {
      sum += port.out_packets;
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (const DropLine& drop : drops) {
      sum += drop.packets;
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t hits() const { return exact_hits + masked_hits + port_hits; }
};

}  // namespace weir
