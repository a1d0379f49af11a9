#pragma once
// The data planes that the benchmarks measure.

#include <string>

#include <weir/weir.h>

namespace weir::bench {

/// LPM, TTL, MTU, next-hop group: the l3_router example's decision.
class Router final : public FlowStage {
 public:
  Router(State& state, PortId out);
  void configure(Update& update, unsigned routes);
  [[nodiscard]] Verdict decide(Flow& flow) const override;
  [[nodiscard]] Prefixes<NextHops>& routes() { return routes_; }
  [[nodiscard]] Group& group() { return group_; }

 private:
  Prefixes<NextHops>& routes_;
  Group& group_;
  PortId out_;
};

/// Ordered rules, first match decides; passes what is allowed on.
class Acl final : public FlowStage {
 public:
  explicit Acl(State& state) : rules_(state.classifier<bool>("acl")) {}
  /// `count` rules of mixed shape that none of the generated traffic matches, then one that allows all.
  void configure(Update& update, unsigned count);
  [[nodiscard]] Verdict decide(Flow& flow) const override;
  [[nodiscard]] Classifier<bool>& rules() { return rules_; }

 private:
  Classifier<bool>& rules_;
};

/// Puts every packet into VXLAN, by destination.
class Encapsulator final : public FlowStage {
 public:
  explicit Encapsulator(PortId out) : out_(out) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  PortId out_;
};

/// A rule per pair of addresses and ports: the most that a flow can cost.
class PerFlow final : public FlowStage {
 public:
  explicit PerFlow(PortId out) : out_(out) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  PortId out_;
};

/// MAC learning switch over a table that `configure` can also set entries of.
struct StationKey {
  Maybe<std::uint16_t> vlan;
  Maybe<MacAddress> mac;
  bool operator==(const StationKey&) const = default;
};
class Switch final : public FlowStage {
 public:
  explicit Switch(State& state) : stations_(state.table<StationKey, PortId>("stations")) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;
  [[nodiscard]] Table<StationKey, PortId>& stations() { return stations_; }

 private:
  Table<StationKey, PortId>& stations_;
};

}  // namespace weir::bench
