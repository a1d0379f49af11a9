#pragma once

#include <cstdint>

#include <weir/flow/drop_reason.h>
#include <weir/flow/port.h>
#include <weir/packet/address.h>

namespace weir {

class Group;

/// What went wrong with a packet that is rejected, as one number.
struct RejectNumber {
  IcmpError error;
  /// In whose name it is told: that of the port which the packet came by, unless this one is valid.
  PortId as{};
  std::uint16_t mtu = 0;  ///< for too_big

  [[nodiscard]] constexpr std::uint32_t packed() const {
    const std::uint32_t named = as.valid() ? as.number + 1U : 0U;
    return static_cast<std::uint32_t>(error) | named << 4U | std::uint32_t{mtu} << 16U;
  }
  static constexpr RejectNumber unpack(std::uint32_t number) {
    const std::uint32_t named = number >> 4U & 0xfffU;
    return {static_cast<IcmpError>(number & 0xfU),
            named == 0 ? PortId{} : PortId{static_cast<std::uint16_t>(named - 1)},
            static_cast<std::uint16_t>(number >> 16U)};
  }
};
static_assert(max_ports < 0xfff);

/// What a stage returns; made by Flow's functions of the same names.
struct Verdict {
  enum class Kind : std::uint8_t { next, to, output, flood, select, reject, drop, to_host, resolve };

  Kind kind;
  std::uint32_t number = 0;  ///< stage, port, VLAN, or RejectNumber
  ReasonId reason = 0;
  Group* group = nullptr;
  IpAddress address{};  ///< to be resolved on the port
};

}  // namespace weir
