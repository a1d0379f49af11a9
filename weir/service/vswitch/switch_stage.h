#pragma once
// The switch's decisions, once for each flow.

#include <weir/flow/stage.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// What both stages do with a frame once they know its network.
class Forwarding {
 public:
  explicit Forwarding(const SwitchTables& tables) : tables_(tables) {}

 protected:
  /// Where a frame came from.
  struct From {
    Vni vni = 0;
    Place place;
    bool tagged = false;  ///< the frame has a tag, if only for its priority
    [[nodiscard]] bool tunnel() const { return !place.port.valid(); }
  };

  /// Notes the source address; nothing, or why the frame is dropped.
  [[nodiscard]] const DropReason* learn(Flow& flow, const From& from, LearnedMacs* limited) const;
  [[nodiscard]] Verdict forward(Flow& flow, const From& from) const;

  SwitchTables tables_;

 private:
  [[nodiscard]] Verdict flood(Flow& flow, const From& from, const Network& network) const;
  [[nodiscard]] Verdict send_into_tunnel(Flow& flow, const From& from, const IpAddress& to, const Vtep& vtep) const;
};

/// Where packets enter: frames of a network's ports, and tunnel packets of uplinks.
class SwitchStage final : public FlowStage, Forwarding {
 public:
  /// `inside` gets what comes out of tunnels; `answers`, if any, the questions that it may know the answer to.
  SwitchStage(const SwitchTables& tables, const FlowStage& inside, const PacketStage* answers)
      : Forwarding(tables), inside_(inside), answers_(answers) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  [[nodiscard]] Verdict from_uplink(Flow& flow, const Underlay& underlay, const Underlay::Port& port) const;

  const FlowStage& inside_;
  const PacketStage* answers_;
};

/// Where packets are looked up that came out of a tunnel.
class InsideStage final : public FlowStage, Forwarding {
 public:
  explicit InsideStage(const SwitchTables& tables) : Forwarding(tables) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;
};

}  // namespace weir::vswitch_internal
