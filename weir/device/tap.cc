#include <weir/device/tap.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <weir/base/log.h>
#include <weir/device/internal/option_reader.h>
#include <weir/packet/segment.h>

namespace weir {

using device_internal::OptionReader;

namespace {

// Newer than Debian 12's headers.
constexpr unsigned uso4 = 0x20;
constexpr unsigned uso6 = 0x40;

// The longest frame: 64 KiB of IP and the Ethernet header with tags.
constexpr std::size_t longest = 65'536 + 64;
constexpr std::size_t most_segments = longest / FramePool::segment_bytes + 1;

// virtio_net_hdr_v1 (virtio 1.2, section 5.1.6), in this machine's byte order; the kernel's header is not for C++.
struct VirtioHeader {
  std::uint8_t flags;
  std::uint8_t gso_type;
  std::uint16_t header_length;
  std::uint16_t gso_size;
  std::uint16_t checksum_start;
  std::uint16_t checksum_offset;
  std::uint16_t buffers;
};
static_assert(sizeof(VirtioHeader) == 12);

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

}  // namespace

DeviceKind tap_kind() {
  return {
      .name = "tap",
      .help = "a network interface of this machine, made by the node or by 'ip tuntap add'",
      .argument = "name of the interface, at most 15 characters",
      .options =
          {
              {"mtu", "longest IP packet, 68 to 65521 bytes (as it is; 1500 for a new interface)"},
              {"offload", "on: frames may await checksum and segmentation, which is faster; off (on)"},
          },
      .example = "tap:tap0,mtu=1500",
      .make = TapDevice::make,
  };
}

// The frames that the next read fills: a longest one fits. What a read uses is replaced before the next.
struct alignas(64) TapDevice::Queue {
  Descriptor file;
  std::array<Packet*, most_segments> spare{};
  std::array<iovec, most_segments + 1> read_into{};
  VirtioHeader read_header{};
  std::size_t filled = 0;  // spare frames there are
  std::vector<iovec> write_from;
};

TapDevice::TapDevice(std::string name, unsigned mtu, bool offload)
    : name_(std::move(name)), mtu_(mtu), offload_(offload) {}

TapDevice::~TapDevice() {
  for (const auto& queue : queues_) {
    PacketCache cache(*pool_);
    for (Packet* packet : std::span(queue->spare).first(queue->filled)) {
      cache.free(packet);
    }
  }
  if (was_there_) {
    ifreq request = request_for(name_);
    request.ifr_flags = before_.flags;
    ioctl(control_.get(), SIOCSIFFLAGS, &request);
    request.ifr_mtu = before_.mtu;
    ioctl(control_.get(), SIOCSIFMTU, &request);
  }
}

Result<std::unique_ptr<Device>> TapDevice::make(const DeviceSpec& spec) {
  if (spec.argument.empty()) {
    return error("tap needs the name of an interface; write tap:tap0");
  }
  if (spec.argument.size() >= IFNAMSIZ) {
    return error("the interface name '{}' is too long; it may have {} characters", spec.argument, IFNAMSIZ - 1);
  }
  if (spec.argument.find_first_of("/ %") != std::string::npos || spec.argument == "." || spec.argument == "..") {
    return error("'{}' cannot be the name of an interface; take letters and digits", spec.argument);
  }
  unsigned mtu = 0;
  bool offload = true;
  OptionReader read(spec);
  read.number("mtu", mtu, 68, 65'521);
  read.choice("offload", offload, {{"on", true}, {"off", false}});
  if (const auto result = read.result(); !result) {
    return std::unexpected(result.error());
  }
  return std::unique_ptr<Device>(new TapDevice(spec.argument, mtu, offload));
}

Result<> TapDevice::open(const DeviceContext& context) {
  clock_ = &context.clock;
  pool_ = &context.pool;
  control_.reset(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control_) {
    return error("no socket: {}", std::strerror(errno));
  }
  ifreq request = request_for(name_);
  if (ioctl(control_.get(), SIOCGIFFLAGS, &request) == 0) {
    before_.flags = request.ifr_flags;
    if (ioctl(control_.get(), SIOCGIFMTU, &request) == 0) {
      before_.mtu = request.ifr_mtu;
      was_there_ = true;
    }
  }
  for (unsigned i = 0; i < context.workers; ++i) {
    if (auto opened = open_queue(context.workers > 1); !opened) {
      return opened;
    }
  }
  return bring_up();
}

Result<> TapDevice::open_queue(bool multi_queue) {
  auto queue = std::make_unique<Queue>();
  queue->file.reset(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!queue->file) {
    return error("cannot open /dev/net/tun: {}; {}", std::strerror(errno),
                 errno == ENOENT ? "load the module with 'modprobe tun'" : "run as root");
  }
  ifreq request = request_for(name_);
  request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (multi_queue ? IFF_MULTI_QUEUE : 0));
  if (ioctl(queue->file.get(), TUNSETIFF, &request) != 0) {
    const int why = errno;
    const char* remedy =
        why == EPERM    ? "run as root, or let root make it: ip tuntap add NAME mode tap user YOU vnet_hdr"
        : why == EBUSY  ? "another program uses it; end that, or take another name"
        : why == EINVAL ? "an interface of this name is no tap, or was made with another number of queues (a node "
                          "with several workers needs 'multi_queue'); remove it or take another name"
                        : "take another name";
    return error("cannot attach to the tap interface '{}': {}; {}", name_, std::strerror(why), remedy);
  }
  const int header = sizeof(VirtioHeader);
  const unsigned offloads = offload_ ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN : 0U;
  if (ioctl(queue->file.get(), TUNSETVNETHDRSZ, &header) != 0 ||
      // A kernel before 6.2 knows no USO.
      (ioctl(queue->file.get(), TUNSETOFFLOAD, offloads | (offload_ ? uso4 | uso6 : 0U)) != 0 &&
       ioctl(queue->file.get(), TUNSETOFFLOAD, offloads) != 0)) {
    return error("the tap interface '{}' takes no offload settings: {}; try offload=off", name_, std::strerror(errno));
  }
  queue->read_into[0] = {&queue->read_header, sizeof queue->read_header};
  queues_.push_back(std::move(queue));
  return {};
}

Result<> TapDevice::bring_up() {
  ifreq request = request_for(name_);
  if (mtu_ != 0) {
    request.ifr_mtu = static_cast<int>(mtu_);
    if (ioctl(control_.get(), SIOCSIFMTU, &request) != 0) {
      return error("cannot set the MTU of '{}' to {}: {}; leave mtu= out, or set it with 'ip link'", name_, mtu_,
                   std::strerror(errno));
    }
  }
  if (ioctl(control_.get(), SIOCGIFFLAGS, &request) != 0) {
    return error("cannot read the state of '{}': {}", name_, std::strerror(errno));
  }
  if ((request.ifr_flags & IFF_UP) == 0) {
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (ioctl(control_.get(), SIOCSIFFLAGS, &request) != 0) {
      return error("cannot bring '{}' up: {}; run as root or let root do it: ip link set {} up", name_,
                   std::strerror(errno), name_);
    }
  }
  return {};
}

std::optional<std::uint32_t> TapDevice::mtu() const {
  return mtu_ != 0 ? std::optional<std::uint32_t>(mtu_) : std::nullopt;
}

DeviceTraits TapDevice::traits() const {
  return {.queues = static_cast<unsigned>(queues_.size()), .checksums = offload_, .segmentation = offload_};
}

bool TapDevice::tend() {
  if (removed_) {
    return false;
  }
  ifreq request{};
  removed_ = ioctl(queues_.front()->file.get(), TUNGETIFF, &request) != 0;
  if (removed_) {
    log::warn("tap:{} was removed: its port is down until the node is started again", name_);
  }
  return !removed_;
}

int TapDevice::descriptor(unsigned queue) const { return queue < queues_.size() ? queues_[queue]->file.get() : -1; }

std::size_t TapDevice::receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) {
  Queue& own = *queues_[queue];
  const Nanoseconds now = clock_->now();
  std::size_t count = 0;
  for (; count < out.size(); ++count) {
    const std::size_t had = own.filled;
    own.filled += frames.allocate_many(std::span(own.spare).subspan(had));
    for (std::size_t i = had; i < own.filled; ++i) {
      own.read_into[i + 1] = {own.spare[i]->data, FramePool::segment_bytes};
    }
    if (own.filled != most_segments) {
      break;  // a frame might not fit: it waits in the kernel until there are buffers
    }
    const ssize_t got = readv(own.file.get(), own.read_into.data(), static_cast<int>(most_segments + 1));
    if (got <= static_cast<ssize_t>(sizeof own.read_header)) {
      break;
    }
    // The frame takes spare frames from the front.
    const auto length = static_cast<std::uint32_t>(static_cast<std::size_t>(got) - sizeof own.read_header);
    std::uint32_t left = length;
    std::size_t used = 0;
    Packet** link = &out[count];
    for (; left != 0; ++used) {
      Packet* part = own.spare[used];
      part->segment = static_cast<std::uint16_t>(std::min(left, FramePool::segment_bytes));
      part->length = part->segment;
      left -= part->segment;
      *link = part;
      link = &part->next;
    }
    // As many of the last as there are move to the front; the others stay.
    const std::size_t moved = std::min(used, own.filled - used);
    for (std::size_t i = 0; i < moved; ++i) {
      own.spare[i] = own.spare[own.filled - moved + i];
      own.read_into[i + 1] = own.read_into[own.filled - moved + i + 1];
    }
    own.filled -= used;

    Packet& packet = *out[count];
    packet.length = length;
    packet.timestamp = now;
    const VirtioHeader& header = own.read_header;
    if (header.flags != 0 || header.gso_type != gso::none) {
      packet.offload.flags = header.flags & (Offload::needs_checksum | Offload::data_valid);
      packet.offload.gso_type = header.gso_type;
      packet.offload.header_length = header.header_length;
      packet.offload.gso_size = header.gso_type != gso::none ? header.gso_size : std::uint16_t{0};
      packet.offload.checksum_start = header.checksum_start;
      packet.offload.checksum_offset = header.checksum_offset;
    }
  }
  return count;
}

std::size_t TapDevice::transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) {
  Queue& own = *queues_[queue];
  std::size_t sent = 0;
  for (; sent < packets.size(); ++sent) {
    const Packet& packet = *packets[sent];
    VirtioHeader header{};
    header.flags = packet.offload.flags & (Offload::needs_checksum | Offload::data_valid);
    if ((header.flags & Offload::needs_checksum) != 0) {
      header.checksum_start = packet.offload.checksum_start;
      header.checksum_offset = packet.offload.checksum_offset;
    }
    if (packet.offload.gso_size != 0) {
      header.gso_type = packet.offload.gso_type;
      header.gso_size = packet.offload.gso_size;
      header.header_length = packet.offload.header_length;
    }
    own.write_from.assign(1, {&header, sizeof header});
    for (const Packet* part = &packet; part != nullptr; part = part->next) {
      own.write_from.push_back({part->data, part->segment});
    }
    if (writev(own.file.get(), own.write_from.data(), static_cast<int>(own.write_from.size())) < 0) {
      break;
    }
  }
  frames.free_many(packets.first(sent));
  return sent;
}

DeviceCounters TapDevice::counters() const {
  DeviceCounters counters;
  // What the kernel could not queue for the node. The file is not there while the interface is in another namespace.
  std::ifstream file("/sys/class/net/" + name_ + "/statistics/tx_dropped");
  file >> counters.lost;
  return counters;
}

}  // namespace weir
