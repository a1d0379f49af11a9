#include <weir/control/control_socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace weir {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".sock";

bool plain(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '-' ||
         byte == '_' || byte == '.';
}

std::string file_name(const std::string& node) {
  std::string name;
  for (const char byte : node) {
    name += plain(byte) && (!name.empty() || byte != '.') ? std::string(1, byte)
                                                          : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return name + std::string(suffix);
}

std::string node_name(const std::string& file) {
  std::string name;
  for (std::size_t i = 0; i < file.size() - suffix.size(); ++i) {
    if (file[i] == '%') {
      name += static_cast<char>(std::strtoul(file.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      name += file[i];
    }
  }
  return name;
}

Result<sockaddr_un> address_of(const fs::path& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path) {
    return error(
        "control socket '{}': the path has {} bytes, and a socket's may have 1 to {}; give a shorter one with "
        "--control PATH",
        text, text.size(), sizeof address.sun_path - 1);
  }
  std::copy(text.begin(), text.end(), address.sun_path);
  return address;
}

/// 0, or the error's number.
int connect_to(const fs::path& path, Descriptor& socket) {
  const auto address = address_of(path);
  if (!address) {
    return ENAMETOOLONG;
  }
  socket = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // A node that hangs, and has more waiting for it than the kernel lets wait, must not hang us.
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto* const at = reinterpret_cast<const sockaddr*>(&*address);
  return socket && ::connect(socket.get(), at, sizeof *address) == 0 ? 0 : errno;
}

/// A folder of ours is made if it is not there. In /tmp, where anyone may make one, it must be ours alone.
Result<> prepare_folder(const fs::path& folder) {
  const auto ours = control_folders();
  if (std::ranges::find(ours, folder) == ours.end()) {
    return {};
  }
  const bool shared = folder.parent_path() == "/tmp";
  if (::mkdir(folder.c_str(), shared ? 0700 : 0755) != 0 && errno != EEXIST) {
    return error(
        "cannot make the folder {} for the node's control socket: {}; set XDG_RUNTIME_DIR to a folder of "
        "yours, or give --control PATH or --control off",
        folder.string(), std::strerror(errno));
  }
  struct stat status{};
  if (shared && (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
                 (status.st_mode & 022U) != 0)) {
    return error(
        "{} is not a folder that only you can write to, so no control socket is put there; remove it, or set "
        "XDG_RUNTIME_DIR to a folder of yours",
        folder.string());
  }
  return {};
}

/// Held while a socket is put in place: of two nodes that find the same stale socket only one may replace it.
Result<Descriptor> lock(const fs::path& folder) {
  Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) {
    return error("cannot use the folder {} for the node's control socket: {}; give --control PATH or --control off",
                 folder.string(), std::strerror(errno));
  }
  for (int tries = 0; ::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == 200) {
      return error("the folder {} is locked by another process; give --control PATH or --control off", folder.string());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return descriptor;
}

/// Removes what a node that has ended has left.
Result<> make_room(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    return {};  // nothing there; or bind says why not
  }
  if (!S_ISSOCK(status.st_mode)) {
    return error("{} is there and is no socket; remove it, or give another --control PATH", path.string());
  }
  Descriptor socket;
  const int number = connect_to(path, socket);
  if (number == EACCES || number == EPERM) {
    return error("the control socket {} belongs to another user; give another --control PATH, or --control off",
                 path.string());
  }
  if (number != ECONNREFUSED) {
    return error(
        "a running node has the control socket {}; give this one another name (node: NAME), or --control PATH or "
        "--control off",
        path.string());
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return error("cannot remove {}, which a node that has ended left: {}; remove it as its owner", path.string(),
                 std::strerror(errno));
  }
  return {};
}

std::string texts(const std::vector<fs::path>& paths) {
  std::string text;
  for (const fs::path& path : paths) {
    text += (text.empty() ? "" : ", ") + path.string();
  }
  return text;
}

}  // namespace

std::vector<fs::path> control_folders() {
  std::vector<fs::path> folders;
  // What su and sudo leave in the environment may be another user's.
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && ::euidaccess(runtime, W_OK | X_OK) == 0) {
    folders.push_back(fs::path(runtime) / "weir");
  }
  const fs::path own = fmt::format("/tmp/weir-{}", ::geteuid());
  if (::geteuid() == 0) {
    folders.insert(folders.end(), {"/run/weir", own});
  } else {
    folders.insert(folders.end(), {own, "/run/weir"});
  }
  return folders;
}

fs::path control_path(const std::string& name) { return control_folders().front() / file_name(name); }

Result<ControlSocket> ControlSocket::listen(const fs::path& path) {
  const auto address = address_of(path);
  if (!address) {
    return std::unexpected(address.error());
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (auto prepared = prepare_folder(folder); !prepared) {
    return std::unexpected(prepared.error());
  }
  const auto locked = lock(folder);
  if (!locked) {
    return std::unexpected(locked.error());
  }
  if (auto free = make_room(path); !free) {
    return std::unexpected(free.error());
  }
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const at = reinterpret_cast<const sockaddr*>(&*address);
  // The mode before bind: the file has it from the first moment on.
  if (!socket || ::fchmod(socket.get(), 0600) != 0 || ::bind(socket.get(), at, sizeof *address) != 0) {
    return error("cannot make the control socket {}: {}; give another --control PATH, or --control off", path.string(),
                 std::strerror(errno));
  }
  ControlSocket made(std::move(socket), path);
  if (::listen(made.descriptor(), SOMAXCONN) != 0) {
    return error("cannot listen on the control socket {}: {}", path.string(), std::strerror(errno));
  }
  return made;
}

ControlSocket::ControlSocket(Descriptor socket, fs::path path) : socket_(std::move(socket)), path_(std::move(path)) {
  struct stat status{};
  inode_ = ::lstat(path_.c_str(), &status) == 0 ? status.st_ino : 0;
}

ControlSocket::~ControlSocket() {
  struct stat status{};
  if (socket_ && ::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_) {
    ::unlink(path_.c_str());
  }
}

SocketState control_socket_state(const fs::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return SocketState::none;
  }
  Descriptor socket;
  const int number = connect_to(path, socket);
  return number == ECONNREFUSED ? SocketState::left : number == ENOENT ? SocketState::none : SocketState::running;
}

std::vector<fs::path> left_control_sockets() {
  std::vector<fs::path> left;
  for (const fs::path& folder : control_folders()) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
      if (entry.path().filename().string().ends_with(suffix) &&
          control_socket_state(entry.path()) == SocketState::left) {
        left.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(left);
  return left;
}

Result<> remove_left_socket(const fs::path& path) {
  const auto locked = lock(path.has_parent_path() ? path.parent_path() : ".");
  if (!locked) {
    return std::unexpected(locked.error());
  }
  return make_room(path);
}

Result<Descriptor> connect_control(const fs::path& path) {
  Descriptor socket;
  const int number = connect_to(path, socket);
  switch (number) {
    case 0:
      return socket;
    case ENOENT:
      return error("no node runs with the control socket {}; start one: weir run FILE --control {}", path.string(),
                   path.string());
    case ECONNREFUSED:
      return error("the node of the control socket {} has ended; start it again: weir run FILE", path.string());
    case EACCES:
    case EPERM:
      return error("the node of the control socket {} belongs to another user; try as that user, or with sudo",
                   path.string());
    default:
      return error("cannot connect to the control socket {}: {}", path.string(), std::strerror(number));
  }
}

Result<fs::path> find_control(const std::string& name) {
  std::vector<fs::path> found;
  std::set<std::string> names;
  const auto folders = control_folders();
  for (const fs::path& folder : folders) {
    std::error_code failure;
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
      Descriptor socket;
      const std::string file = entry.path().filename().string();
      if (!file.ends_with(suffix) || (!name.empty() && file != file_name(name))) {
        continue;
      }
      if (const int number = connect_to(entry.path(), socket); number == 0 || number == EACCES || number == EPERM) {
        found.push_back(entry.path());
        names.insert(node_name(file));
      }
    }
  }
  const std::string looked = texts(folders);
  if (found.empty()) {
    return name.empty() ? error("no node is running; start one: weir run FILE (looked in {})", looked)
                        : error(
                              "no node '{}' is running; start it, with 'node: {}' in its file: weir run FILE "
                              "(looked in {})",
                              name, name, looked);
  }
  if (found.size() > 1) {
    return names.size() > 1
               ? error("several nodes are running; choose one with --node NAME: {}", fmt::join(names, ", "))
               : error("several nodes '{}' are running; choose one with --control PATH: {}", *names.begin(),
                       texts(found));
  }
  return found.front();
}

}  // namespace weir
