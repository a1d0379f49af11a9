#pragma once
// What the switch says of itself.

#include <weir/service/service.h>
#include <weir/service/vswitch/read_networks.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// Networks, VRFs and where tunnels start.
Json describe(const SwitchPlan& plan, const Node& node);

/// Lists of at most 10,000.
Json known_macs(const SwitchTables& tables, const Node& node);
Json known_addresses(const SwitchTables& tables);

/// By VRF and prefix.
Json known_routes(const SwitchPlan& plan);

}  // namespace weir::vswitch_internal
