#pragma once
// VXLAN (RFC 7348).

#include <weir/packet/bytes.h>

namespace weir {

struct VxlanHeader {
  static constexpr std::uint16_t port = 4789;
  static constexpr std::uint8_t vni_valid = 0x08;

  std::uint8_t flags;
  std::uint8_t reserved[3];
  std::uint8_t vni[3];
  std::uint8_t reserved2;
};
static_assert(sizeof(VxlanHeader) == 8);

}  // namespace weir
