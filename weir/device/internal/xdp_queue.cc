#include <weir/device/internal/xdp_queue.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <linux/if_xdp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// Newer than the headers of Debian 12 (Linux 6.6): another descriptor of the same frame follows.
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1U << 0U)
#endif

namespace weir::device_internal {

namespace {

unsigned segments_of(const Packet& packet) {
  unsigned count = 0;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    count += segment->segment != 0 ? 1 : 0;  // the kernel takes no empty ones
  }
  return count;
}

}  // namespace

XdpQueue::XdpQueue(FramePool& pool, std::unique_ptr<XdpRings> rings, xsk_socket* socket, XdpLimits limits, bool sends)
    : pool_(pool),
      rings_(std::move(rings)),
      socket_(socket),
      limits_(limits),
      sends_(sends),
      lent_(pool.frames()),
      sent_(limits.ring),
      unsent_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  // Frames under way count against the socket's send buffer, which by default holds fewer than the ring. If it cannot
  // be had, the ring just drains more slowly.
  const int bytes = static_cast<int>(std::size_t{limits.ring} * chunk);
  (void)setsockopt(descriptor(), SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
  PacketCache frames(pool_);
  fill(frames);
}

XdpQueue::~XdpQueue() {
  xsk_socket__delete(socket_);  // from here on the kernel writes to no frame
  PacketCache frames(pool_);
  for (std::uint32_t i = 0; lent_count_ != 0; ++i) {
    if (lent_[i]) {
      frames.free(&pool_.packet(i));
      --lent_count_;
    }
  }
  frames.free(first_);
  while (Packet* packet = sent_.take_any()) {
    frames.free(packet);
  }
}

// Tops up what the kernel has to receive into. What the pool cannot give now, it gets with a later call.
void XdpQueue::fill(PacketCache& frames) {
  std::array<Packet*, 128> fresh;
  xsk_ring_prod& ring = rings_->fill;
  while (lent_count_ < limits_.ring) {
    const std::size_t wanted = std::min<std::size_t>(fresh.size(), limits_.ring - lent_count_);
    const std::size_t got = frames.allocate_many(std::span(fresh).first(wanted));
    std::uint32_t at = 0;
    // There is room: no more is lent than the ring has entries.
    if (got == 0 || xsk_ring_prod__reserve(&ring, static_cast<std::uint32_t>(got), &at) == 0) {
      frames.free_many(std::span(fresh).first(got));
      return;
    }
    for (std::size_t i = 0; i < got; ++i) {
      const std::uint32_t index = pool_.index(*fresh[i]);
      *xsk_ring_prod__fill_addr(&ring, at++) = index * chunk;
      lent_[index] = true;
    }
    lent_count_ += got;
    xsk_ring_prod__submit(&ring, static_cast<std::uint32_t>(got));
  }
}

std::size_t XdpQueue::receive(std::span<Packet*> out, PacketCache& frames, const Clock& clock) {
  xsk_ring_cons& ring = rings_->receive;
  std::size_t done = 0;
  std::uint32_t taken = 0;
  while (done < out.size()) {
    std::uint32_t at = 0;
    const std::uint32_t count = xsk_ring_cons__peek(&ring, static_cast<std::uint32_t>(out.size() - done), &at);
    if (count == 0) {
      break;
    }
    const Nanoseconds now = clock.now();  // not asked when there is nothing
    for (std::uint32_t i = 0; i < count; ++i) {
      const xdp_desc& descriptor = *xsk_ring_cons__rx_desc(&ring, at + i);
      Packet* packet = packet_at(descriptor.addr);
      lent_[pool_.index(*packet)] = false;
      packet->data = pool_.memory().bytes.data() + descriptor.addr;
      packet->segment = static_cast<std::uint16_t>(descriptor.len);
      packet->length = descriptor.len;
      packet->timestamp = now;
      if (first_ == nullptr) {
        first_ = packet;
      } else {
        last_->next = packet;
        first_->length += descriptor.len;
      }
      last_ = packet;
      if ((descriptor.options & XDP_PKT_CONTD) == 0) {
        out[done++] = first_;
        first_ = nullptr;
      }
    }
    taken += count;
    xsk_ring_cons__release(&ring, count);
  }
  lent_count_ -= taken;
  if (lent_count_ < limits_.ring) {
    fill(frames);
  }
  if (xsk_ring_prod__needs_wakeup(&rings_->fill) != 0) {
    (void)recvfrom(descriptor(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  }
  if (under_way_.load(std::memory_order_relaxed)) {
    const std::unique_lock lock(sending_, std::try_to_lock);
    if (lock) {
      reap(frames);
      kick();
    }
  }
  return done;
}

// The frame in as few buffers as it needs; nullptr if there are none.
Packet* XdpQueue::repack(const Packet& packet, PacketCache& frames) const {
  Packet* first = frames.allocate();
  Packet* to = first;
  if (first == nullptr) {
    return nullptr;
  }
  const auto begin = [&](Packet& segment) { segment.data = pool_.buffer(pool_.index(segment)); };
  begin(*first);
  first->length = packet.length;
  for (const Packet* from = &packet; from != nullptr; from = from->next) {
    for (unsigned done = 0; done < from->segment;) {
      if (to->segment == chunk) {
        to->next = frames.allocate();
        to = to->next;
        if (to == nullptr) {
          frames.free(first);
          return nullptr;
        }
        begin(*to);
      }
      const auto part = static_cast<unsigned>(std::min<std::uint64_t>(from->segment - done, chunk - to->segment));
      std::memcpy(to->data + to->segment, from->data + done, part);
      to->segment = static_cast<std::uint16_t>(to->segment + part);
      done += part;
    }
  }
  return first;
}

void XdpQueue::submit(Packet* packet, unsigned segments, PacketCache& frames) {
  xsk_ring_prod& ring = rings_->transmit;
  std::uint32_t at = 0;
  // There is room: no more is under way than the ring has entries.
  (void)xsk_ring_prod__reserve(&ring, segments, &at);
  unsigned left = segments;
  while (packet != nullptr) {
    Packet* next = packet->next;
    packet->next = nullptr;  // each segment is given back by itself
    if (packet->segment != 0) {
      const auto address = static_cast<std::uint64_t>(packet->data - pool_.memory().bytes.data());
      --left;
      *xsk_ring_prod__tx_desc(&ring, at++) = {address, packet->segment, left != 0 ? XDP_PKT_CONTD : 0};
      sent_.add(address, packet);
    } else {
      frames.free(packet);
    }
    packet = next;
  }
  xsk_ring_prod__submit(&ring, segments);
}

std::size_t XdpQueue::transmit(std::span<Packet*> packets, PacketCache& frames, std::uint32_t longest) {
  const std::lock_guard lock(sending_);
  reap(frames);
  std::size_t done = 0;
  std::size_t end = packets.size();
  while (done < end) {
    Packet*& packet = packets[done];
    unsigned segments = segments_of(*packet);
    if (segments > limits_.segments && packet->length <= limits_.segments * chunk) {
      if (Packet* packed = repack(*packet, frames)) {
        frames.free(packet);
        packet = packed;
        segments = segments_of(*packed);
      }
    }
    if (segments == 0 || segments > limits_.segments || packet->length > longest) [[unlikely]] {
      const auto from = packets.begin() + static_cast<std::ptrdiff_t>(done);
      std::rotate(from, from + 1, packets.end());
      --end;
      continue;
    }
    if (segments > sent_.room()) {
      break;
    }
    submit(packet, segments, frames);
    ++done;
  }
  kick();
  return done;
}

void XdpQueue::reap(PacketCache& frames) {
  xsk_ring_cons& ring = rings_->completion;
  std::uint32_t at = 0;
  const std::uint32_t count = xsk_ring_cons__peek(&ring, limits_.ring, &at);
  for (std::uint32_t i = 0; i < count; ++i) {
    frames.free(sent_.take(*xsk_ring_cons__comp_addr(&ring, at + i)));
  }
  if (count != 0) {
    xsk_ring_cons__release(&ring, count);
  }
}

// Without zero copy, one call sends a few frames (16 to 32, by kernel): it goes on as long as that makes progress. It
// makes none when the interface's own queue is full; then `receive` tries again, and no worker sleeps until it
// succeeds.
void XdpQueue::kick() {
  xsk_ring_prod& ring = rings_->transmit;
  const auto taken = [&] { return __atomic_load_n(ring.consumer, __ATOMIC_ACQUIRE); };
  const std::uint32_t all = *ring.producer;
  std::uint32_t before = taken();
  while (before != all && xsk_ring_prod__needs_wakeup(&ring) != 0) {
    (void)sendto(descriptor(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    const std::uint32_t after = taken();
    if (after == before) {
      break;
    }
    before = after;
  }
  under_way_.store(sent_.size() != 0, std::memory_order_relaxed);
  const bool waits = before != all && xsk_ring_prod__needs_wakeup(&ring) != 0;
  if (waits != signalled_) {
    signalled_ = waits;
    std::uint64_t count = 1;
    [[maybe_unused]] const ssize_t size =
        waits ? write(unsent_.get(), &count, sizeof count) : read(unsent_.get(), &count, sizeof count);
  }
}

void XdpQueue::flush() {
  const std::lock_guard lock(sending_);
  if (sends_) {
    kick();
  }
}

std::uint64_t XdpQueue::lost() const {
  xdp_statistics statistics{};
  socklen_t size = sizeof statistics;
  if (getsockopt(descriptor(), SOL_XDP, XDP_STATISTICS, &statistics, &size) != 0) {
    return 0;
  }
  return statistics.rx_dropped + statistics.rx_ring_full;
}

}  // namespace weir::device_internal
