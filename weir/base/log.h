#pragma once
// Logging: spdlog to standard error, one line per event. Never on the fast path.

#include <spdlog/spdlog.h>

namespace weir::log {

using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace weir::log
