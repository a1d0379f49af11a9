#pragma once
// The options of a memory device.

#include <weir/device/device_spec.h>
#include <weir/device/internal/generator.h>

namespace weir::device_internal {

struct MemoryConfig {
  bool generates = false;
  GeneratorConfig generator;
  std::uint64_t rate = 0;   ///< packets per second; 0: as fast as asked
  std::uint64_t count = 0;  ///< packets; 0: endless
  std::uint64_t queue = 1024;
  std::uint32_t record = 0;

  static Result<MemoryConfig> parse(const DeviceSpec& spec);
};

}  // namespace weir::device_internal
