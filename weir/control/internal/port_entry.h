#pragma once
// One port as configuration says it.

#include <filesystem>
#include <span>

#include <weir/control/node_file.h>

namespace weir {

/// Those options that the map gives; the others stay.
void read_port_options(const Config& config, PortOptions& options, Errors& errors);

/// The port's device and where it is said; paths start from `folder`.
void read_port_device(const Config& device, const std::filesystem::path& folder, NodeFile::PortEntry& port,
                      Errors& errors);

/// A port with the device `gateway` has the role of that name, and no other has. `config` as for its options.
void fit_role(const Config& config, NodeFile::PortEntry& port, Errors& errors);

/// No two ports may use what only one can.
void check_device_uses(std::span<const NodeFile::PortEntry> ports, Errors& errors);

}  // namespace weir
