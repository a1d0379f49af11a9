// From a request to the route that answers it.

#include <weir/control/control_api.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/control/internal/routes.h>

namespace weir {

namespace {

/// The parts of a path between its slashes.
std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = path.find('/');
    parts.push_back(path.substr(0, end));
    path.remove_prefix(end == std::string_view::npos ? path.size() : end);
  }
  return parts;
}

/// Whether the path is the route's; what stands for its {...}, decoded, goes to `names`.
bool takes(const Route& route, std::string_view path, std::array<std::string, 2>& names) {
  if (path.empty() || path.front() != '/') {
    return false;
  }
  const auto wanted = parts_of(route.path);
  const auto found = parts_of(path);
  if (wanted.size() != found.size()) {
    return false;
  }
  std::size_t named = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].starts_with('{')) {
      if (wanted[i] != found[i]) {
        return false;
      }
      continue;
    }
    const auto name = percent_decoded(found[i]);
    if (!name || name->empty()) {
      return false;
    }
    names.at(named++) = *name;
  }
  return true;
}

HttpResponse not_found(const std::string& path) {
  std::vector<std::string_view> paths;
  for (const auto routes : {state_routes(), change_routes()}) {
    for (const Route& route : routes) {
      paths.push_back(route.path);
    }
  }
  return error_response(404, fmt::format("there is no '{}'{}", path, did_you_mean(path, paths)),
                        fmt::format("ask for one of: {}", fmt::join(paths, ", ")));
}

/// The value that the query gives to the route's number, or what is wrong with the query.
Result<std::uint64_t> number_of(const std::string& query, const QueryNumber& number) {
  if (query.empty()) {
    return number.otherwise;
  }
  if (number.name.empty()) {
    return error("'?{}' behind a path that takes no parameters", query);
  }
  const std::size_t equals = query.find('=');
  if (query.substr(0, equals) != number.name || equals == std::string::npos) {
    return error("'?{}' is not the parameter '{}'", query, number.name);
  }
  std::uint64_t value = 0;
  const char* const end = query.data() + query.size();
  const auto [at, failure] = std::from_chars(query.data() + equals + 1, end, value);
  if (failure != std::errc{} || at != end || value < number.min || value > number.max) {
    return error("'{}' is no whole number from {} to {}", query.substr(equals + 1), number.min, number.max);
  }
  return value;
}

bool allowed(const Route& route, std::string_view method) {
  return fmt::format(", {},", route.methods).contains(fmt::format(", {},", method));
}

ControlAnswer answer_by(const Route& route, ManagedNode& node, const HttpRequest& request,
                        std::array<std::string, 2> names) {
  if (!allowed(route, request.method)) {
    ControlAnswer refused = refusal(405, fmt::format("{} of '{}'", request.method, request.path),
                                    fmt::format("use one of: {}", route.methods));
    refused.response.fields.emplace_back("Allow", route.methods);
    return refused;
  }
  const auto number = number_of(request.query, route.query);
  if (!number) {
    return refusal(400, number.error().message,
                   route.query.name.empty()
                       ? fmt::format("ask for {}", request.path)
                       : fmt::format("ask for {}?{}={}", route.path, route.query.name, route.query.otherwise));
  }
  Json body = Json::object();
  if ((request.method == "PUT" || request.method == "POST") && !route.body.empty()) {
    if (request.body_size > HttpRequest::kept_body) {
      return refusal(413, fmt::format("a body of {} bytes", request.body_size),
                     fmt::format("send at most {}, such as {}", HttpRequest::kept_body, route.body));
    }
    body = read_json(request.body);
    if (!body.is_object()) {
      return refusal(400, fmt::format("the body ({} bytes) is no JSON object", request.body_size),
                     fmt::format("send one such as {}", route.body));
    }
  }
  return route.answer({node, request.method, std::move(names), *number, std::move(body)});
}

}  // namespace

ControlAnswer json_answer(const Json& json, unsigned status) {
  return {.response = {.status = status, .type = "application/json", .body = text_of(json) + "\n"}};
}

ControlAnswer refusal(unsigned status, const std::string& problem, const std::string& remedy) {
  return {.response = error_response(status, problem, remedy)};
}

ControlAnswer answer(ManagedNode& node, const HttpRequest& request) {
  for (const auto routes : {state_routes(), change_routes()}) {
    for (const Route& route : routes) {
      if (std::array<std::string, 2> names; takes(route, request.path, names)) {
        return answer_by(route, node, request, std::move(names));
      }
    }
  }
  return {.response = not_found(request.path)};
}

HttpResponse error_response(unsigned status, const std::string& problem, const std::string& remedy) {
  const Json json{{"error", problem}, {"remedy", remedy}};
  return {.status = status, .type = "application/json", .body = text_of(json) + "\n", .keep_alive = false};
}

}  // namespace weir
