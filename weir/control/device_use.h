#pragma once
// What a node file must know of the devices it names: their paths, what they hold alone, and their time.

#include <filesystem>
#include <string>
#include <vector>

#include <weir/device/device_spec.h>

namespace weir {

/// Paths in the spec that are relative start from `folder`.
DeviceSpec below(DeviceSpec spec, const std::filesystem::path& folder);

/// Something outside of the process that the device uses.
struct DeviceUse {
  std::string what;  ///< "the file out.pcap"
  bool alone;        ///< no other may use it at the same time
};
std::vector<DeviceUse> uses_of(const DeviceSpec& spec);

/// Where a device's packets come from.
enum class DeviceInput : std::uint8_t {
  none,     ///< it only takes packets
  capture,  ///< a file, as fast as it is read
  timed,    ///< a generator, or at a rate
};
DeviceInput input_of(const DeviceSpec& spec);

/// Whether the device could be opened, found out without opening it: its input is opened and closed, and the folder of
/// its output looked at.
Result<> try_device(const DeviceSpec& spec);

/// As make_device, of a spec.
Result<std::unique_ptr<Device>> make_device(const DeviceSpec& spec);

}  // namespace weir
