#pragma once
// What engines know of ports: where packets may go.

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <weir/flow/port.h>
#include <weir/packet/address.h>
#include <weir/packet/packet.h>

namespace weir {

/// One of the node's own addresses, and the network it has there.
struct PortAddress {
  IpAddress address;
  IpPrefix network;

  bool operator==(const PortAddress&) const = default;
};

/// The ports of a node, by number. `up` changes while workers run; the rest only while it is false and they have passed
/// since: a number may be taken again by another port. `count` is above all numbers ever taken.
struct PortTable {
  struct Port {
    std::atomic<bool> up{false};
    std::string name;
    MacAddress mac;                      ///< the node's own on this port
    std::vector<PortAddress> addresses;  ///< the node's own on this port: what ICMP errors come from
    std::uint32_t mtu = 1500;            ///< bytes of the longest L3 packet that its link takes

    /// Whether the address is the node's own on this port.
    [[nodiscard]] bool owns(const IpAddress& address) const {
      return std::ranges::any_of(addresses, [&](const PortAddress& own) { return own.address == address; });
    }
    /// The node's own address in the network that `address` lies in; nullptr if it lies in none.
    [[nodiscard]] const PortAddress* on_link(const IpAddress& address) const {
      const PortAddress* best = nullptr;
      for (const PortAddress& own : addresses) {
        if (own.network.contains(address) && (best == nullptr || own.network.length > best->network.length)) {
          best = &own;
        }
      }
      return best;
    }
  };

  std::array<Port, max_ports> ports;
  std::atomic<std::uint16_t> count{0};

  [[nodiscard]] bool known(std::uint32_t number) const { return number < count.load(std::memory_order_acquire); }
  [[nodiscard]] bool up(std::uint32_t number) const {
    return known(number) && ports[number].up.load(std::memory_order_acquire);
  }
  /// Whether the address is the node's own on a port that is up.
  [[nodiscard]] bool owns(const IpAddress& address) const {
    const std::uint16_t all = count.load(std::memory_order_acquire);
    return std::any_of(ports.begin(), ports.begin() + all,
                       [&](const Port& port) { return port.up.load(std::memory_order_acquire) && port.owns(address); });
  }
};

/// Packets on their way out, by port, until the worker hands them to the devices. One thread.
class Outputs {
 public:
  Outputs() : queues_(max_ports) {}

  void push(std::uint32_t port, Packet* packet) {
    std::vector<Packet*>& queue = queues_[port].packets;
    if (queue.empty()) {
      touched_.push_back(static_cast<std::uint16_t>(port));
    }
    queue.push_back(packet);
  }

  /// Called when many copies were pushed in a row, so that their frames need not all be held at once; it flushes.
  void on_relief(std::function<void()> flush) { relief_ = std::move(flush); }
  void relieve() {
    if (relief_) {
      relief_();
    }
  }

  /// Calls send(PortId, std::span<Packet*>) for each port that has packets, which it takes over, and empties them.
  template <class Send>
  void flush(Send send) {
    for (const std::uint16_t port : touched_) {
      send(PortId{port}, std::span(queues_[port].packets));
      queues_[port].packets.clear();
    }
    touched_.clear();
  }

 private:
  /// Written for every packet: on a cache line that no other worker's things can share.
  struct alignas(64) Queue {
    std::vector<Packet*> packets;
  };
  std::vector<Queue> queues_;
  std::vector<std::uint16_t> touched_;
  std::function<void()> relief_;
};

}  // namespace weir
