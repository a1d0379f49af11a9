#include <weir/device/xdp.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <fmt/ranges.h>
#include <sys/epoll.h>

#include <weir/base/log.h>
#include <weir/base/nearest.h>
#include <weir/device/internal/netlink.h>
#include <weir/device/internal/option_reader.h>
#include <weir/device/internal/xdp_binding.h>

namespace weir {

using device_internal::Link;
using device_internal::Netlink;
using device_internal::OptionReader;
using device_internal::XdpBinding;
using device_internal::XdpConfig;
using device_internal::XdpMode;
using device_internal::XdpQueue;

namespace {

constexpr std::size_t longest_name = 15;
constexpr Nanoseconds time_between_tries = 1'000'000'000;
// What a frame may be longer than the MTU says: an Ethernet header and a VLAN tag.
constexpr std::uint32_t beyond_mtu = 18;

Result<Link> find_interface(Netlink& netlink, const std::string& name) {
  auto found = netlink.link(name);
  if (!found) {
    return std::unexpected(found.error());
  }
  if (!*found) {
    const std::vector<Link> links = netlink.links().value_or(std::vector<Link>());
    std::vector<std::string_view> names;
    for (const Link& link : links) {
      if (link.ethernet) {
        names.push_back(link.name);
      }
    }
    const std::string hint = did_you_mean(name, names);
    return error("no interface '{}' in this network namespace{} Ethernet interfaces here: {}", name,
                 hint.empty() ? ";" : hint, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  }
  if (!(*found)->ethernet) {
    return error("{} is not an Ethernet interface", name);
  }
  return std::move(**found);
}

}  // namespace

Result<> find_xdp_interface(const std::string& name) {
  auto netlink = Netlink::open();
  if (!netlink) {
    return std::unexpected(netlink.error());
  }
  const auto link = find_interface(*netlink, name);
  return link ? Result<>() : std::unexpected(link.error());
}

DeviceKind xdp_kind() {
  return {
      .name = "xdp",
      .help = "a network interface by AF_XDP; the port owns it",
      .argument = "name of an Ethernet interface",
      .options =
          {
              {"mode", "of the XDP program: native (in the driver), generic, or auto: native if the driver can (auto)"},
              {"ring", "entries of each ring, a power of two from 64 to 4096 (2048, or less by the node's frames)"},
              {"far_end", "prepared: the far end of a veth is out of reach, and its offloads were set by hand (none)"},
          },
      .example = "xdp:eth1",
      .make = XdpDevice::make,
  };
}

/// Where one thread enters. Its lock is free but for the moments in which an interface comes or goes.
struct alignas(64) XdpDevice::Gate {
  std::mutex lock;  // guards binding
  XdpBinding* binding = nullptr;
  Descriptor ready;   // epoll: a socket of this queue has frames
  bool wakes = true;  // it has the sockets; else nobody waits for it, and the kernel is spared telling it of each frame
  unsigned turn = 0;  // the socket to begin with
};

XdpDevice::XdpDevice(const XdpConfig& config) : config_(std::make_unique<XdpConfig>(config)) {}

XdpDevice::~XdpDevice() { release(); }

std::string XdpDevice::interface() const { return config_->interface; }

std::string XdpDevice::name() const { return "xdp:" + config_->interface; }

Result<std::unique_ptr<Device>> XdpDevice::make(const DeviceSpec& spec) {
  XdpConfig config;
  config.interface = spec.argument;
  if (config.interface.empty() || config.interface.size() > longest_name) {
    return error("'{}' is not the name of an interface; write xdp:INTERFACE, as in 'xdp:eth1'", config.interface);
  }
  OptionReader read(spec);
  read.choice<XdpMode>("mode", config.mode,
                       {{"auto", XdpMode::any}, {"native", XdpMode::native}, {"generic", XdpMode::generic}});
  read.number("ring", config.ring, 64, 4096);
  if (!std::has_single_bit(std::max(config.ring, 1U))) {
    read.fail("ring", fmt::format("{} is not a power of two", config.ring));
  }
  read.choice<bool>("far_end", config.far_end_prepared, {{"prepared", true}});
  if (const auto result = read.result(); !result) {
    return std::unexpected(result.error());
  }
  return std::unique_ptr<Device>(new XdpDevice(config));
}

Result<> XdpDevice::open(const DeviceContext& context) {
  pool_ = &context.pool;
  clock_ = &context.clock;
  for (auto* netlink : {&netlink_, &watch_}) {
    auto opened = Netlink::open(netlink == &watch_ ? Netlink::Watch::links : Netlink::Watch::nothing);
    if (!opened) {
      return std::unexpected(opened.error());
    }
    *netlink = std::make_unique<Netlink>(std::move(*opened));
  }
  const auto link = find_interface(*netlink_, config_->interface);
  if (!link) {
    return std::unexpected(link.error());
  }
  mac_ = link->mac;
  mtu_ = link->mtu;
  const UndoneOffloads undone = undo_left_offloads();
  for (const std::string& line : undone.done) {
    log::info("{}", line);
  }
  for (const std::string& line : undone.failed) {
    log::warn("{}", line);
  }
  for (unsigned worker = 0; worker < context.workers; ++worker) {
    senders_.push_back(std::make_unique<Gate>());
    Gate& receiver = *receivers_.emplace_back(std::make_unique<Gate>());
    receiver.ready.reset(epoll_create1(EPOLL_CLOEXEC));
    if (!receiver.ready) {
      return error("no descriptor for {}: {}; raise the limit (ulimit -n)", name(), std::strerror(errno));
    }
  }
  // An interface may return with more queues; which worker polls them is fixed now.
  const unsigned queues = device_internal::queues(link->name).receive;
  receivers_.resize(std::min<std::size_t>(receivers_.size(), queues));
  traits_ = {.queues = static_cast<unsigned>(receivers_.size())};
  if (auto bound = bind(*link); !bound) {
    return bound;
  }
  look();
  return {};
}

Result<> XdpDevice::bind(const Link& link) {
  auto made = XdpBinding::make(*config_, *netlink_, link, *pool_);
  if (!made) {
    return std::unexpected(made.error());
  }
  XdpBinding& binding = **made;
  log::info("{}: {}", name(), binding.describe());
  if (const std::string shortcoming = binding.shortcoming(); !shortcoming.empty()) {
    log::warn("{}: {}", name(), shortcoming);
  }
  for (unsigned queue = 0; queue < receivers_.size(); ++queue) {
    const std::lock_guard lock(receivers_[queue]->lock);
    if (auto waits = wait_for_sockets(queue, binding, receivers_[queue]->wakes); !waits) {
      return waits;
    }
  }
  {
    const std::lock_guard lock(lock_);
    binding_ = std::move(*made);
  }
  for (const auto* gates : {&receivers_, &senders_}) {
    for (const auto& gate : *gates) {
      const std::lock_guard lock(gate->lock);
      gate->binding = &binding;
    }
  }
  return {};
}

// Sockets of `queue` enter its epoll, or leave it. With its lock.
Result<> XdpDevice::wait_for_sockets(unsigned queue, const XdpBinding& binding, bool wanted) {
  for (std::size_t i = queue; i < binding.queues().size(); i += receivers_.size()) {
    const XdpQueue& socket = *binding.queues()[i];
    for (const int descriptor : {socket.descriptor(), socket.unsent()}) {
      epoll_event event{};
      event.events = EPOLLIN;
      const int change = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
      const int outcome = epoll_ctl(receivers_[queue]->ready.get(), change, descriptor, &event);
      if (outcome != 0 && errno != EEXIST && errno != ENOENT) {
        return error("queue {} of {} cannot be waited for: {}", i, name(), std::strerror(errno));
      }
    }
  }
  return {};
}

void XdpDevice::want_wake_ups(unsigned queue, bool wanted) {
  Gate& gate = *receivers_[queue];
  const std::lock_guard lock(gate.lock);
  if (gate.wakes == wanted) {
    return;
  }
  gate.wakes = wanted;
  if (gate.binding != nullptr) {
    if (const auto changed = wait_for_sockets(queue, *gate.binding, wanted); !changed) {
      log::error("{}", changed.error().message);
    }
  }
}

void XdpDevice::release() {
  for (const auto* gates : {&receivers_, &senders_}) {
    for (const auto& gate : *gates) {
      const std::lock_guard lock(gate->lock);
      gate->binding = nullptr;
    }
  }
  std::unique_ptr<XdpBinding> old;  // destroyed without the lock, since that takes a while
  const std::lock_guard lock(lock_);
  if (binding_ != nullptr) {
    lost_before_ += binding_->lost();
    old = std::move(binding_);
  }
}

bool XdpDevice::tend() {
  const bool again = try_again_ != 0 && SystemClock::read() >= try_again_;
  if (watch_->changed() || again) {
    look();
  }
  return state_ == State::up;
}

void XdpDevice::look() {
  const auto found = netlink_->link(config_->interface);
  if (!found) {
    return;  // asked again with the next change
  }
  const std::optional<Link>& link = *found;
  if (binding_ != nullptr && (!link || link->index != binding_->index())) {
    release();
    set_state(State::absent);
  }
  try_again_ = 0;
  if (!link) {
    return;
  }
  if (binding_ == nullptr) {
    if (const auto bound = bind(*link); !bound) {
      if (last_error_ != bound.error().message) {
        last_error_ = bound.error().message;
        log::warn("{} is there again, but stays closed: {}", name(), last_error_);
      }
      try_again_ = SystemClock::read() + time_between_tries;
      return;
    }
    last_error_.clear();
  }
  longest_.store(link->mtu + beyond_mtu, std::memory_order_relaxed);
  set_state(!link->up ? State::down : !link->carrier ? State::no_carrier : State::up);
}

void XdpDevice::set_state(State state) {
  if (state == state_) {
    return;
  }
  state_ = state;
  switch (state) {
    case State::absent:
      log::warn("{} has disappeared: its port is down until the interface returns", name());
      break;
    case State::down:
      log::warn("{} is set down: its port is down until: ip link set {} up", name(), config_->interface);
      break;
    case State::no_carrier:
      log::warn("{} has no carrier: its port is down until its far end is up", name());
      break;
    case State::up:
      log::info("{} is up", name());
      break;
  }
}

std::size_t XdpDevice::receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) {
  Gate& gate = *receivers_[queue];
  const std::lock_guard lock(gate.lock);
  if (gate.binding == nullptr) {
    return 0;
  }
  const auto& sockets = gate.binding->queues();
  const std::size_t stride = receivers_.size();
  if (queue >= sockets.size()) {
    return 0;
  }
  const std::size_t mine = (sockets.size() - queue - 1) / stride + 1;
  std::size_t done = 0;
  for (std::size_t i = 0; i < mine && done < out.size(); ++i) {
    const std::size_t socket = queue + (gate.turn + i) % mine * stride;
    done += sockets[socket]->receive(out.subspan(done), frames, *clock_);
  }
  ++gate.turn;
  return done;
}

std::size_t XdpDevice::transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) {
  Gate& gate = *senders_[queue];
  const std::lock_guard lock(gate.lock);
  if (gate.binding == nullptr) {
    return 0;
  }
  return gate.binding->queues()[queue % gate.binding->senders()]->transmit(packets, frames,
                                                                           longest_.load(std::memory_order_relaxed));
}

int XdpDevice::descriptor(unsigned queue) const { return receivers_[queue]->ready.get(); }

Result<> XdpDevice::flush() {
  const std::lock_guard lock(lock_);
  if (binding_ != nullptr) {
    for (const auto& queue : binding_->queues()) {
      queue->flush();
    }
  }
  return {};
}

DeviceCounters XdpDevice::counters() const {
  const std::lock_guard lock(lock_);
  return {.lost = lost_before_ + (binding_ != nullptr ? binding_->lost() : 0)};
}

}  // namespace weir
