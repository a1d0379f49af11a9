#pragma once
// The examples as services: what `weir` and each example program register.

#include <weir/service/service.h>

namespace weir::examples {

ServiceKind l2_switch();
ServiceKind acl_firewall();
ServiceKind l3_router();
ServiceKind payload_scan();

inline void register_all(ServiceRegistry& registry) {
  for (const auto kind : {l2_switch, acl_firewall, l3_router, payload_scan}) {
    registry.add(kind());
  }
}

}  // namespace weir::examples
