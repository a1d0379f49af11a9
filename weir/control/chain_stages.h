#pragma once
// Where a packet goes when it has passed a service: on along the chain of the port it came in by.

#include <optional>
#include <vector>

#include <weir/runtime/node.h>

namespace weir {

/// Which chain each port has, and what follows what in each.
struct ChainPlan {
  std::vector<std::size_t> chain_of_port;  ///< by port number
  /// By chain and place: the stage that comes next. Place 0 is where packets enter, 1 + i behind service i. Nothing
  /// where the chain ends or does not pass.
  std::vector<std::vector<std::optional<StageRef>>> next;
};

/// Stands where packets enter, and behind each service. Reads nothing of the packet but its ingress port, and the plan,
/// so that a rule holds until either changes.
class ChainStage final : public FlowStage {
 public:
  ChainStage(const Versioned<ChainPlan>& plan, std::size_t place) : plan_(plan), place_(place) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  const Versioned<ChainPlan>& plan_;
  std::size_t place_;
};

}  // namespace weir
