#pragma once

#include <weir/device/kernel_routes.h>
#include <weir/service/router/route.h>

namespace weir {

/// The kernel's routes as the router's: those whose next hops are behind interfaces that the node's ports are ends of,
/// and those that drop. Of several next hops, the ones behind other interfaces are left out.
Routes learned_routes(const KernelRoutes::Map& kernel, const std::vector<RouterPort>& ports);

}  // namespace weir
