#pragma once
// What a running node answers on its control socket, apart from how it is sent: docs/openapi.yaml describes it.

#include <chrono>
#include <optional>
#include <string>

#include <weir/control/http.h>
#include <weir/control/managed_node.h>

namespace weir {

/// An answer, or a stream of events that begins with it.
struct ControlAnswer {
  HttpResponse response;
  std::optional<std::chrono::milliseconds> interval = {};  ///< of the events (`stats_event`); none: no stream
};

/// Any thread but a worker's; the node runs or has run.
ControlAnswer answer(ManagedNode& node, const HttpRequest& request);

/// {"error": ..., "remedy": ...}; closes the connection unless `keep_alive` is set later.
HttpResponse error_response(unsigned status, const std::string& problem, const std::string& remedy);

/// One event of a stream: the statistics of now.
std::string stats_event(const Node& node);

}  // namespace weir
