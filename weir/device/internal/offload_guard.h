#pragma once
// Offload settings that are changed for as long as a port is open.

#include <string>
#include <vector>

#include <weir/base/descriptor.h>
#include <weir/device/internal/ethtool.h>
#include <weir/device/internal/netlink.h>
#include <weir/device/offload_record.h>

namespace weir::device_internal {

/// The interface that a far end belongs to: by it the far end is found if it has been moved to another namespace.
struct Via {
  int space = -1;  ///< the network namespace; -1: none
  unsigned index = 0;
};

/// Makes settings and undoes them when it is destroyed. A file records them (OffloadRecord) before they are made, and
/// is locked while this process lives.
class OffloadGuard {
 public:
  /// Makes `wanted` on the interface `link` of the network namespace `space`. What the interface lacks, or what is so
  /// already, is passed over. An error leaves everything as it was.
  static Result<OffloadGuard> make(int space, const Link& link, const std::vector<FeatureSetting>& wanted, Via via = {},
                                   const std::string& folder = OffloadRecord::default_folder);
  OffloadGuard(OffloadGuard&& other) noexcept = default;
  OffloadGuard& operator=(OffloadGuard&& other) = delete;
  ~OffloadGuard();

  /// Whether anything had to be changed.
  [[nodiscard]] bool changed() const { return static_cast<bool>(file_); }

 private:
  OffloadGuard() = default;
  Result<> write(const std::string& folder);

  OffloadRecord record_;
  std::string path_;
  Descriptor file_;  // the record, locked; none if nothing was changed
};

}  // namespace weir::device_internal
