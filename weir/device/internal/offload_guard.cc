#include <weir/device/internal/offload_guard.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base/log.h>
#include <weir/device/internal/net_namespace.h>

namespace weir::device_internal {

namespace {

/// Whether all of `wanted` is in force.
Result<> check(const std::string& interface, const std::vector<FeatureSetting>& wanted) {
  const auto found = features(interface);
  if (!found) {
    return std::unexpected(found.error());
  }
  for (const auto& [name, on] : wanted) {
    const auto feature = std::ranges::find(*found, name, &Feature::name);
    if (feature != found->end() && feature->active != on) {
      return error("offload {} of {} stays {}", name, interface, on ? "off" : "on");
    }
  }
  return {};
}

}  // namespace

Result<OffloadGuard> OffloadGuard::make(int space, const Link& link, const std::vector<FeatureSetting>& wanted, Via via,
                                        const std::string& folder) {
  OffloadGuard guard;
  const auto place = [](int descriptor, unsigned index) {
    const NamespaceId id = namespace_id(descriptor);
    return InterfacePlace{id.device, id.inode, index};
  };
  guard.record_ = {.place = place(space, link.index), .mac = link.mac, .name = link.name};
  if (via.space >= 0) {
    guard.record_.via = place(via.space, via.index);
  }
  const auto made = in_namespace(space, [&]() -> Result<> {
    const auto settings = missing_settings(link.name, wanted);
    if (!settings) {
      return std::unexpected(settings.error());
    }
    if (!settings->empty()) {
      for (const auto& [name, on] : *settings) {
        guard.record_.before.emplace_back(name, !on);
      }
      if (auto written = guard.write(folder); !written) {
        return written;
      }
      if (auto set = set_features(link.name, *settings); !set) {
        return set;
      }
    }
    return check(link.name, wanted);
  });
  return made ? Result<OffloadGuard>(std::move(guard)) : std::unexpected(made.error());
}

Result<> OffloadGuard::write(const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  for (unsigned number = 0;; ++number) {
    path_ = fmt::format("{}/{}-{}-{}.{}", folder, record_.place.namespace_inode, record_.place.index, getpid(), number);
    Descriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file && errno == EEXIST) {
      continue;
    }
    struct stat status{};
    // Between its making and the lock, another process may have taken the file for one left behind, and removed it.
    if (file && flock(file.get(), LOCK_EX) == 0 && fstat(file.get(), &status) == 0 && status.st_nlink == 0) {
      continue;
    }
    const std::string text = record_.to_text();
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return error("cannot write {}: {}; offload settings are only changed when that can be undone", path_,
                   std::strerror(errno));
    }
    file_ = std::move(file);
    return {};
  }
}

OffloadGuard::~OffloadGuard() {
  if (!file_) {
    return;
  }
  if (const auto restored = restore(record_); !restored) {
    log::warn("offload settings of {} are not as they were found: {} (see {})", record_.name, restored.error().message,
              path_);
    return;  // the record stays for a later try
  }
  unlink(path_.c_str());
}

}  // namespace weir::device_internal
