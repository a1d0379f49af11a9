#pragma once
// What a running node needs beyond its user's rights.

#include <string>
#include <vector>

#include <weir/base/capabilities.h>
#include <weir/control/node_file.h>

namespace weir {

/// One capability, by its number and name, and what a node needs it for.
struct Privilege {
  unsigned number;
  const char* name;
  const char* purpose;
};

/// Of a node with ports on network interfaces: to open them, and to open them again when they return. `veth`: also of
/// xdp: ports on veth interfaces, whose far ends are set up wherever they are.
const std::vector<Privilege>& interface_privileges();
const std::vector<Privilege>& veth_privileges();

/// What a node made from `file` needs for as long as it runs.
Capabilities needed_capabilities(const NodeFile& file);

}  // namespace weir
