#include <weir/control/chain_stages.h>

namespace weir {

Verdict ChainStage::decide(Flow& flow) const {
  const ChainPlan& plan = flow.read(plan_);
  const std::size_t port = flow.ingress().number;
  const auto& next = plan.next[plan.chain_of_port[port]][place_];
  if (!next) {
    return flow.drop({"chain_end", "the last service of its port's chain passed it on"});
  }
  return next->flow != nullptr ? flow.to(*next->flow) : flow.to(*next->packet);
}

}  // namespace weir
