#pragma once
// What is derived from a summary's counts.

#include <weir/runtime/summary.h>

namespace weir {

inline double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// A second, since the workers started.
inline double rate(std::uint64_t count, const Summary& summary) { return 1e9 * ratio(count, summary.wall_ns); }

inline std::uint64_t cpu_ns(const Summary& summary) {
  std::uint64_t sum = 0;
  for (const auto& worker : summary.workers) {
    sum += worker.cpu_ns;
  }
  return sum;
}

inline std::uint64_t wall_ns(const Summary& summary) {
  std::uint64_t sum = 0;
  for (const auto& worker : summary.workers) {
    sum += worker.wall_ns;
  }
  return sum;
}

}  // namespace weir
