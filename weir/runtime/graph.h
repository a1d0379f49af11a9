#pragma once
// Stages and what follows what.

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <weir/flow/pipeline.h>

namespace weir {

/// A stage of either kind.
struct StageRef {
  const FlowStage* flow = nullptr;
  const PacketStage* packet = nullptr;

  StageRef(const FlowStage& stage) : flow(&stage) {}      // NOLINT: a stage is a reference to itself
  StageRef(const PacketStage& stage) : packet(&stage) {}  // NOLINT
  [[nodiscard]] const void* address() const {
    return flow != nullptr ? static_cast<const void*>(flow) : static_cast<const void*>(packet);
  }
  bool operator==(const StageRef&) const = default;
};

/// Built before the node starts; then validated as a whole. Owns its stages.
class Graph {
 public:
  /// Adds a stage of class S, made from `args`, and returns it. Names are unique.
  template <class S, class... Args>
    requires std::derived_from<S, FlowStage> || std::derived_from<S, PacketStage>
  S& add(std::string name, Args&&... args) {
    auto stage = std::make_unique<S>(std::forward<Args>(args)...);
    S& result = *stage;
    insert(std::move(name), std::move(stage));
    return result;
  }

  /// Adds a flow stage from a function `Verdict(Flow&)`.
  template <std::invocable<Flow&> F>
  const FlowStage& stage(std::string name, F decide) {
    return add<FunctionStage<F>>(std::move(name), std::move(decide));
  }

  /// Packets of `port` enter at `to`.
  void connect(PortId port, StageRef to) { port_edges_.push_back({port, to.address()}); }

  /// Packets of every port that has no edge of its own enter at `to`; also those of ports that are added while the node
  /// runs, which needs it.
  void connect_ports(StageRef to) { default_entry_ = to.address(); }

  /// Delivery to ports may begin at `stage`; its number, for Update::set_delivery.
  std::uint8_t deliver_at(StageRef stage) {
    delivers_ = true;
    return static_cast<std::uint8_t>(find(stage.address()));
  }

  /// What `from` passes on (a flow stage by next(), a packet stage by `output`) goes to `to`.
  void connect(StageRef from, StageRef to, unsigned output = 0) {
    edges_.push_back({from.address(), to.address(), output});
  }

  /// The graph as engines run it, for ports with these names by number (empty: there is none). An error lists
  /// everything that is wrong: names used twice, ports and outputs connected twice or not at all, stages and ports that
  /// do not exist, cycles.
  [[nodiscard]] Result<Pipeline> compile(std::span<const std::string> ports) const;

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::string name;
    std::unique_ptr<FlowStage> flow;
    std::unique_ptr<PacketStage> packet;
    [[nodiscard]] const void* address() const {
      return flow ? static_cast<const void*>(flow.get()) : static_cast<const void*>(packet.get());
    }
  };
  struct PortEdge {
    PortId port;
    const void* to;
  };
  struct Edge {
    const void* from;
    const void* to;
    unsigned output;
  };

  void insert(std::string name, std::unique_ptr<FlowStage> stage);
  void insert(std::string name, std::unique_ptr<PacketStage> stage);
  [[nodiscard]] std::size_t find(const void* stage) const;

  std::vector<Node> nodes_;
  std::vector<PortEdge> port_edges_;
  std::vector<Edge> edges_;
  const void* default_entry_ = nullptr;
  bool delivers_ = false;
};

}  // namespace weir
