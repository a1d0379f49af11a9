#pragma once
// The service `firewall`.

#include <weir/service/service.h>

namespace weir {

/// Kubernetes network policies for the endpoints behind the node's ports of role host (docs/firewall.md). Passes on
/// what they allow.
ServiceKind firewall();

}  // namespace weir
