#pragma once
// One thread that takes packets from ports, runs them through the graph and hands them to ports.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <weir/base/loop.h>
#include <weir/engine/core/core_executor.h>
#include <weir/runtime/port.h>
#include <weir/runtime/ring.h>

namespace weir {

/// What a worker does when there is nothing to do.
enum class Idle : std::uint8_t {
  poll,       ///< looks again at once
  adaptive,   ///< looks for a while, then sleeps until a device wakes it
  interrupt,  ///< sleeps at once
};

enum class EngineKind : std::uint8_t { core, reference };

/// How much of a worker's time the decisions of one port may take while other ports have packets, in per cent.
struct DecisionShare {
  unsigned percent = 10;  ///< 1 to 100; 100: no limit
};

/// What the workers of a node have in common.
struct WorkerShared {
  State& state;
  const Pipeline& pipeline;
  const PortTable& port_table;
  const std::vector<std::unique_ptr<Port>>& ports;  ///< by number; read where PortTable says that it is up
  FramePool& pool;
  const Clock& clock;
  bool capture_time;  ///< the clock is moved by the ports' packets, which are taken in the order of their times
  Idle idle;
  EngineKind engine;
  std::uint32_t rule_cache;
  DecisionShare decision_share;
  std::size_t batch;
  unsigned worker_count;
  std::vector<std::unique_ptr<class Worker>>& workers;
  const std::atomic<bool>& endless;  ///< there has been a port whose packets have no end: it runs until it is stopped
};

/// On cache lines of its own, as all that a worker writes while it runs: two workers never share one.
class alignas(64) Worker {
 public:
  Worker(WorkerShared& shared, unsigned number);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Makes the worker's loop. Before anything else.
  Result<> prepare();

  /// Runs on a thread of its own, pinned to processor `cpu` unless that is negative, until `stop` or, unless the node
  /// is endless, until nothing can come any more.
  void start(int cpu);
  void stop();
  void join();

  /// One round on the calling thread; how many packets it handled. For embedding; not while `start`ed.
  std::size_t poll_once();

  /// Whether it polls some of this port's queues.
  [[nodiscard]] bool polls(PortId port, const Port& on) const;
  /// Begins to poll its queues of a port. Its own thread, or any while it does not run.
  void add(PortId port, Port& on);
  /// Polls them no more; the port is down. As `add`.
  void remove(PortId port);
  /// Handles the packets that wait in rings now. As `add`.
  void drain();

  /// Whether no worker will ever have another packet, and no ring leads here with one.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool running() const { return running_.load(std::memory_order_acquire); }

  [[nodiscard]] const WorkerStats& stats() const { return stats_; }
  [[nodiscard]] WorkerStats& stats() { return stats_; }
  /// nullptr for the reference engine.
  [[nodiscard]] CoreExecutor* core() { return core_; }
  [[nodiscard]] Loop& loop() { return *loop_; }
  /// Packets that wait in rings for this worker, that its packet stages keep, or that wait for a neighbour.
  [[nodiscard]] std::size_t held() const;

  /// Processor and wall-clock time of its thread so far.
  [[nodiscard]] Nanoseconds cpu_time() const { return cpu_time_.load(std::memory_order_relaxed); }
  [[nodiscard]] Nanoseconds wall_time() const { return wall_time_.load(std::memory_order_relaxed); }

 private:
  /// Without packets of a port; others may then use the time.
  static constexpr unsigned rounds_until_quiet = 64;

  struct alignas(64) Source {
    Port* port;
    PortId id;
    unsigned queue;
    bool hand_over;  ///< packets belong to the worker that their flow hashes to
    DecisionBudget budget;
    unsigned empty_rounds = rounds_until_quiet + 1;  ///< since it last had packets, counted no further than this
    SpawnedTask wake_up = {};
    bool paused = false;           ///< it has used up its decisions
    bool pressed = false;          ///< it did so not long ago
    unsigned deferred_rounds = 0;  ///< since it was polled, of rounds in which others had a backlog

    [[nodiscard]] bool busy() const { return empty_rounds <= rounds_until_quiet; }
  };

  void thread_main();
  std::size_t round();
  std::size_t poll(Source& source, std::size_t limit);
  std::size_t poll_in_time_order();
  std::size_t poll_rings();
  void note_activity(Source& source, bool any);
  void run(PortId port, std::span<Packet*> packets, DecisionBudget& budget);
  void hand_over(PortId port, std::span<Packet*> packets, DecisionBudget& budget);
  std::size_t room_to_hand_over() const;
  static std::uint64_t bytes_of(std::span<Packet* const> packets);
  void send();
  std::span<Packet*> finished_for(const Port& port, std::span<Packet*> packets);
  void refill(Nanoseconds now);
  void sleep();
  Task<> watch(int descriptor);
  void note_input();
  void account_time();
  void want_wake_ups(bool wanted);

  WorkerShared& shared_;
  unsigned number_;
  WorkerStats stats_;
  PacketCache frames_;
  Outputs outputs_;
  std::vector<Packet*> segments_;
  std::unique_ptr<Executor> executor_;
  CoreExecutor* core_ = nullptr;
  std::unique_ptr<Loop> loop_;
  Epochs::Reader& reader_;
  std::vector<Source> sources_;
  std::size_t busy_sources_ = 0;
  bool backlog_ = false;  ///< a port that is not pressed had a whole batch in the round before
  std::vector<std::unique_ptr<PacketRing>> inbound_;  ///< by the worker that writes
  DecisionBudget ring_budget_;
  Nanoseconds now_ = 0;  ///< of the round
  Nanoseconds refilled_ = 0;
  bool all_descriptors_ = true;
  std::atomic<bool> input_ended_{false};  ///< none of its sources will have another packet, or will hand one over
  bool wakes_wanted_ = true;              ///< devices wake it when it sleeps
  unsigned rounds_awake_ = 0;             ///< since it slept, or told devices whether to wake it

  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> running_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<Nanoseconds> cpu_time_{0};
  std::atomic<Nanoseconds> wall_time_{0};
  Nanoseconds started_ = 0;
};

}  // namespace weir
