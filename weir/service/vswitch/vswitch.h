#pragma once
// The virtual switch: networks of local ports and, by VXLAN, of other nodes.

#include <weir/service/service.h>

namespace weir {

/// Forwards frames within networks. A network has access ports, trunk ports (which carry it with a VLAN tag), and the
/// VXLAN tunnel end points (VTEPs) of other nodes. It learns where Ethernet addresses are, floods what it does not know
/// to the whole network, and always ends the chain. See docs/vswitch.md.
ServiceKind vswitch();

}  // namespace weir
