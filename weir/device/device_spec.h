#pragma once
// How devices are written: kind:argument,key=value,...

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weir/device/device.h>

namespace weir {

/// "pcap:in.pcap,out=out.pcap" taken apart. A comma always separates: arguments and values cannot contain one (a file
/// whose name has a comma is reached through a symbolic link). The colon may be left out when nothing stands behind it.
/// Behind the colon of a kind that takes no argument the options begin at once: "memory:flows=8".
struct DeviceSpec {
  std::string kind;
  std::string argument;
  std::map<std::string, std::string> options;

  /// Takes `text` apart; whether the kind and its options exist is for make_device to say. Errors name the part at
  /// fault.
  static Result<DeviceSpec> parse(std::string_view text);
  /// As it is written.
  [[nodiscard]] std::string to_string() const;

  bool operator==(const DeviceSpec&) const = default;
};

/// One kind of device, for `weir devices` and for error messages.
struct DeviceKind {
  struct Option {
    std::string name;
    std::string help;  ///< a phrase with unit, range and default
  };
  std::string name;
  std::string help;      ///< one line
  std::string argument;  ///< what stands behind the colon, or empty
  std::vector<Option> options;
  std::string example;
  Result<std::unique_ptr<Device>> (*make)(const DeviceSpec& spec);
};

/// All kinds this build has.
const std::vector<DeviceKind>& device_kinds();

/// Makes (does not open) the device that `text` describes. Unknown kinds and options are errors that name what there is
/// and the nearest word.
Result<std::unique_ptr<Device>> make_device(std::string_view text);

}  // namespace weir
