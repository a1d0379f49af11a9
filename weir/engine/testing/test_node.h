#pragma once
// A node without devices, for tests: a graph, an engine, packets in and packets out.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <weir/engine/executor.h>
#include <weir/engine/testing/packets.h>
#include <weir/flow/update.h>

namespace weir::testing {

/// A packet to send.
struct TestPacket {
  Bytes bytes;
  Offload offload{};
  std::vector<std::uint16_t> segments{};  ///< bytes of the chain's segments but the last; empty: not chained by hand
};

/// A packet that left.
struct Sent {
  std::uint16_t port;
  Bytes bytes;
  bool tunnel;
  std::uint32_t vni;
  Offload offload;  ///< its fields that mean nothing are zero

  bool operator==(const Sent& other) const;
};

/// Everything that can be seen of a node from outside, since it was made. `sent` is emptied by each look.
struct Observed {
  std::map<std::uint16_t, std::vector<Sent>> sent;                                        ///< by port, in order
  std::map<std::string, std::uint64_t> drops;                                             ///< by reason
  std::vector<std::pair<std::string, std::pair<std::uint64_t, std::uint64_t>>> counters;  ///< packets and bytes
  std::vector<std::pair<std::string, std::size_t>> tables;                                ///< entries
  std::vector<std::uint64_t> processed;                                                   ///< by packet stage
  std::uint64_t cloned = 0;
  std::uint64_t originated = 0;
  std::uint64_t consumed = 0;
  std::uint64_t waiting = 0;

  bool operator==(const Observed&) const = default;
};

/// The first difference in words; empty if there is none.
std::string difference(const Observed& a, const Observed& b);

/// What a test builds a graph with. Lives as long as the node.
class GraphBuilder {
 public:
  GraphBuilder(State& node_state, Pipeline& pipeline, PortTable& ports)
      : state(node_state), pipeline_(pipeline), ports_(ports) {}

  State& state;

  /// Adds a flow stage; its number.
  template <class F>
  std::uint8_t stage(F decide) {
    auto stage = std::make_shared<FunctionStage<F>>(std::move(decide));
    const FlowStage* pointer = stage.get();
    return add(std::move(stage), pointer, nullptr);
  }
  /// Adds a packet stage.
  template <class Stage, class... Args>
  std::uint8_t packet_stage(Args&&... args) {
    auto stage = std::make_shared<Stage>(std::forward<Args>(args)...);
    PacketStage* pointer = stage.get();
    return add(std::move(stage), nullptr, pointer);
  }
  void connect(std::uint8_t from, std::uint16_t output, std::uint8_t to);
  /// From output 0.
  void connect(std::uint8_t from, std::uint8_t to) { connect(from, 0, to); }

  [[nodiscard]] const FlowStage& flow_stage(std::uint8_t number) const { return *pipeline_.stages[number].flow; }
  [[nodiscard]] PacketStage& packet_stage_at(std::uint8_t number) const { return *pipeline_.stages[number].packet; }

  /// Where packets of `port` enter; without it, stage 0.
  void enter(PortId port, std::uint8_t stage) { pipeline_.entry[port.number] = stage; }

  /// Delivery to `port` begins at the stage.
  void deliver(PortId port, std::uint8_t stage) {
    may_deliver();
    apply([&](Update& update) { update.set_delivery(port, stage); });
  }
  /// An event will say that delivery begins somewhere.
  void may_deliver() { pipeline_.delivers = true; }

  /// Ports 0 to `count` - 1, up, each with an IPv4 and an IPv6 address. Six if it is not called.
  void ports(std::uint16_t count);
  void set_up(PortId port, bool up);

  /// Applied at once while the graph is built.
  void apply(const std::function<void(Update&)>& change);
  /// Something that TestNode::happen makes happen.
  void event(std::string name, std::function<void(Update&)> change) { events_[std::move(name)] = std::move(change); }

  /// Keeps `object` as long as the node lives.
  template <class T>
  T& keep(T object) {
    auto kept = std::make_shared<T>(std::move(object));
    T& result = *kept;
    owned_.push_back(std::move(kept));
    return result;
  }

 private:
  friend class TestNode;
  std::uint8_t add(std::shared_ptr<void> owned, const FlowStage* flow, PacketStage* packet);

  Pipeline& pipeline_;
  PortTable& ports_;
  std::map<std::string, std::function<void(Update&)>> events_;
  std::vector<std::shared_ptr<void>> owned_;
};

/// Builds the same graph each time it is called.
using Build = std::function<void(GraphBuilder&)>;

enum class EngineKind { cached, uncached, reference };
std::string_view name_of(EngineKind kind);

class TestNode {
 public:
  struct Options {
    std::uint32_t rule_cache = 4096;
    std::uint32_t frames = 4096;
    std::uint64_t seed = 1;
  };

  TestNode(EngineKind kind, const Build& build, Options options);
  ~TestNode();

  /// One batch; at most Executor::batch_limit packets.
  void send(PortId ingress, std::span<const TestPacket> packets, Nanoseconds now);
  /// An event of the graph, as a control update between batches.
  void happen(const std::string& event, Nanoseconds now);
  /// What a worker does between batches.
  void idle(Nanoseconds now);
  /// What it does when nothing more will come.
  void finish(Nanoseconds now);

  Observed observe();
  [[nodiscard]] const WorkerStats& stats() const { return *stats_; }
  [[nodiscard]] State& state() { return state_; }

  /// What broke of "in + cloned + originated = out + dropped + consumed + held", in words; empty if nothing.
  [[nodiscard]] std::string unaccounted() const;
  /// Ends the node; returns how many frames were not given back.
  std::size_t close();

 private:
  Packet* make(const TestPacket& test);
  void take_outputs();

  Epochs epochs_;
  State state_;
  Pipeline pipeline_;
  std::unique_ptr<PortTable> ports_;
  std::unique_ptr<FramePool> pool_;
  std::unique_ptr<PacketCache> frames_;
  Outputs outputs_;
  std::unique_ptr<WorkerStats> stats_;
  GraphBuilder graph_;
  std::unique_ptr<Executor> executor_;
  DecisionBudget budget_;
  std::uint64_t received_ = 0;
  std::uint64_t left_ = 0;
  std::map<std::uint16_t, std::vector<Sent>> sent_;
};

/// Three nodes of one graph, one for each engine, which must not be told apart.
class Differential {
 public:
  explicit Differential(const Build& build, const TestNode::Options& options = {});

  /// Each returns the first difference in words, or nothing.
  std::string send(PortId ingress, std::span<const TestPacket> packets, Nanoseconds now);
  std::string happen(const std::string& event, Nanoseconds now);
  std::string idle(Nanoseconds now);
  std::string finish(Nanoseconds now);
  /// Frames that were not given back, packets not accounted for. Ends the nodes.
  std::string close();

  [[nodiscard]] TestNode& node(EngineKind kind) { return *nodes_[static_cast<std::size_t>(kind)]; }
  /// What the reference engine's node showed in the last comparison.
  [[nodiscard]] const Observed& observed() const { return observed_; }

 private:
  std::string compare();

  std::vector<std::unique_ptr<TestNode>> nodes_;
  Observed observed_;
};

}  // namespace weir::testing
