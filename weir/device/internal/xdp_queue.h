#pragma once
// One queue of an interface: an AF_XDP socket with its four rings (kernel documentation, networking/af_xdp.rst).

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <xdp/xsk.h>

#include <weir/base/clock.h>
#include <weir/base/descriptor.h>
#include <weir/base/error.h>
#include <weir/device/internal/sent_frames.h>
#include <weir/packet/frame_pool.h>

namespace weir::device_internal {

/// The rings of one socket, as libxdp has them.
struct XdpRings {
  xsk_ring_prod fill{};
  xsk_ring_cons completion{};
  xsk_ring_cons receive{};
  xsk_ring_prod transmit{};
};

/// What one socket can do; the same for all sockets of an interface.
struct XdpLimits {
  unsigned ring = 0;      ///< entries of each ring
  unsigned segments = 1;  ///< buffers of one frame
};

/// The UMEM is the node's frame pool, so an address is an offset in it: a received buffer tells its packet, and a
/// packet of any port can be sent as it is. The queue owns the frames that the kernel holds for it, and gives them back
/// to the pool when it is destroyed.
class XdpQueue {
 public:
  /// `socket` is bound and has `rings`; it sends if `sends`. Gives the kernel its first frames to receive into.
  /// An interface may have more queues that receive than send.
  XdpQueue(FramePool& pool, std::unique_ptr<XdpRings> rings, xsk_socket* socket, XdpLimits limits, bool sends);
  ~XdpQueue();
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;

  [[nodiscard]] int descriptor() const { return xsk_socket__fd(socket_); }
  /// Readable while something waits to be sent that the kernel did not take: `receive` is to be called, and tries
  /// again.
  [[nodiscard]] int unsent() const { return unsent_.get(); }
  [[nodiscard]] bool sends() const { return sends_; }

  /// As Device::receive; also goes on with what could not be sent at once. One thread at a time.
  std::size_t receive(std::span<Packet*> out, PacketCache& frames, const Clock& clock);

  /// As Device::transmit; frames longer than `longest` or of too many segments are moved to the end of `packets`, so
  /// that they stay the caller's and hold up nothing. Any thread.
  std::size_t transmit(std::span<Packet*> packets, PacketCache& frames, std::uint32_t longest);

  /// Sends as much of what waits as the kernel takes.
  void flush();

  /// Received frames that the kernel dropped for lack of room.
  [[nodiscard]] std::uint64_t lost() const;

 private:
  void fill(PacketCache& frames);
  Packet* packet_at(std::uint64_t address) { return &pool_.packet(static_cast<std::uint32_t>(address / chunk)); }
  Packet* repack(const Packet& packet, PacketCache& frames) const;
  void submit(Packet* packet, unsigned segments, PacketCache& frames);
  void reap(PacketCache& frames);
  void kick();

  static constexpr std::uint64_t chunk = FramePool::buffer_bytes;

  FramePool& pool_;
  std::unique_ptr<XdpRings> rings_;
  xsk_socket* socket_;
  XdpLimits limits_;
  bool sends_;

  // Of the receiving thread.
  std::vector<bool> lent_;  // by frame: the kernel has it to receive into
  std::size_t lent_count_ = 0;
  Packet* first_ = nullptr;  // of a frame whose last segment has not come yet
  Packet* last_ = nullptr;

  std::mutex sending_;  // guards what follows, the transmit and the completion ring
  SentFrames sent_;
  std::atomic<bool> under_way_{false};  // sent_ is not empty
  Descriptor unsent_;                   // an eventfd
  bool signalled_ = false;              // unsent_ is readable
};

}  // namespace weir::device_internal
