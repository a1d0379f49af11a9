#pragma once

#include <cstdint>

#include <weir/flow/drop_reason.h>
#include <weir/packet/address.h>

namespace weir {

class Group;

/// What a stage returns; made by Flow's functions of the same names.
struct Verdict {
  enum class Kind : std::uint8_t { next, to, output, flood, select, reject, drop, to_host, resolve };

  Kind kind;
  std::uint32_t number = 0;  ///< stage, port, VLAN, or IcmpError with the MTU above bit 16
  ReasonId reason = 0;
  Group* group = nullptr;
  IpAddress address{};  ///< to be resolved on the port
};

}  // namespace weir
