#include <weir/control/privileges.h>

#include <algorithm>

#include <linux/capability.h>

#include <weir/device/interface_state.h>

#ifndef CAP_BPF
#define CAP_BPF 39
#endif

namespace weir {

namespace {

Capabilities all_of(const std::vector<Privilege>& privileges) {
  Capabilities all;
  for (const Privilege& privilege : privileges) {
    all = all | Capabilities::of({privilege.number});
  }
  return all;
}

}  // namespace

const std::vector<Privilege>& interface_privileges() {
  static const std::vector<Privilege> privileges{
      {CAP_NET_ADMIN, "CAP_NET_ADMIN", "tap interfaces, XDP programs, offload settings"},
      {CAP_NET_RAW, "CAP_NET_RAW", "AF_XDP and packet sockets"},
      {CAP_BPF, "CAP_BPF", "loading XDP programs"},
      {CAP_IPC_LOCK, "CAP_IPC_LOCK", "frames that AF_XDP sockets share, beyond the limit of locked memory"},
  };
  return privileges;
}

const std::vector<Privilege>& veth_privileges() {
  static const std::vector<Privilege> privileges{
      {CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "entering the network namespace of a veth's far end"},
      {CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "finding that namespace by the processes in it"},
  };
  return privileges;
}

Capabilities needed_capabilities(const NodeFile& file) {
  const bool veth = std::ranges::any_of(file.ports, [](const NodeFile::PortEntry& port) {
    return port.device.kind == "xdp" && is_veth(port.device.argument);
  });
  const Capabilities needed = all_of(interface_privileges());
  return veth ? needed | all_of(veth_privileges()) : needed;
}

}  // namespace weir
