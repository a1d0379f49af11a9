#include <weir/device/internal/net_namespace.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

namespace weir::device_internal {

namespace {

Descriptor open_namespace(const std::filesystem::path& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

/// What a folder holds; nothing if it is not there.
std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(folder, failure), end; at != end; at.increment(failure)) {
    names.push_back(at->path().filename());
  }
  return names;
}

}  // namespace

NamespaceId namespace_id(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 ? NamespaceId{status.st_dev, status.st_ino} : NamespaceId{};
}

Descriptor own_namespace() { return open_namespace("/proc/thread-self/ns/net"); }

Descriptor find_namespace(const std::function<bool(int descriptor)>& is_it) {
  std::set<NamespaceId> seen;
  Descriptor found;
  const auto look = [&](const std::filesystem::path& path) {
    struct stat status{};
    if (stat(path.c_str(), &status) == 0 && seen.insert({status.st_dev, status.st_ino}).second) {
      Descriptor space = open_namespace(path);
      if (space && is_it(space.get())) {
        found = std::move(space);
      }
    }
    return static_cast<bool>(found);
  };
  if (look("/proc/thread-self/ns/net")) {
    return found;
  }
  for (const auto& name : names_in("/run/netns")) {
    if (look("/run/netns/" + name)) {
      return found;
    }
  }
  for (const auto& name : names_in("/proc")) {
    if (std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; }) && look("/proc/" + name + "/ns/net")) {
      return found;
    }
  }
  return found;
}

Result<> in_namespace(int descriptor, const std::function<Result<>()>& work) {
  if (namespace_id(descriptor) == namespace_id(own_namespace().get())) {
    return work();  // going where one is needs CAP_SYS_ADMIN, too
  }
  Result<> result;
  std::thread([&] {
    result = setns(descriptor, CLONE_NEWNET) == 0
                 ? work()
                 : error("the other network namespace cannot be entered: {}; give CAP_SYS_ADMIN", std::strerror(errno));
  }).join();
  return result;
}

}  // namespace weir::device_internal
