#pragma once
// Why traffic between two ends is allowed or denied, in words.

#include <functional>

#include <weir/service/firewall/policy_model.h>
#include <weir/service/service.h>

namespace weir {

/// What is asked.
struct Question {
  std::string from, to;  ///< each an endpoint's NAMESPACE/NAME, or an address
  std::uint8_t protocol = 0;
  Maybe<std::uint16_t> port{};
};

/// The answer, of a model as it is, or as a draft would make it:
///
///     {"allowed": true, "egress": SIDE, "ingress": SIDE}
///     SIDE: {"endpoint": "x/a", "allowed": true, "why": "...", "policy": "NetworkPolicy x/web", "rule": 1,
///            "place": "p.yaml:3:5"}
///
/// `endpoint` is null where an end is none that is known: then nothing guards it. `policy`, `rule` (from 1) and `place`
/// are there if one decided. Errors: an end that is neither an endpoint nor an address.
Result<Json> explain(const PolicyModel& model, const PolicyModel::Draft& draft, const Question& question);

}  // namespace weir
