#include <weir/device/internal/xdp_binding.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <weir/base/log.h>
#include <weir/device/internal/whole_frames.h>

// Newer than the headers of Debian 12 (Linux 6.6): frames of several buffers.
#ifndef XDP_USE_SG
#define XDP_USE_SG (1U << 4U)
#endif

namespace weir::device_internal {

namespace {

constexpr std::uint32_t largest_ring = 2048;
constexpr std::uint32_t smallest_ring = 64;
// One part in so many of the pool is the most that a port holds to receive into; others need frames too.
constexpr std::uint32_t share_of_pool = 4;
// Buffers of one frame to be sent: MAX_SKB_FRAGS + 1 when the kernel copies; else what the drivers have in common.
constexpr unsigned most_segments_copied = 18;
constexpr unsigned most_segments_zero_copy = 8;
// A socket that was just closed leaves its queue with a delay, of seconds if the kernel has much to do: so long it is
// waited for.
constexpr int tries = 500;
constexpr auto between_tries = std::chrono::milliseconds(10);

/// Frames for any address, for as long as the descriptor is open.
Result<Descriptor> make_promiscuous(const Link& link) {
  Descriptor socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  packet_mreq request{};
  request.mr_ifindex = static_cast<int>(link.index);
  request.mr_type = PACKET_MR_PROMISC;
  if (!socket || setsockopt(socket.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) != 0) {
    const int reason = errno;
    return error("{} cannot be made to receive frames for all addresses: {}{}", link.name, std::strerror(reason),
                 reason == EPERM ? "; run as root, or give CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF and, for veth "
                                   "interfaces, CAP_SYS_ADMIN"
                                 : "");
  }
  return socket;
}

/// Entries of each ring.
Result<std::uint32_t> choose_ring(const XdpConfig& config, const Link& link, const FramePool& pool, unsigned queues) {
  const std::size_t left = pool.available() / 2;
  const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(pool.frames() / share_of_pool, left) / queues);
  const std::uint32_t ring = config.ring != 0 ? config.ring : std::min(largest_ring, std::bit_floor(most));
  if (ring > most || ring < smallest_ring) {
    const std::uint64_t needed = std::uint64_t{std::max(ring, smallest_ring)} * queues * share_of_pool;
    return error(
        "{0} has {1} queue(s), each of which needs {2} frames to receive into; a port takes at most a quarter of the "
        "node's {3} frames and half of the {4} that are left. Write frames: {5} or more in the node file, or use fewer "
        "queues: ethtool -L {0} combined 1",
        link.name, queues, std::max(ring, smallest_ring), pool.frames(), left * 2, needed);
  }
  return ring;
}

std::unexpected<Error> not_registered(const FramePool& pool, int reason) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (reason == ENOBUFS) {
    return error(
        "the {} frames of the node are {} KiB, locked once for each xdp: port, and this process may lock {} KiB of "
        "memory; raise that (ulimit -l, LimitMEMLOCK=, or CAP_IPC_LOCK) or write fewer frames: in the node file",
        pool.frames(), std::uint64_t{pool.frames()} * (FramePool::buffer_bytes / 1024), limit.rlim_cur / 1024);
  }
  if (reason == EPERM) {
    return error("AF_XDP sockets cannot be made: {}; give CAP_NET_RAW, or run as root", std::strerror(reason));
  }
  return error("the node's frames cannot be given to AF_XDP: {}", std::strerror(reason));
}

}  // namespace

Result<std::unique_ptr<XdpBinding>> XdpBinding::make(const XdpConfig& config, Netlink& netlink, const Link& link,
                                                     FramePool& pool) {
  std::unique_ptr<XdpBinding> made(new XdpBinding);
  made->index_ = link.index;
  auto promiscuous = make_promiscuous(link);
  if (!promiscuous) {
    return std::unexpected(promiscuous.error());
  }
  made->promiscuous_ = std::move(*promiscuous);
  const Queues found = device_internal::queues(link.name);
  made->senders_ = std::min(found.receive, found.transmit);
  const auto ring = choose_ring(config, link, pool, found.receive);
  if (!ring) {
    return std::unexpected(ring.error());
  }
  made->limits_.ring = *ring;
  auto offloads = make_frames_whole(netlink, link, config.far_end_prepared);
  if (!offloads) {
    return std::unexpected(offloads.error());
  }
  made->offloads_ = std::move(*offloads);
  auto program = XdpProgram::attach(link, found.receive, config.mode);
  if (!program) {
    return std::unexpected(program.error());
  }
  made->program_ = std::make_unique<XdpProgram>(std::move(*program));
  if (auto bound = made->bind_queues(link, pool, found.receive); !bound) {
    return std::unexpected(bound.error());
  }
  return made;
}

XdpBinding::~XdpBinding() { release_queues(); }

void XdpBinding::release_queues() {
  queues_.clear();
  if (umem_ != nullptr) {
    xsk_umem__delete(umem_);
    umem_ = nullptr;
  }
}

Result<> XdpBinding::bind_queues(const Link& link, FramePool& pool, unsigned count) {
  if (program_->frags()) {
    auto bound = try_queues(link, pool, count, true);
    // A kernel that does not know frames of several buffers refuses the flag.
    if (bound || reason_ != EINVAL) {
      return bound;
    }
  }
  return try_queues(link, pool, count, false);
}

Result<> XdpBinding::try_queues(const Link& link, FramePool& pool, unsigned count, bool several_buffers) {
  release_queues();
  for (unsigned queue = 0; queue < count; ++queue) {
    if (auto bound = bind_queue(link, pool, queue, several_buffers); !bound) {
      return bound;
    }
    if (auto claimed = program_->claim(queue, queues_.back()->descriptor()); !claimed) {
      return claimed;
    }
  }
  return {};
}

// The UMEM is registered once for each port, though it is the same memory: with one registration for all of them, a
// port could not outlive the interface that was bound first, and all drivers would have to work in the same mode.
Result<> XdpBinding::bind_queue(const Link& link, FramePool& pool, unsigned queue, bool several_buffers) {
  auto rings = std::make_unique<XdpRings>();
  if (umem_ == nullptr) {
    const xsk_umem_config config{
        .fill_size = limits_.ring, .comp_size = limits_.ring, .frame_size = FramePool::buffer_bytes};
    const int failure =
        xsk_umem__create(&umem_, pool.memory().bytes.data(), std::uint64_t{pool.frames()} * FramePool::buffer_bytes,
                         &rings->fill, &rings->completion, &config);
    if (failure != 0) {
      umem_ = nullptr;
      return not_registered(pool, -failure);
    }
  }
  const unsigned flags = XDP_USE_NEED_WAKEUP | (several_buffers ? XDP_USE_SG : 0U) |
                         (program_->native() ? 0U : static_cast<unsigned>(XDP_COPY));
  xsk_socket_config config{};
  config.rx_size = limits_.ring;
  config.tx_size = limits_.ring;
  config.libbpf_flags = XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD;  // we have our own
  config.bind_flags = static_cast<std::uint16_t>(flags);
  xsk_socket* socket = nullptr;
  for (int i = 1;; ++i) {
    reason_ = -xsk_socket__create_shared(&socket, link.name.c_str(), queue, umem_, &rings->receive,
                                         queue < senders_ ? &rings->transmit : nullptr, &rings->fill,
                                         &rings->completion, &config);
    if (reason_ != EBUSY || i == tries) {
      break;
    }
    std::this_thread::sleep_for(between_tries);
  }
  if (reason_ != 0 && queues_.empty()) {
    xsk_umem__delete(umem_);  // it refers to these rings until a socket does
    umem_ = nullptr;
  }
  if (reason_ == EBUSY) {
    return error("queue {} of {} is used by an AF_XDP socket of another program; end that program", queue, link.name);
  }
  if (reason_ != 0) {
    return error("queue {} of {} cannot be bound: {}", queue, link.name, std::strerror(reason_));
  }
  if (queue == 0) {
    xdp_options options{};
    socklen_t size = sizeof options;
    getsockopt(xsk_socket__fd(socket), SOL_XDP, XDP_OPTIONS, &options, &size);
    zero_copy_ = (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
    limits_.segments = !several_buffers ? 1 : zero_copy_ ? most_segments_zero_copy : most_segments_copied;
  }
  queues_.push_back(std::make_unique<XdpQueue>(pool, std::move(rings), socket, limits_, queue < senders_));
  return {};
}

std::uint64_t XdpBinding::lost() const {
  std::uint64_t sum = program_->unclaimed();
  for (const auto& queue : queues_) {
    sum += queue->lost();
  }
  return sum;
}

std::string XdpBinding::describe() const {
  const bool changed = std::ranges::any_of(offloads_, &OffloadGuard::changed);
  return fmt::format("{} mode, {}, {} queue(s) of {}, {}{}", program_->native() ? "native" : "generic",
                     zero_copy_ ? "without copying" : "copying", queues_.size(), limits_.ring,
                     limits_.segments > 1 ? "frames of several buffers" : "frames of one buffer",
                     changed ? "; offload settings were changed until the port closes" : "");
}

std::string XdpBinding::shortcoming() const {
  return program_->why_generic().empty()
             ? std::string()
             : fmt::format("its driver takes no XDP program ({}), so it runs in generic mode", program_->why_generic());
}

}  // namespace weir::device_internal
