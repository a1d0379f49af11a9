#pragma once
// Making sure that the frames of an interface reach an XDP program whole: with their checksums and VLAN tags.

#include <string>
#include <vector>

#include <weir/device/internal/offload_guard.h>

namespace weir::device_internal {

/// The sender at the far end of a veth pair may leave checksums and tags to the card that is not there; they then stand
/// beside the frame, where AF_XDP does not see them. So its offloads are turned off where it can be reached, and GRO is
/// turned on there, without which frames redirected by XDP programs get lost. Where it cannot be reached, `prepared`
/// says that somebody has done that; without, it is an error that names the command. A card's own stripping of VLAN
/// tags is turned off too. The guards undo all that.
Result<std::vector<OffloadGuard>> make_frames_whole(Netlink& netlink, const Link& link, bool prepared);

/// The settings of a card.
const std::vector<FeatureSetting>& card_settings();

/// The settings of a veth's far end.
const std::vector<FeatureSetting>& far_end_settings();

/// The command that makes them.
std::string far_end_command(const std::string& interface);

}  // namespace weir::device_internal
