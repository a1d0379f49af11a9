#include <weir/base/capabilities.h>

#include <cerrno>
#include <cstring>

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weir {

namespace {

std::unexpected<Error> not_given_up() {
  return error("privileges cannot be given up: {}; start the node without them", std::strerror(errno));
}

}  // namespace

Result<> keep_capabilities(Capabilities kept) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return not_given_up();
  }
  // Before the sets below, which hold what this needs. A process that may not do it cannot gain anything by the
  // bounding set either, now that it gets no new privileges.
  for (unsigned number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; ++number) {
    if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno != EPERM) {
      return not_given_up();
    }
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return not_given_up();
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
  if (syscall(SYS_capget, &header, sets) != 0) {
    return not_given_up();
  }
  for (unsigned half = 0; half < _LINUX_CAPABILITY_U32S_3; ++half) {
    const auto bits = static_cast<std::uint32_t>(kept.bits() >> (32U * half));
    sets[half].permitted &= bits;
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  return syscall(SYS_capset, &header, sets) == 0 ? Result<>() : not_given_up();
}

}  // namespace weir
