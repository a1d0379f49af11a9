#pragma once
// Logging: spdlog to standard error, one line per event. Never on the fast path.

#include <utility>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace weir::log {

/// Not spdlog's default logger: that one writes to standard output, which belongs to what programs print.
inline spdlog::logger& logger() {
  static const auto made = spdlog::stderr_color_mt("weir");
  return *made;
}

template <class... Args>
void error(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().error(format, std::forward<Args>(args)...);
}

template <class... Args>
void info(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().info(format, std::forward<Args>(args)...);
}

template <class... Args>
void warn(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().warn(format, std::forward<Args>(args)...);
}

}  // namespace weir::log
