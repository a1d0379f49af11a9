#include <weir/device/internal/whole_frames.h>

#include <weir/device/internal/far_end.h>
#include <weir/device/internal/net_namespace.h>

namespace weir::device_internal {

namespace {

Result<OffloadGuard> prepare_far_end(Netlink& netlink, const Link& link) {
  const Descriptor space = own_namespace();
  const auto end = find_far_end(netlink, space.get(), link);
  if (!end) {
    return std::unexpected(end.error());
  }
  return OffloadGuard::make(end->space.get(), end->link, far_end_settings(), Via{space.get(), link.index});
}

Result<std::vector<OffloadGuard>> make_veth_whole(Netlink& netlink, const Link& link, bool prepared) {
  std::vector<OffloadGuard> guards;
  auto guard = prepare_far_end(netlink, link);
  if (guard) {
    guards.push_back(std::move(*guard));
    return guards;
  }
  if (prepared) {
    return guards;
  }
  std::string name;
  // The name can be had even from namespaces that cannot be entered.
  if (const auto peer = netlink.link(link.peer, link.peer_namespace); peer && *peer) {
    name = (*peer)->name;
  }
  return error(
      "{0} is a veth, and what sends at its far end{1} must not leave checksums and VLAN tags to a card, but that "
      "cannot be set: {2}. Run there: {3} ; then write xdp:{0},far_end=prepared",
      link.name, name.empty() ? fmt::format(" (interface {} there)", link.peer) : " " + name, guard.error().message,
      far_end_command(name.empty() ? "INTERFACE" : name));
}

Result<std::vector<OffloadGuard>> make_card_whole(const Link& link) {
  std::vector<OffloadGuard> guards;
  auto guard = OffloadGuard::make(own_namespace().get(), link, card_settings());
  if (!guard) {
    return error("{}: frames would arrive without their VLAN tags: {}; ports need whole frames", link.name,
                 guard.error().message);
  }
  guards.push_back(std::move(*guard));
  return guards;
}

}  // namespace

const std::vector<FeatureSetting>& card_settings() {
  static const std::vector<FeatureSetting> settings{{"rx-vlan-hw-parse", false}, {"rx-vlan-stag-hw-parse", false}};
  return settings;
}

const std::vector<FeatureSetting>& far_end_settings() {
  static const std::vector<FeatureSetting> settings{
      {"tx-checksum-ipv4", false},
      {"tx-checksum-ip-generic", false},
      {"tx-checksum-ipv6", false},
      {"tx-checksum-sctp", false},
      {"tx-vlan-hw-insert", false},
      {"tx-vlan-stag-hw-insert", false},
      {"rx-gro", true},
  };
  return settings;
}

std::string far_end_command(const std::string& interface) {
  return fmt::format("ethtool -K {} tx off txvlan off tx-vlan-stag-hw-insert off gro on", interface);
}

Result<std::vector<OffloadGuard>> make_frames_whole(Netlink& netlink, const Link& link, bool prepared) {
  return link.kind == "veth" ? make_veth_whole(netlink, link, prepared) : make_card_whole(link);
}

}  // namespace weir::device_internal
