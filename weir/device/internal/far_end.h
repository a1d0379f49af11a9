#pragma once
// The other end of a veth pair, wherever it is.

#include <weir/base/descriptor.h>
#include <weir/base/error.h>
#include <weir/device/internal/netlink.h>

namespace weir::device_internal {

/// Asks about the network namespace `space`.
Result<Netlink> netlink_in(int space);

struct FarEnd {
  Descriptor space;  ///< the network namespace it is in
  Link link;
};

/// Where the veth `link` leads to; `netlink` asks about `space`, the namespace that `link` is in. An error if that
/// cannot be found from here, or not be entered.
Result<FarEnd> find_far_end(Netlink& netlink, int space, const Link& link);

}  // namespace weir::device_internal
