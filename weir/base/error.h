#pragma once
// Errors are values: a function that can fail returns Result<T>.

#include <expected>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace weir {

/// What went wrong, where, and what to do about it. `message` is a whole sentence for the person at the terminal:
/// it names the thing at fault and, where there is one, the remedy.
struct Error {
  std::string message;

  /// This error with the place it happened in put before it: "node.yaml:3:7: ...".
  [[nodiscard]] Error at(std::string_view place) const { return Error{fmt::format("{}: {}", place, message)}; }
};

template <class T = void>
using Result = std::expected<T, Error>;

/// An error from a format string: `return error("port '{}' is used twice", name);`.
template <class... Args>
[[nodiscard]] std::unexpected<Error> error(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected<Error>(Error{fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace weir
