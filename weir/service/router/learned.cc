#include <weir/service/router/learned.h>

#include <algorithm>

namespace weir {

Routes learned_routes(const KernelRoutes::Map& kernel, const std::vector<RouterPort>& ports) {
  Routes routes;
  for (const auto& [to, from] : kernel) {
    if (from.hops.empty()) {
      routes.emplace(to, Route{.kind = Route::Kind::blackhole});
      continue;
    }
    Route route{.kind = Route::Kind::hops};
    for (const KernelHop& hop : from.hops) {
      const auto port = std::ranges::find(ports, hop.interface, &RouterPort::interface);
      if (port == ports.end() || hop.interface.empty() || route.hops.size() == Route::hop_limit) {
        continue;
      }
      if (hop.address) {
        route.hops.push_back({port->id, *hop.address});
      } else if (from.hops.size() == 1) {
        route.kind = Route::Kind::link;
        route.port = port->id;
      }
    }
    if (route.kind == Route::Kind::link || !route.hops.empty()) {
      routes.emplace(to, std::move(route));
    }
  }
  return routes;
}

}  // namespace weir
