#pragma once
// A port of a running node: its device, and what was counted.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/device/device.h>
#include <weir/engine/executor.h>
#include <weir/runtime/summary.h>

namespace weir {

enum class PortRole : std::uint8_t {
  host,
  uplink,
  gateway,  ///< the node itself in a network that a service makes; see GatewayDevice
};

std::string_view name_of(PortRole role);

struct PortOptions {
  PortRole role = PortRole::host;
  std::map<std::string, std::string> labels;
  std::vector<std::pair<IpAddress, IpPrefix>> addresses;  ///< the node's own on this port
  std::optional<MacAddress> mac;                          ///< nothing: the device's own, or one made from names
  std::optional<std::uint32_t> mtu;                       ///< bytes of an L3 packet; nothing: the device's, or 1500

  bool operator==(const PortOptions&) const = default;
};

/// What one worker counts at one port.
struct alignas(64) PortCounters {
  OwnedCounter in_packets;
  OwnedCounter in_bytes;
  OwnedCounter out_packets;
  OwnedCounter out_bytes;
};

struct Port {
  std::string name;
  std::unique_ptr<Device> device;
  PortOptions options;
  DeviceTraits traits;
  std::vector<PortCounters> counters;  ///< by worker
  bool wanted_up = true;               ///< as Node::set_port_up says
  bool device_up = true;               ///< as Device::tend says; the port is up if both are

  [[nodiscard]] std::uint64_t sum(OwnedCounter PortCounters::* which) const {
    std::uint64_t total = 0;
    for (const PortCounters& worker : counters) {
      total += (worker.*which).get();
    }
    return total;
  }
  [[nodiscard]] Summary::PortLine line() const;
};

}  // namespace weir
