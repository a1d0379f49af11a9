#pragma once
// What on this machine would stop a node, or slow it down, and what to do about it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/base/capabilities.h>
#include <weir/control/control_socket.h>
#include <weir/control/leftovers.h>
#include <weir/control/node_file.h>
#include <weir/device/interface_state.h>

namespace weir {

/// What is asked of the machine. Tests make one up.
struct Machine {
  std::filesystem::path root = "/";  ///< whose /proc, /sys and /dev are read
  bool af_xdp = true;                ///< the kernel makes such sockets
  Capabilities capabilities;         ///< effective
  std::uint64_t locked_memory = 0;   ///< bytes that may be locked
  unsigned processors = 1;           ///< that this process may use

  Leftovers left;  ///< by nodes that were killed
  /// `look_at_interface`, or none: then interfaces are only known by their names and MTUs.
  std::function<Result<std::optional<InterfaceState>>(const std::string& name)> interface;
  /// `control_socket_state`, or none.
  std::function<SocketState(const std::filesystem::path&)> socket;

  /// This one.
  static Machine here();

  /// The file's text without the newline at its end; nothing if it cannot be read.
  [[nodiscard]] std::optional<std::string> read(std::string_view path) const;
};

struct Finding {
  enum class Kind : std::uint8_t {
    good,
    advice,   ///< the node runs, but slower than it could
    problem,  ///< the node does not run
  };
  Kind kind;
  std::string subject;  ///< a few words
  std::string found;
  std::string remedy;  ///< empty for what is good
};

/// Everything that was looked at; with `file`, what its ports and workers need as well.
std::vector<Finding> examine(const Machine& machine, const NodeFile* file);

}  // namespace weir
