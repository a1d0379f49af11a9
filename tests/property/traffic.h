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
  std::uint16_t segment = 0;      ///< if not 0, and there is a transport checksum to leave: cut into so many bytes each
};

Frame random_frame(Random& random);

/// For messages.
std::string hex(const std::vector<std::uint8_t>& bytes);

}  // namespace weir::property
