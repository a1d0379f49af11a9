#pragma once
// The service `router`.

#include <weir/service/service.h>

namespace weir {

/// Forwards IPv4 and IPv6 between the node's ports, and makes the node a host on their networks: connected networks
/// from the ports' addresses, static routes from its settings, and, if asked, those that the kernel has. Ends its
/// chain.
ServiceKind router();

}  // namespace weir
