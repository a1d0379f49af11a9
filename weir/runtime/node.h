#pragma once
// One running instance: ports, graph, workers, state. Several may live in one process.

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/flow/update.h>
#include <weir/runtime/graph.h>
#include <weir/runtime/port.h>
#include <weir/runtime/summary.h>
#include <weir/runtime/worker.h>

namespace weir {

struct NodeOptions {
  std::string name = "node";
  unsigned workers = 1;  ///< 1 to max_workers
  Idle idle = Idle::adaptive;
  EngineKind engine = EngineKind::core;
  std::uint32_t rule_cache = 65'536;  ///< rules per worker; 0: none, every packet is decided
  DecisionShare decision_share;
  std::uint32_t connections = Connections::default_limit;  ///< followed at a time
  ConnectionTimeouts connection_timeouts;
  std::uint64_t seed = 1;         ///< of every hash and random choice
  std::uint32_t frames = 16'384;  ///< in the pool, 4 KiB each
  std::size_t batch = 32;         ///< packets taken from a port at once, 1 to 256
  bool pin = true;                ///< worker i to the i-th processor the process may use
  bool capture_time = false;      ///< the clock follows the captures that ports read; packets in order of time
};

/// Ports, stages and state are added first; then the node is started. Functions are for one thread unless they say
/// otherwise; destroying it stops it.
class Node {
 public:
  static Result<std::unique_ptr<Node>> create(NodeOptions options = {});
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // ---- Building ----

  /// A port on the device that `device` describes ("pcap:in.pcap,out=out.pcap"). The device is opened. Also while the
  /// node runs, if the graph says where the packets of such ports enter (Graph::connect_ports).
  Result<PortId> add_port(std::string name, std::string_view device, PortOptions options = {});
  Result<PortId> add_port(std::string name, std::unique_ptr<Device> device, PortOptions options = {});

  [[nodiscard]] Graph& graph() { return graph_; }
  /// Tables and all other shared state: `node.state().table<MacKey, PortId>("macs")`.
  [[nodiscard]] State& state() { return *state_; }

  // ---- Running ----

  /// Validates the graph and starts the workers.
  Result<> start();
  /// Waits until the workers have ended: all input is finite and was read, or `stop` was called, or `time` is over. A
  /// node that has had a port without an end goes on without it, too: others may be added. Then stops them and writes
  /// out what devices hold.
  Result<> wait(std::optional<std::chrono::nanoseconds> time = {});
  /// start and wait.
  Result<> run(std::optional<std::chrono::nanoseconds> time = {});
  /// Makes `wait` return. Any thread, and signal handlers.
  void stop() { stop_.store(true, std::memory_order_release); }

  /// Instead of `start`: validates the graph, for `poll_once`.
  Result<> prepare();
  /// One round of every worker on the calling thread; how many packets were handled.
  std::size_t poll_once();

  // ---- Controlling ----

  /// Applies the changes that `change` records, as one; has an effect on every packet that a worker takes after it
  /// returns. On an error nothing has changed. Any thread but a worker's; while it is running or not.
  Result<UpdateReport> update(const std::function<void(Update&)>& change);

  /// A port that is down drops what is sent to it (port_down) and is not read. A port whose device cannot pass frames
  /// is down whatever is said here. Any thread but a worker's, once the node was started.
  Result<> set_port_up(PortId port, bool up);

  /// Takes a port out while the node runs or not: what was received from it is handled, tables, groups and floods name
  /// it no more, its device is closed. Its number may be taken by a later port, the one that is free longest first. Not
  /// beside other changes of ports.
  Result<> remove_port(PortId port);

  // The steps that adding and removing consist of, for several ports and other changes as one.

  /// As add_port, but the port is down and no flood reaches it: Update::flood_to, then set_port_up.
  Result<PortId> attach_port(std::string name, std::unique_ptr<Device> device, PortOptions options = {});
  /// The end of removing: the port is down, and nothing of the state names it (Update::forget).
  void detach_port(PortId port);
  /// Gives a port other labels, role, addresses, Ethernet address and MTU. It is down, if anything but labels differs.
  void set_port_options(PortId port, PortOptions options);
  /// What its Ethernet address and its MTU are with these options: theirs, the device's, or what is usual.
  [[nodiscard]] MacAddress mac_with(PortId port, const PortOptions& options) const;
  [[nodiscard]] std::uint32_t mtu_with(PortId port, const PortOptions& options) const;

  /// Called on the thread that waits for the node, about every millisecond, from now on. Before `wait`.
  void on_tend(std::function<void()> call) { tending_.push_back(std::move(call)); }

  /// Any thread.
  [[nodiscard]] Summary summary() const;
  /// Since the workers started, until they ended; 0 before. Any thread.
  [[nodiscard]] Nanoseconds uptime() const;

  [[nodiscard]] std::optional<PortId> find_port(std::string_view name) const;
  /// There is such a port. Valid until it is removed.
  [[nodiscard]] const Port& port(PortId port) const { return *ports_[port.number]; }
  [[nodiscard]] std::size_t port_count() const;
  /// Calls visit(PortId, const Port&) for each, in the order of their numbers. Any thread; not from within it.
  template <class Visit>
  void for_each_port(Visit visit) const {
    const std::lock_guard guard(ports_mutex_);
    for (std::uint16_t i = 0; i < ports_.size(); ++i) {
      if (ports_[i] != nullptr) {
        visit(PortId{i}, static_cast<const Port&>(*ports_[i]));
      }
    }
  }
  [[nodiscard]] const NodeOptions& options() const { return options_; }
  [[nodiscard]] Epochs& epochs() { return epochs_; }
  [[nodiscard]] const Pipeline& pipeline() const { return pipeline_; }
  [[nodiscard]] const PortTable& port_table() const { return port_table_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_; }
  /// Keeps the calling thread off the processors that workers are pinned to, if there are others: for threads that work
  /// while the node runs. Once it was started.
  void keep_off_workers() const;
  [[nodiscard]] const Clock& clock() const;
  [[nodiscard]] FramePool& pool() { return *pool_; }

 private:
  explicit Node(NodeOptions options);
  void tend();
  /// Tells all who look that the port is up or down; under ports_mutex_.
  void show_state(PortId port);
  void on_worker(Worker& worker, const std::function<void(Worker&)>& call);

  NodeOptions options_;
  SystemClock system_clock_;
  ManualClock capture_clock_;
  Epochs epochs_;
  std::unique_ptr<State> state_;
  std::unique_ptr<FramePool> pool_;
  Graph graph_;
  Pipeline pipeline_;
  PortTable port_table_;
  std::vector<std::unique_ptr<Port>> ports_;  // by number; null where there is none
  std::deque<std::uint16_t> free_numbers_;    // that were taken, longest free first
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<int> pinned_;  // the processors of the workers
  std::unique_ptr<WorkerShared> shared_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> endless_{false};   // a port has been there whose device is not finite
  Summary::PortLine removed_ports_{};  // what they counted
  mutable std::mutex ports_mutex_;     // guards which ports there are, their options, wanted_up and device_up
  std::mutex tend_mutex_;              // held while devices are looked after, and while one is taken away
  std::vector<std::function<void()>> tending_;
  Nanoseconds tended_ = 0;               // when the devices were looked at last
  std::atomic<Nanoseconds> started_{0};  // 0: not yet
  std::atomic<Nanoseconds> ended_{0};    // 0: it runs
};

}  // namespace weir
