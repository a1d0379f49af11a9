#include <weir/device/gateway.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/eventfd.h>

#include <weir/base/descriptor.h>

namespace weir {

struct alignas(64) GatewayDevice::Queue {
  std::array<Packet*, room> ring;
  std::size_t first = 0;
  std::size_t count = 0;
  Descriptor filled;  ///< an eventfd, readable while there is something
};

DeviceKind gateway_kind() {
  return {.name = "gateway",
          .help = "the node itself as the router of a virtual switch's network; the port needs a mac and addresses",
          .argument = "",
          .options = {},
          .example = "gateway",
          .make = GatewayDevice::make};
}

Result<std::unique_ptr<Device>> GatewayDevice::make(const DeviceSpec& /*spec*/) {
  return std::unique_ptr<Device>(new GatewayDevice());
}

GatewayDevice::~GatewayDevice() {
  if (pool_ == nullptr) {
    return;
  }
  PacketCache frames(*pool_);
  for (const auto& queue : queues_) {
    for (; queue->count != 0; --queue->count) {
      frames.free(queue->ring[queue->first++ % room]);
    }
  }
}

Result<> GatewayDevice::open(const DeviceContext& context) {
  clock_ = &context.clock;
  pool_ = &context.pool;
  for (unsigned i = 0; i < context.workers; ++i) {
    auto queue = std::make_unique<Queue>();
    queue->filled.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!queue->filled) {
      return error("cannot make an event descriptor: {}; allow more open files (ulimit -n)", std::strerror(errno));
    }
    queues_.push_back(std::move(queue));
  }
  return {};
}

DeviceTraits GatewayDevice::traits() const {
  return {.queues = static_cast<unsigned>(queues_.size()),
          .symmetric = true,
          .finite = true,
          .waits = true,
          .checksums = true,
          .segmentation = true};
}

std::size_t GatewayDevice::receive(unsigned queue, std::span<Packet*> out, PacketCache& /*frames*/) {
  Queue& from = *queues_[queue];
  const std::size_t count = std::min(out.size(), from.count);
  if (count == 0) {
    return 0;
  }
  const Nanoseconds now = clock_->now();
  for (Packet*& packet : out.first(count)) {
    packet = from.ring[from.first];
    from.first = (from.first + 1) % room;
    // Nothing of the way that it has behind it.
    packet->timestamp = now;
    packet->vni = 0;
    packet->tunnel = 0;
    packet->waits = 0;
    packet->egress = 0;
    packet->offload.flags &= static_cast<std::uint8_t>(~Offload::has_ports);
  }
  from.count -= count;
  if (from.count == 0) {
    eventfd_t ignored = 0;
    ::eventfd_read(from.filled.get(), &ignored);
  }
  return count;
}

std::size_t GatewayDevice::transmit(unsigned queue, std::span<Packet*> packets, PacketCache& /*frames*/) {
  Queue& to = *queues_[queue];
  const std::size_t count = std::min(packets.size(), room - to.count);
  if (to.count == 0 && count != 0) {
    ::eventfd_write(to.filled.get(), 1);
  }
  for (Packet* packet : packets.first(count)) {
    to.ring[(to.first + to.count++) % room] = packet;
  }
  return count;
}

bool GatewayDevice::finished(unsigned queue) const { return queue >= queues_.size() || queues_[queue]->count == 0; }

std::optional<Nanoseconds> GatewayDevice::next_time(unsigned queue) {
  return finished(queue) ? std::nullopt : std::optional(clock_->now());
}

int GatewayDevice::descriptor(unsigned queue) const {
  return queue < queues_.size() ? queues_[queue]->filled.get() : -1;
}

}  // namespace weir
