#pragma once
// What the control API consists of: paths, and what answers a request for each.

#include <array>
#include <functional>
#include <span>
#include <string_view>

#include <weir/control/control_api.h>
#include <weir/control/internal/json.h>

namespace weir {

/// A number in the query of a request.
struct QueryNumber {
  std::string_view name = {};  ///< empty: the path takes none
  std::uint64_t otherwise = 0, min = 0, max = 0;
};

/// A request for a path that was found.
struct ControlRequestParts {
  ManagedNode& node;
  std::string_view method;
  std::array<std::string, 2> names;  ///< what stands for {...} in the path, decoded
  std::uint64_t number = 0;          ///< of the query
  Json body;                         ///< an object; of methods that have none: empty
};

struct Route {
  std::string_view methods;  ///< "GET, HEAD, PUT"
  std::string_view path;     ///< "/v1/ports/{name}"
  ControlAnswer (*answer)(const ControlRequestParts& request);
  QueryNumber query = {};
  std::string_view body = {};  ///< an example, for errors; empty: methods other than GET take no body
};

/// What tells of the node, and what changes it.
std::span<const Route> state_routes();
std::span<const Route> change_routes();

ControlAnswer json_answer(const Json& json, unsigned status = 200);
ControlAnswer refusal(unsigned status, const std::string& problem, const std::string& remedy);

/// A port as the API shows it; null if there is none of this name.
Json port_json(ManagedNode& node, std::string_view name);

}  // namespace weir
