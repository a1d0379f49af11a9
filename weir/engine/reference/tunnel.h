#pragma once
// VXLAN (RFC 7348) with the congestion marks of RFC 6040.

#include <optional>

#include <weir/engine/reference/headers.h>
#include <weir/flow/drop_reason.h>
#include <weir/flow/encapsulation.h>

namespace weir::reference {

/// Puts Ethernet, IP, UDP and VXLAN headers around the frame. `hash`: the frame's flow hash, of which the outer source
/// port is made.
void encapsulate(Frame& frame, const Headers& headers, const Vxlan& vxlan, std::uint64_t hash);

/// Takes the headers up to and with VXLAN off. A reason if the packet must be dropped: the outer header says that
/// congestion was met and the inner packet cannot carry the mark, or it stands for several tunnel packets.
std::optional<ReasonId> decapsulate(Frame& frame, const Headers& headers);

}  // namespace weir::reference
