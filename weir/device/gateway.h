#pragma once
// gateway: the node itself as a host of a network that one of its services makes.

#include <memory>
#include <vector>

#include <weir/base/counter.h>
#include <weir/device/device_spec.h>

namespace weir {

DeviceKind gateway_kind();

/// The end of a link that goes nowhere: what is sent to it is received from it, on the same queue and in order. So the
/// node's host part has a port, with addresses, on a network that no device of its own is on: what it sends there comes
/// in for the service that makes the network, and what that service sends there comes in for the host part. (A bridge
/// virtual interface, IRB or SVI elsewhere.) One queue a worker, so that nothing is shared. At most `room` frames are
/// on their way, beyond which no more are taken.
class GatewayDevice final : public Device {
 public:
  static constexpr std::size_t room = 1024;  ///< of each queue

  static Result<std::unique_ptr<Device>> make(const DeviceSpec& spec);
  ~GatewayDevice() override;

  Result<> open(const DeviceContext& context) override;
  /// Finite, and finished while nothing is on its way: a node does not go on for it alone.
  [[nodiscard]] DeviceTraits traits() const override;
  std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) override;
  std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) override;
  [[nodiscard]] bool finished(unsigned queue) const override;
  /// Now, while there is something: it comes before all that was captured later.
  [[nodiscard]] std::optional<Nanoseconds> next_time(unsigned queue) override;
  [[nodiscard]] int descriptor(unsigned queue) const override;

 private:
  struct Queue;  // of one worker

  GatewayDevice() = default;

  const Clock* clock_ = nullptr;
  FramePool* pool_ = nullptr;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace weir
