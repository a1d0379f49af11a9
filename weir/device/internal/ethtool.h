#pragma once
// Offload settings and queues of an interface (ethtool(8)), by its name in the calling thread's network namespace.

#include <optional>
#include <string>
#include <vector>

#include <weir/base/error.h>

namespace weir::device_internal {

/// One offload, under the name that `ethtool -k` gives it or a longer one ("tx-checksum-ip-generic").
struct Feature {
  std::string name;
  bool wanted = false;      ///< what was asked for last
  bool active = false;      ///< what is done: others may be needed for it
  bool changeable = false;  ///< by the administrator
};

/// One setting to be made.
struct FeatureSetting {
  std::string name;
  bool on = false;
  auto operator<=>(const FeatureSetting&) const = default;
};

Result<std::vector<Feature>> features(const std::string& interface);

/// Makes the settings at once. What the interface does not have is passed over.
Result<> set_features(const std::string& interface, const std::vector<FeatureSetting>& settings);

/// Those of `wanted` that are not in force and can be made; what the interface does not have is passed over. An error
/// if one can neither be had nor be made.
Result<std::vector<FeatureSetting>> missing_settings(const std::string& interface,
                                                     const std::vector<FeatureSetting>& wanted);

struct Queues {
  unsigned receive = 1;
  unsigned transmit = 1;
};

/// The queues in use; one each if nothing tells.
Queues queues(const std::string& interface);

}  // namespace weir::device_internal
