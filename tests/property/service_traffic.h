#pragma once

#include "service_world.h"

namespace weir::property {

/// What may come in by some port: conversations of hosts here, behind tunnels and behind routers, what they ask and
/// tell each other about their addresses, fragments, and nonsense.
Event random_arrival(Random& random);

}  // namespace weir::property
