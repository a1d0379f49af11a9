#pragma once
// What a network interface is like before a port takes it.

#include <optional>
#include <string>
#include <vector>

#include <weir/base/error.h>

namespace weir {

/// The far end of a veth pair.
struct FarEndState {
  std::string name;                   ///< empty if not even that can be had
  unsigned mtu = 0;                   ///< 0: not known
  std::string unreachable;            ///< why it cannot be looked at or set from here; empty if it can
  std::vector<std::string> offloads;  ///< settings that a port changes while it is open, as "tx-checksum-ipv4 off"
  std::string command;                ///< that makes them by hand
};

struct InterfaceState {
  unsigned mtu = 0;
  unsigned receive_queues = 1, transmit_queues = 1;
  unsigned xdp_program = 0;            ///< number of the XDP program on it; 0: none
  std::string xdp_holder;              ///< the process that holds that program: "weir (process 12)"; empty: none seen
  std::vector<std::string> offloads;   ///< settings that a port changes while it is open
  std::string offloads_fixed;          ///< why one cannot be changed; empty if all can
  bool receive_offload = false;        ///< LRO is on, with which drivers take no XDP program
  std::optional<FarEndState> far_end;  ///< of a veth
};

/// Looks at the interface `name` of the calling thread's network namespace, and changes nothing; nothing if there is no
/// such Ethernet interface. What this process may not see is left out.
Result<std::optional<InterfaceState>> look_at_interface(const std::string& name);

/// Whether `name` is one end of a veth pair; false if there is no such interface.
bool is_veth(const std::string& name);

}  // namespace weir
