#pragma once
// Asks a running node.

#include <filesystem>
#include <string>

#include <weir/base/error.h>

namespace weir {

/// What is asked of a node; `body` is JSON, or empty.
struct ControlRequest {
  std::string target;  ///< "/v1/ports"
  std::string method = "GET";
  std::string body = {};
};

/// The body of a node's answer, from its control socket; blocking, for at most half a minute without a byte. Errors:
/// what `connect_control` has; the node went away; an answer that is an error, with its remedy.
Result<std::string> ask_control(const std::filesystem::path& socket, const ControlRequest& request);

}  // namespace weir
