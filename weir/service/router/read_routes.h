#pragma once
// Routes as node files write them.

#include <weir/base/config.h>
#include <weir/service/router/route.h>

namespace weir {

/// A map from prefix (or `default`) to `blackhole`, {via: ADDRESS, port: NAME}, {via: [ADDRESS, ...]}, {port: NAME}, or
/// a list of such maps. Without `port`, the port is the one in whose network the next hop is. Errors name every
/// mistake.
Result<Routes> read_routes(std::span<const Config::Entry> routes, const std::vector<RouterPort>& ports);

}  // namespace weir
