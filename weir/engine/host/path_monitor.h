#pragma once
// Runs BFD sessions for the paths that are wanted, and tells Paths what they find.

#include <vector>

#include <weir/engine/executor.h>
#include <weir/engine/host/bfd_sessions.h>
#include <weir/engine/host/resolver.h>

namespace weir {

/// One worker's. It looks at the times of the sessions that belong to it, those of the ports whose number leaves its
/// own when divided by the number of workers (the worker that polls a port of one queue). One thread.
class PathMonitor {
 public:
  /// `resolver` finds the Ethernet addresses of neighbours; it outlives the monitor.
  PathMonitor(const ExecutorContext& context, Resolver& resolver);
  ~PathMonitor();
  PathMonitor(const PathMonitor&) = delete;
  PathMonitor& operator=(const PathMonitor&) = delete;

  /// Whether there are sessions that a packet might be for, of whichever worker.
  [[nodiscard]] bool any() const { return !sessions_.empty(); }
  /// Hears a packet that `is_bfd`, for an address of the node's; it stays the caller's. Why it is refused, or nothing.
  std::optional<ReasonId> hear(Packet& packet, Nanoseconds now);
  /// Between batches: sends what is due, and finds out who is silent.
  void idle(Nanoseconds now);
  /// When `idle` has something to do.
  [[nodiscard]] Nanoseconds idle_by() const { return idle_by_; }
  void forget(PortId port);

 private:
  struct Own {
    BfdSessions::EntryPtr entry;
    unsigned doubts = 0;    ///< rounds since its neighbour seemed to be silent
    Nanoseconds until = 0;  ///< it is no longer wanted, and goes then; 0: it stays
  };

  void take_over_wishes(Nanoseconds now);
  bool tend(Own& own, Nanoseconds now);
  void send_due(BfdSessions::Entry& entry, Nanoseconds now);
  bool find_neighbour(BfdSessions::Entry& entry, Nanoseconds now);
  void tell(const BfdSessions::Entry& entry);
  void end(const Own& own);

  ExecutorContext context_;
  Resolver& resolver_;
  BfdSessions& sessions_;
  std::vector<Own> own_;
  std::uint64_t wishes_seen_ = 0;
  Nanoseconds shortest_ = BfdSession::never;  ///< of the intervals of its sessions
  Nanoseconds idle_by_ = BfdSession::never;
};

}  // namespace weir
