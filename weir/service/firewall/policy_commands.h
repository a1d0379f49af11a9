#pragma once
// What the firewall can be asked to do: the arguments of its calls, and the pieces of its answers.

#include <weir/service/firewall/explain.h>
#include <weir/service/firewall/policy_model.h>
#include <weir/service/service.h>

namespace weir {

/// {"files": ["/path/of/policies.yaml"], "dry_run": false}
struct ApplyArguments {
  std::vector<std::string> files;
  bool dry_run = false;
};
Result<ApplyArguments> read_apply(const Json& arguments);

/// {"name": "x/web", "dry_run": false}. The name may be that of a policy of any kind, if only one has it, or begin with
/// the kind: "AdminNetworkPolicy deny-all".
struct DeleteArguments {
  PolicyKey key;
  bool dry_run = false;
};
Result<DeleteArguments> read_delete(const Json& arguments, const PolicyModel& model);

/// {"from": "x/a", "to": "10.0.0.1", "protocol": "tcp", "port": 80, "files": [...]}; the last optional, and the port
/// where the protocol has none: {"protocol": "icmp"}.
struct ExplainArguments {
  Question question;
  std::vector<std::string> files;
};
Result<ExplainArguments> read_explain(const Json& arguments);

/// [{"kind": "add", "what": "NetworkPolicy x/web", "detail": "..."}]: what a draft changes.
Json changes_json(const PolicyModel& model, const PolicyModel::Draft& draft);
/// All policies, in the order of their kinds, namespaces and names.
Json policies_json(const PolicyModel& model);
/// All endpoints, by namespace and name.
Json endpoints_json(const PolicyModel& model);

}  // namespace weir
