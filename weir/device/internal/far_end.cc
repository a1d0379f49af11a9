#include <weir/device/internal/far_end.h>

#include <fcntl.h>

#include <weir/device/internal/net_namespace.h>

namespace weir::device_internal {

Result<Netlink> netlink_in(int space) {
  std::optional<Netlink> netlink;
  const auto opened = in_namespace(space, [&]() -> Result<> {
    auto made = Netlink::open();
    if (!made) {
      return std::unexpected(made.error());
    }
    netlink.emplace(std::move(*made));
    return {};
  });
  return opened ? Result<Netlink>(std::move(*netlink)) : std::unexpected(opened.error());
}

Result<FarEnd> find_far_end(Netlink& netlink, int space, const Link& link) {
  FarEnd end;
  end.space = link.peer_namespace
                  ? find_namespace([&](int other) { return netlink.identifier(other) == link.peer_namespace; })
                  : Descriptor(fcntl(space, F_DUPFD_CLOEXEC, 0));
  if (!end.space) {
    return error("its network namespace cannot be reached from here");
  }
  auto there = netlink_in(end.space.get());
  if (!there) {
    return std::unexpected(there.error());
  }
  auto found = there->link(link.peer);
  if (!found) {
    return std::unexpected(found.error());
  }
  if (!*found) {
    return error("it has gone");
  }
  end.link = std::move(**found);
  return end;
}

}  // namespace weir::device_internal
