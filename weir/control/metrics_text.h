#pragma once
// What a node has counted, for Prometheus.

#include <string>
#include <vector>

#include <weir/runtime/summary.h>
#include <weir/service/service.h>

namespace weir {

/// What one service measures.
struct ServiceMetrics {
  std::string service;
  std::vector<ServiceMetric> metrics;
};

/// The text exposition format, version 0.0.4: metrics whose names begin with "weir_", in seconds, bytes and packets.
/// Each carries the label node.
std::string metrics_text(const Summary& summary, const std::vector<ServiceMetrics>& services, const std::string& node,
                         const std::string& version);

inline constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace weir
