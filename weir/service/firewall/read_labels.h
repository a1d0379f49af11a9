#pragma once
// Labels, selectors and names of ports, as Kubernetes objects write them.

#include <map>
#include <optional>

#include <weir/base/config.h>
#include <weir/service/firewall/labels.h>

namespace weir {

// Each of these adds what is wrong to `errors`, a line for each mistake, and then returns what it could make of the
// rest.

/// A map from label to value.
std::map<std::string, std::string> read_labels(const Config& config, Errors& errors);
/// A LabelSelector; nothing selects everything.
Selector read_selector(const Config& config, Names& names, Errors& errors);
/// A name that Kubernetes takes for an object (RFC 1123).
std::string read_object_name(const Config& config, std::string_view what, Errors& errors);
/// "TCP", "UDP" or "SCTP" as IP's number.
std::uint8_t read_protocol(const Config& config, Errors& errors);
/// A name of a port (RFC 6335): at most 15 of a-z, 0-9 and '-', at least one of them a letter.
std::string read_port_name(const Config& config, Errors& errors);

}  // namespace weir
