#pragma once
// Where a running node's control socket lies, and how it is made and found.

#include <filesystem>
#include <string>
#include <vector>

#include <weir/base/descriptor.h>
#include <weir/base/error.h>

namespace weir {

/// The folders in which nodes of this user may have their sockets, the one that a new node takes first:
/// $XDG_RUNTIME_DIR/weir if that is set and ours, /run/weir for root, /tmp/weir-UID for others. Others may have been
/// started in another environment, so all are looked through.
std::vector<std::filesystem::path> control_folders();

/// The socket of the node `name`, in the first of the folders: NAME.sock, with bytes that do not belong into file
/// names as %XX.
std::filesystem::path control_path(const std::string& name);

/// A listening socket, non-blocking, at a path; only its owner may connect. Its file is removed with it.
class ControlSocket {
 public:
  /// Makes the folder if it is a folder of `control_folders`. Replaces the socket of a node that has ended. Errors: a
  /// node that runs has it; something that is no socket is there; the folder cannot be made or written; the path is
  /// too long for a socket.
  static Result<ControlSocket> listen(const std::filesystem::path& path);
  ControlSocket(ControlSocket&& other) noexcept = default;
  ControlSocket& operator=(ControlSocket&& other) = delete;
  ~ControlSocket();

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  ControlSocket(Descriptor socket, std::filesystem::path path);

  Descriptor socket_;
  std::filesystem::path path_;
  std::uint64_t inode_ = 0;  ///< of the file, so that only our own is removed
};

/// Who answers at a path.
enum class SocketState : std::uint8_t {
  none,     ///< nothing is there, or what is there is no socket
  left,     ///< the node that made it has ended
  running,  ///< a node that runs, of this user or of another
};
SocketState control_socket_state(const std::filesystem::path& path);

/// The sockets in `control_folders` that nodes which were killed have left. A new node replaces the one of its name.
std::vector<std::filesystem::path> left_control_sockets();

/// Removes the socket of a node that has ended; nothing happens if there is none. An error if a node that runs has it,
/// or it is no socket.
Result<> remove_left_socket(const std::filesystem::path& path);

/// Connects to a node's socket; blocking. Errors say what to do.
Result<Descriptor> connect_control(const std::filesystem::path& path);

/// The node to talk to: the one named, or with no name, the only one that runs. Errors: none runs (it says where it
/// looked), several do (it names them), the one that does is another user's.
Result<std::filesystem::path> find_control(const std::string& name);

}  // namespace weir
