#pragma once

#include <compare>
#include <cstdint>

#include <weir/base/hash.h>

namespace weir {

/// A port's number on its node: small, dense, stable while the port exists.
struct PortId {
  std::uint16_t number = 0xffff;

  auto operator<=>(const PortId&) const = default;
  [[nodiscard]] constexpr bool valid() const { return number != 0xffff; }
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return hash_value(number, seed); }
};

/// The most ports of one node.
inline constexpr unsigned max_ports = 1024;

}  // namespace weir
