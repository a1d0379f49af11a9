#include <weir/device/interface_state.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <weir/device/internal/ethtool.h>
#include <weir/device/internal/far_end.h>
#include <weir/device/internal/net_namespace.h>
#include <weir/device/internal/whole_frames.h>

namespace weir {

using device_internal::FeatureSetting;
using device_internal::Link;
using device_internal::Netlink;

namespace {

std::vector<std::string> texts(const std::vector<FeatureSetting>& settings) {
  std::vector<std::string> lines;
  lines.reserve(settings.size());
  for (const auto& [name, on] : settings) {
    lines.push_back(fmt::format("{} {}", name, on ? "on" : "off"));
  }
  return lines;
}

/// The first process that holds a descriptor of the BPF program or of a link to it, as far as this one may see them.
std::string holder_of(unsigned program) {
  const std::string wanted = fmt::format("prog_id:\t{}", program);
  std::error_code failure;
  for (std::filesystem::directory_iterator process("/proc", failure), end; process != end; process.increment(failure)) {
    const std::string number = process->path().filename();
    if (!std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) {
      continue;
    }
    std::error_code not_ours;
    for (std::filesystem::directory_iterator at(process->path() / "fdinfo", not_ours); at != end;
         at.increment(not_ours)) {
      std::ifstream file(at->path());
      for (std::string line; std::getline(file, line);) {
        if (line == wanted) {
          std::string name;
          std::getline(std::ifstream(process->path() / "comm"), name);
          return fmt::format("{} (process {})", name, number);
        }
      }
    }
  }
  return {};
}

FarEndState look_at_far_end(Netlink& netlink, const Link& link) {
  FarEndState state;
  // The name can be had even from namespaces that cannot be entered.
  if (const auto peer = netlink.link(link.peer, link.peer_namespace); peer && *peer) {
    state.name = (*peer)->name;
    state.mtu = (*peer)->mtu;
  }
  const Descriptor here = device_internal::own_namespace();
  const auto end = device_internal::find_far_end(netlink, here.get(), link);
  if (!end) {
    state.unreachable = end.error().message;
  } else {
    state.name = end->link.name;
    state.mtu = end->link.mtu;
    const auto looked = device_internal::in_namespace(end->space.get(), [&]() -> Result<> {
      const auto missing = device_internal::missing_settings(state.name, device_internal::far_end_settings());
      if (missing) {
        state.offloads = texts(*missing);
      }
      return missing ? Result<>() : std::unexpected(missing.error());
    });
    state.unreachable = looked ? "" : looked.error().message;
  }
  state.command = device_internal::far_end_command(state.name.empty() ? "INTERFACE" : state.name);
  return state;
}

bool is_on(const std::string& interface, std::string_view feature) {
  const auto features = device_internal::features(interface);
  return features && std::ranges::any_of(*features, [&](const auto& f) { return f.name == feature && f.active; });
}

}  // namespace

Result<std::optional<InterfaceState>> look_at_interface(const std::string& name) {
  auto netlink = Netlink::open();
  if (!netlink) {
    return std::unexpected(netlink.error());
  }
  const auto found = netlink->link(name);
  if (!found) {
    return std::unexpected(found.error());
  }
  if (!*found || !(*found)->ethernet) {
    return std::nullopt;
  }
  const Link& link = **found;
  const auto queues = device_internal::queues(name);
  InterfaceState state{.mtu = link.mtu,
                       .receive_queues = queues.receive,
                       .transmit_queues = queues.transmit,
                       .xdp_program = link.xdp_program,
                       .xdp_holder = link.xdp_program != 0 ? holder_of(link.xdp_program) : std::string(),
                       .offloads = {},
                       .offloads_fixed = {},
                       .receive_offload = is_on(name, "rx-lro"),
                       .far_end = {}};
  if (link.kind == "veth") {
    state.far_end = look_at_far_end(*netlink, link);
  } else if (const auto missing = device_internal::missing_settings(name, device_internal::card_settings())) {
    state.offloads = texts(*missing);
  } else {
    state.offloads_fixed = missing.error().message;
  }
  return state;
}

bool is_veth(const std::string& name) {
  auto netlink = Netlink::open();
  const auto link = netlink ? netlink->link(name) : Result<std::optional<Link>>();
  return link && *link && (*link)->kind == "veth";
}

}  // namespace weir
