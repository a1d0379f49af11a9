#pragma once
// The switch's decisions, once for each flow.

#include <weir/service/vswitch/forwarding.h>

namespace weir::vswitch_internal {

/// Where packets enter: frames of a network's ports, and tunnel packets of uplinks.
class SwitchStage final : public FlowStage, Forwarding {
 public:
  /// `inside` gets what comes out of tunnels; `answers` what hosts ask and tell each other about their addresses.
  SwitchStage(const SwitchTables& tables, const FlowStage& inside, const PacketStage& answers)
      : Forwarding(tables), inside_(inside), answers_(answers) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  [[nodiscard]] Verdict from_uplink(Flow& flow, const Underlay& underlay, const Underlay::Port& port) const;
  [[nodiscard]] Verdict from_gateway(Flow& flow, const Attachment& attached) const;

  const FlowStage& inside_;
  const PacketStage& answers_;
};

/// Where packets are looked up that came out of a tunnel.
class InsideStage final : public FlowStage, Forwarding {
 public:
  InsideStage(const SwitchTables& tables, const PacketStage& answers) : Forwarding(tables), answers_(answers) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  const PacketStage& answers_;
};

/// Gets what AnswerStage did not answer: it goes where it was going, or to the network's gateway, whom it is about.
class AfterAnswers final : public FlowStage, Forwarding {
 public:
  AfterAnswers(const SwitchTables& tables, bool to_gateway) : Forwarding(tables), to_gateway_(to_gateway) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  bool to_gateway_;
};

}  // namespace weir::vswitch_internal
