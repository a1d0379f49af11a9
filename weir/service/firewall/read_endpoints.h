#pragma once
// Endpoints from their file, and from the node's ports.

#include <span>

#include <weir/base/config.h>
#include <weir/service/firewall/endpoint.h>
#include <weir/service/service_context.h>

namespace weir {

/// The label of a port that says in which namespace its endpoint is; without it, in `default`.
inline constexpr std::string_view namespace_label = "namespace";

/// An endpoints file:
///
///     weir_endpoints: 1
///     namespaces:
///       x: {team: blue}                      # labels
///     endpoints:
///       x/a: {port: pod-a, labels: {app: web}, addresses: [10.0.0.1], ports: {http: 80, dns: [53/UDP, 53/TCP]}}
///
/// Errors name every mistake, a line each.
Result<Endpoints> read_endpoints(const Config& file, Names& names);

/// The endpoints of the file, and one for each port of role host that none of them is behind: of the port's name, with
/// its labels and addresses, in the namespace that its label `namespace` names. Errors: two that are the same, or have
/// the same address or port; one behind an uplink.
Result<Endpoints> with_ports(Endpoints file, std::span<const ServicePort> ports);

}  // namespace weir
