#pragma once
// What differs between two node files, in words and for those who apply it.

#include <vector>

#include <weir/control/managed_node.h>

namespace weir {

/// What cannot change while a node runs, a line each, at the place where `to` says it.
Result<> check_live_changes(const NodeFile& from, const NodeFile& to);

/// Of ports, chains and settings; what services make of their settings is not among it.
std::vector<NodeChange> differences(const NodeFile& from, const NodeFile& to);

/// nullptr if the file has no such port.
const NodeFile::PortEntry* find_port(const NodeFile& file, std::string_view name);

}  // namespace weir
