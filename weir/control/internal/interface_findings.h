#pragma once
// What of an interface would stop the xdp: port that a node file puts on it, or slow it down.

#include <vector>

#include <weir/control/doctor.h>

namespace weir {

/// About the interface of `port`, which is there. Empty if nothing is wrong.
std::vector<Finding> interface_findings(const NodeFile::PortEntry& port, const InterfaceState& state,
                                        const NodeOptions& options);

}  // namespace weir
