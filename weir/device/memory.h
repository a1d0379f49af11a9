#pragma once
// memory: a generator and a sink of frames, for benchmarks and tests.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <weir/base/counter.h>
#include <weir/device/device.h>
#include <weir/device/device_spec.h>

namespace weir {

namespace device_internal {
struct MemoryConfig;
}

/// The kind `memory`, with all its options.
DeviceKind memory_kind();

/// As a sink it hashes every byte of every frame (frame_digest), counts and frees it. `memory:` alone is only a sink;
/// with any option of the generator it makes frames as well: headers, addresses, payload and checksums are written anew
/// for every one.
///
/// Flow f of `flows` has the number f in the last four bytes of its addresses and in its ports (`vary=`): flow f's
/// source address is src + f, its destination dst + f, and its source port src_port + f, which carries into the
/// destination port. With several workers there is one queue for each, and flow f belongs to queue f % queues; a Zipf
/// order holds within each queue. The orders repeat: sequential after all flows, Zipf after 2^20 packets of a queue.
///
/// With a rate, packets arrive evenly from when a queue is first asked, wait in a queue of `queue=` packets (for each
/// worker), and are lost and counted when that is full. Losses count towards `count=` but skip no flow.
/// Without a rate, the timestamps of packets are the node's clock as it was up to eight calls of `receive` ago.
class MemoryDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> make(const DeviceSpec& spec);
  ~MemoryDevice() override;

  Result<> open(const DeviceContext& context) override;
  [[nodiscard]] DeviceTraits traits() const override { return traits_; }
  std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) override;
  std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) override;
  /// A device that generates nothing, or no more, is finished once all injected frames were received.
  [[nodiscard]] bool finished(unsigned queue) const override;
  [[nodiscard]] DeviceCounters counters() const override;

  /// `frame` is received on `queue` before anything else that is still to come. If the node's time is that of captures,
  /// it goes on to `at` then, unless it is later already. After `open`; any thread.
  void inject(std::vector<std::uint8_t> frame, unsigned queue = 0, Nanoseconds at = 0);

  /// What the sink took. Any thread.
  [[nodiscard]] std::uint64_t packets() const;
  [[nodiscard]] std::uint64_t bytes() const;

  /// The last frames that the sink took, as many as `record=` says, oldest first. Any thread.
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> recorded() const;

 private:
  struct Source;  // of one receive queue
  struct Sink;    // of one worker

  explicit MemoryDevice(const device_internal::MemoryConfig& config);
  std::size_t receive_injected(Source& source, std::span<Packet*> out, PacketCache& frames);
  void record(const Packet& packet);

  std::unique_ptr<device_internal::MemoryConfig> config_;
  DeviceTraits traits_;
  const Clock* clock_ = nullptr;
  ManualClock* capture_clock_ = nullptr;
  unsigned stamp_every_ = 1;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  mutable std::mutex recorded_lock_;  // guards recorded_
  std::deque<std::vector<std::uint8_t>> recorded_;
};

}  // namespace weir
