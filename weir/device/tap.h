#pragma once
// TAP: a network interface of this machine whose other end is the node.

#include <memory>
#include <string>
#include <vector>

#include <weir/base/counter.h>
#include <weir/base/descriptor.h>
#include <weir/device/device_spec.h>

namespace weir {

DeviceKind tap_kind();

/// An interface that the node makes (it goes with the node), or one that was made before with `ip tuntap add`. One
/// queue a worker. With offloads the kernel hands over frames up to 64 KiB whose checksum and segmentation are left to
/// whoever sends them on (virtio 1.2, section 5.1.6), and takes such frames. An interface that somebody removes does
/// not come back: its port is down until the node is started again.
class TapDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> make(const DeviceSpec& spec);
  ~TapDevice() override;

  Result<> open(const DeviceContext& context) override;
  [[nodiscard]] DeviceTraits traits() const override;
  [[nodiscard]] std::string interface() const override { return name_; }
  // No mac(): the interface's address is that of the kernel, at the other end.
  [[nodiscard]] std::optional<std::uint32_t> mtu() const override;
  bool tend() override;
  std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) override;
  std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) override;
  [[nodiscard]] int descriptor(unsigned queue) const override;
  [[nodiscard]] DeviceCounters counters() const override;

 private:
  struct Queue;  // of one worker
  struct Before {
    short flags;
    int mtu;
  };

  TapDevice(std::string name, unsigned mtu, bool offload);
  Result<> open_queue(bool multi_queue);
  Result<> bring_up();

  std::string name_;
  unsigned mtu_;  // 0: as it is
  bool offload_;
  const Clock* clock_ = nullptr;
  FramePool* pool_ = nullptr;
  std::vector<std::unique_ptr<Queue>> queues_;
  Descriptor control_;      // for questions about the interface
  bool was_there_ = false;  // before this device was opened
  bool removed_ = false;
  Before before_{};
};

}  // namespace weir
