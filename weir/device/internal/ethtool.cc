#include <weir/device/internal/ethtool.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <weir/base/descriptor.h>

namespace weir::device_internal {

namespace {

/// One of ethtool's commands, a structure that may end in an array; false with errno if the kernel refuses.
bool call(const std::string& interface, void* command) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) {
    return false;
  }
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(socket.get(), SIOCETHTOOL, &request) >= 0;
}

/// A structure T followed by `bytes` more, zero.
template <class T>
struct Extended {
  explicit Extended(std::size_t bytes) : memory(std::make_unique<std::uint64_t[]>((sizeof(T) + bytes + 7) / 8)) {}
  T* operator->() { return reinterpret_cast<T*>(memory.get()); }
  T* get() { return reinterpret_cast<T*>(memory.get()); }
  std::unique_ptr<std::uint64_t[]> memory;
};

std::unexpected<Error> failure(const std::string& interface) {
  const int reason = errno;
  return error("offload settings of {} cannot be had or made: {}{}", interface, std::strerror(reason),
               reason == EPERM ? "; give CAP_NET_ADMIN, or run as root" : "");
}

/// The names of all features this kernel knows, by number.
Result<std::vector<std::string>> feature_names(const std::string& interface) {
  Extended<ethtool_sset_info> info(sizeof(std::uint32_t));
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = std::uint64_t{1} << ETH_SS_FEATURES;
  if (!call(interface, info.get())) {
    return failure(interface);
  }
  const std::uint32_t count = info->sset_mask == 0 ? 0 : info->data[0];
  Extended<ethtool_gstrings> strings(std::size_t{count} * ETH_GSTRING_LEN);
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_FEATURES;
  strings->len = count;
  if (!call(interface, strings.get())) {
    return failure(interface);
  }
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* name = reinterpret_cast<const char*>(strings->data) + std::size_t{i} * ETH_GSTRING_LEN;
    names.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
  }
  return names;
}

constexpr unsigned block_bits = 32;

std::size_t blocks_of(const std::vector<std::string>& names) { return (names.size() + block_bits - 1) / block_bits; }

}  // namespace

Result<std::vector<Feature>> features(const std::string& interface) {
  const auto names = feature_names(interface);
  if (!names) {
    return std::unexpected(names.error());
  }
  const std::size_t blocks = blocks_of(*names);
  Extended<ethtool_gfeatures> state(blocks * sizeof(ethtool_get_features_block));
  state->cmd = ETHTOOL_GFEATURES;
  state->size = static_cast<std::uint32_t>(blocks);
  if (!call(interface, state.get())) {
    return failure(interface);
  }
  std::vector<Feature> found;
  for (std::size_t i = 0; i < names->size(); ++i) {
    const ethtool_get_features_block& block = state->features[i / block_bits];
    const std::uint32_t bit = 1U << (i % block_bits);
    found.push_back({(*names)[i], (block.requested & bit) != 0, (block.active & bit) != 0,
                     (block.available & bit) != 0 && (block.never_changed & bit) == 0});
  }
  return found;
}

Result<> set_features(const std::string& interface, const std::vector<FeatureSetting>& settings) {
  const auto names = feature_names(interface);
  if (!names) {
    return std::unexpected(names.error());
  }
  const std::size_t blocks = blocks_of(*names);
  Extended<ethtool_sfeatures> change(blocks * sizeof(ethtool_set_features_block));
  change->cmd = ETHTOOL_SFEATURES;
  change->size = static_cast<std::uint32_t>(blocks);
  for (const auto& [name, on] : settings) {
    const auto at = static_cast<std::size_t>(std::ranges::find(*names, name) - names->begin());
    if (at == names->size()) {
      continue;
    }
    const std::uint32_t bit = 1U << (at % block_bits);
    change->features[at / block_bits].valid |= bit;
    change->features[at / block_bits].requested |= on ? bit : 0;
  }
  return call(interface, change.get()) ? Result<>() : failure(interface);
}

Result<std::vector<FeatureSetting>> missing_settings(const std::string& interface,
                                                     const std::vector<FeatureSetting>& wanted) {
  const auto found = features(interface);
  if (!found) {
    return std::unexpected(found.error());
  }
  std::vector<FeatureSetting> settings;
  for (const auto& [name, on] : wanted) {
    const auto feature = std::ranges::find(*found, name, &Feature::name);
    if (feature == found->end()) {
      continue;
    }
    if (feature->changeable && feature->wanted != on) {
      settings.push_back({name, on});
    } else if (feature->active != on && !feature->changeable) {
      return error("offload {} of {} is fixed {}", name, interface, on ? "off" : "on");
    }
  }
  return settings;
}

Queues queues(const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  Queues found{0, 0};
  if (call(interface, &channels)) {
    found = {channels.rx_count + channels.combined_count, channels.tx_count + channels.combined_count};
  } else {
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net/" + interface + "/queues", failure)) {
      const std::string name = entry.path().filename();
      found.receive += name.starts_with("rx-") ? 1 : 0;
      found.transmit += name.starts_with("tx-") ? 1 : 0;
    }
  }
  return {std::max(found.receive, 1U), std::max(found.transmit, 1U)};
}

}  // namespace weir::device_internal
