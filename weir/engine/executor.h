#pragma once
// Who runs packets through the graph: the core engine's executor or the reference engine's. One per worker.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weir/base/counter.h>
#include <weir/engine/ports.h>
#include <weir/flow/pipeline.h>
#include <weir/packet/frame_pool.h>

namespace weir {

/// What a worker counts; written by it, read by anyone.
struct WorkerStats {
  struct alignas(64) Stage {
    OwnedCounter decisions;
    OwnedCounter decision_ns;  ///< of the decisions whose trace began at this stage
    OwnedCounter hits;         ///< packets that a rule handled in whose decision the stage took part
    OwnedCounter processed;    ///< by a packet stage
  };

  std::array<OwnedCounter, max_reasons> drops;
  std::vector<Stage> stages{Pipeline::stage_limit};
  OwnedCounter cloned;
  OwnedCounter originated;
  OwnedCounter exact_hits;   ///< by the exact-match cache
  OwnedCounter masked_hits;  ///< by a masked look-up
  OwnedCounter port_hits;    ///< by a rule that needed no parsing
  OwnedCounter misses;
  OwnedCounter probes;  ///< masks tried by masked look-ups
  OwnedCounter installed;
  OwnedCounter not_installed;  ///< decisions that could not be kept
  OwnedCounter widened;        ///< rules that took an existing mask because there were too many
  OwnedCounter evicted;        ///< rules that made room for others
  OwnedCounter aged;           ///< rules removed because nothing used them
  OwnedCounter revoked;        ///< rules found invalid
  OwnedCounter hints_evicted;  ///< entries of the exact-match cache that made room for others
  OwnedCounter kept;           ///< packets that packet stages keep now
  OwnedCounter consumed;       ///< packets that were for the node itself, which took them
  OwnedCounter waiting;        ///< packets that wait for a neighbour's Ethernet address now

  void drop(ReasonId reason) { drops[reason].add(); }
};

/// How much of a worker's time a port may use for decisions (rule 14). Refilled by the worker.
struct DecisionBudget {
  std::int64_t tokens = 0;  ///< nanoseconds left; below 0: spent
  bool limited = false;     ///< false: count, but drop nothing
};

/// What an executor works with; everything outlives it.
struct ExecutorContext {
  State& state;
  const Pipeline& pipeline;
  const PortTable& ports;
  PacketCache& frames;
  Outputs& outputs;
  WorkerStats& stats;
  unsigned worker;
  unsigned workers = 1;  ///< of the node
};

/// Runs batches. One thread, which is online in the State's epochs.
class Executor {
 public:
  /// The most packets of one batch.
  static constexpr std::size_t batch_limit = Batch::limit;

  virtual ~Executor() = default;

  /// Takes over `packets` (at most batch_limit), which came in by `ingress` at `now`, in order. What leaves is in the
  /// outputs when it returns.
  virtual void process(PortId ingress, std::span<Packet*> packets, Nanoseconds now, DecisionBudget& budget) = 0;

  /// Between batches: housekeeping; packet stages hand back packets whose time has come. What leaves is in the outputs.
  virtual void idle(Nanoseconds now) = 0;
  /// When `idle` is to be called at the latest, whatever else happens. Read between batches.
  [[nodiscard]] virtual Nanoseconds idle_by() const = 0;
  /// The port goes: what waits there for a neighbour, or came in by it and waits, is dropped (port_down).
  virtual void forget(PortId port) = 0;
  /// Instead of `idle`, when nothing more will come: packet stages keep no packet any longer.
  virtual void finish(Nanoseconds now) = 0;
};

}  // namespace weir
