#pragma once
// Random packets from small pools of addresses, so that flows recur: valid, broken, truncated.

#include <cstdint>
#include <string>
#include <vector>

#include <weir/base/random.h>

namespace weir::property {

struct Frame {
  std::vector<std::uint8_t> bytes;
  bool partial_checksum = false;  ///< its transport checksum is left to the device
};

Frame random_frame(Random& random);

/// For messages.
std::string hex(const std::vector<std::uint8_t>& bytes);

}  // namespace weir::property
