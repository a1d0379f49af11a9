#pragma once
// Which new connections are translated, and how.

#include <optional>
#include <vector>

#include <weir/base/config.h>
#include <weir/flow/connection.h>
#include <weir/service/service_context.h>

namespace weir {

/// Hosts that others see under one address.
struct Masquerade {
  IpPrefix from;                 ///< sources
  std::vector<IpPrefix> except;  ///< destinations that see them as they are; `from` is always among them
  IpAddress to;
  PortRange ports;

  bool operator==(const Masquerade&) const = default;
};

/// A port that leads to another host.
struct PortForward {
  IpAddress address;
  std::uint8_t protocol = 0;  ///< 0: all packets to the address, whatever their ports
  std::uint16_t port = 0;
  IpAddress to;
  std::uint16_t to_port = 0;

  bool operator==(const PortForward&) const = default;
};

struct NatRules {
  std::vector<Masquerade> masquerades;
  std::vector<PortForward> forwards;
  std::vector<IpAddress> own;  ///< the node's own addresses: what is for them is not translated on its way out

  bool operator==(const NatRules&) const = default;

  /// The translation of a connection that begins with this packet; nothing if it stays as it is.
  [[nodiscard]] std::optional<Translation> translation(const ConnectionTuple& first) const;
};

/// From the settings `masquerade` and `forward`. An error names every mistake.
Result<NatRules> read_nat_rules(const ServiceContext& context);

}  // namespace weir
