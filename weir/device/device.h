#pragma once
// A source and sink of frames.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weir/base/clock.h>
#include <weir/base/error.h>
#include <weir/packet/address.h>
#include <weir/packet/frame_pool.h>

namespace weir {

/// What a device is given when it is opened.
struct DeviceContext {
  FramePool& pool;
  const Clock& clock;
  ManualClock* capture_clock;  ///< if not null, the device may move it to its packets' capture times
  unsigned workers;            ///< 1 or more; worker i uses queue i of a device that has so many, else queue 0
  std::uint64_t seed;
};

/// What a device is able to do; fixed once it is open.
struct DeviceTraits {
  unsigned queues = 1;        ///< receive queues, at most DeviceContext::workers
  bool symmetric = false;     ///< both directions of a flow arrive on the same queue
  bool finite = false;        ///< `finished` will be true some day
  bool waits = false;         ///< frames wait until they are asked for, as in a file: reading late loses nothing
  bool checksums = false;     ///< takes frames with Offload::needs_checksum
  bool segmentation = false;  ///< takes frames with gso_size
};

struct DeviceCounters {
  std::uint64_t lost = 0;       ///< frames the device had to throw away before the node took them
  std::uint64_t digest = 0;     ///< of the frames sent, where the device computes one
  std::uint64_t bad_input = 0;  ///< records that could not be read
};

/// One device, opened once and closed by its destructor. `receive` and `transmit` of one queue are for one thread at a
/// time; different queues may be used at once. Everything else is for the thread that opened it.
class Device {
 public:
  virtual ~Device() = default;

  /// Acquires what the device needs. An error leaves everything as it was found.
  virtual Result<> open(const DeviceContext& context) = 0;

  [[nodiscard]] virtual DeviceTraits traits() const = 0;

  /// The Ethernet address that this end of the link has, if the device has one of its own; fixed once it is open.
  [[nodiscard]] virtual std::optional<MacAddress> mac() const { return std::nullopt; }

  /// The kernel's network interface that the device is an end of; empty if it is of none. Fixed once it is open.
  [[nodiscard]] virtual std::string interface() const { return {}; }

  /// Bytes of the longest L3 packet that its link takes, if the device knows; fixed once it is open.
  [[nodiscard]] virtual std::optional<std::uint32_t> mtu() const { return std::nullopt; }

  /// Looks after what changes from outside, such as an interface that disappears and returns; whether frames can pass
  /// now. The node calls it about every millisecond while it runs, on the thread that opened the device; it may take a
  /// while.
  virtual bool tend() { return true; }

  /// Fills `out` with up to out.size() packets from `queue` and returns how many. The packets come from `frames`, have
  /// data, segment, length, next, timestamp and offload set, and are the caller's. Never blocks.
  virtual std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) = 0;

  /// Takes packets from the front of `packets` and returns how many; they are the device's and given back to `frames`
  /// in time. The rest stay the caller's. Never blocks. Any queue below DeviceContext::workers.
  virtual std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) = 0;

  /// Whether nothing more will ever be received on `queue`.
  [[nodiscard]] virtual bool finished(unsigned queue) const { return (void)queue, false; }

  /// When the next packet of `queue` was captured; nothing for devices that are not captures, or at the end. The thread
  /// that receives.
  [[nodiscard]] virtual std::optional<Nanoseconds> next_time(unsigned queue) { return (void)queue, std::nullopt; }

  /// A descriptor that is readable when `queue` has something; -1 if it must be polled.
  [[nodiscard]] virtual int descriptor(unsigned queue) const { return (void)queue, -1; }

  /// Whether somebody waits for `descriptor`: while nobody does it need not become readable, which may save the kernel
  /// work for each frame. Wanted until it is said otherwise. The thread that receives.
  virtual void want_wake_ups(unsigned queue, bool wanted) { (void)queue, (void)wanted; }

  /// Writes out what is buffered. Called at the end of a run and on demand.
  virtual Result<> flush() { return {}; }

  /// Any thread.
  [[nodiscard]] virtual DeviceCounters counters() const { return {}; }
};

}  // namespace weir
