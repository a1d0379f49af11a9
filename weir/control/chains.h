#pragma once
// Where a packet goes when it has passed a service: on along the chain of the port it came in by; and, before a host
// port gets it, back along the delivery sides that services of that port's chain have.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <weir/control/node_file.h>
#include <weir/flow/stage.h>
#include <weir/service/service.h>

namespace weir {

using ChainId = std::uint32_t;  // from 1 on

/// What follows what, in each chain.
struct ChainPlan {
  /// By place: the stage that comes next. Place 0 is where packets enter, 1 + i behind service i. Nothing where the
  /// chain ends or does not pass.
  using Next = std::vector<std::optional<StageRef>>;

  std::map<ChainId, Next> chains;
  /// The same for delivery: the last service of the chain comes first. A chain without any delivery side is not here.
  std::map<ChainId, Next> deliveries;
  std::optional<ChainId> only;  ///< if every port has this one, so that a rule need not tell ports apart

  bool operator==(const ChainPlan&) const = default;
};

/// A node's chains as state, so that a rule holds until what it depends on changes: the plan, or its port's chain.
class Chains {
 public:
  /// Adds the stages where packets enter, and where delivery begins.
  explicit Chains(Node& node);
  /// Adds one behind each service that passes packets on, and behind each delivery side. `services` outlive this.
  void connect(Graph& graph, std::span<const NamedService> services);

  /// Records the file's chains, for the ports there will be. Each port is at any moment in its old chain or in its new
  /// one. Only what differs is touched.
  void assign(const NodeFile& file, std::span<const ServicePort> ports, Update& update);
  /// The update was done: what was assigned last is what there is.
  void commit() { now_ = next_; }
  /// The port was removed by another update than `assign`'s.
  void forget(PortId port) { now_.ports.erase(port); }

  /// Index of the service of this name, as places count them.
  [[nodiscard]] std::size_t index_of(std::string_view service) const;

 private:
  struct Entry {
    ChainPlan plan;
    std::map<PortId, ChainId> ports;
    ChainId last = 0;  ///< given to a chain
  };
  [[nodiscard]] ChainPlan::Next next_of(const NodeFile& file, const NodeFile::ChainEntry& chain) const;
  [[nodiscard]] ChainPlan::Next delivery_of(const NodeFile& file, const NodeFile::ChainEntry& chain) const;

  std::span<const NamedService> services_;
  std::uint8_t delivery_ = Deliveries::nowhere;  ///< the stage where it begins, if any service has a side
  Versioned<ChainPlan>& plan_;
  std::vector<Versioned<ChainId>*> ports_;  ///< by number
  Entry now_, next_;
};

/// Stands where packets enter, and behind each service. Reads nothing of the packet but its ingress port, and that only
/// if ports have different chains.
class ChainStage final : public FlowStage {
 public:
  ChainStage(const Versioned<ChainPlan>& plan, std::span<Versioned<ChainId>* const> ports, std::size_t place)
      : plan_(plan), ports_(ports), place_(place) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  const Versioned<ChainPlan>& plan_;
  std::span<Versioned<ChainId>* const> ports_;
  std::size_t place_;
};

/// Stands where delivery begins, and behind each delivery side. Reads nothing but the egress port, and that only if
/// ports have different chains.
class DeliveryStage final : public FlowStage {
 public:
  DeliveryStage(const Versioned<ChainPlan>& plan, std::span<Versioned<ChainId>* const> ports, std::size_t place)
      : plan_(plan), ports_(ports), place_(place) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  const Versioned<ChainPlan>& plan_;
  std::span<Versioned<ChainId>* const> ports_;
  std::size_t place_;
};

}  // namespace weir
