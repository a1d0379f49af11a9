#pragma once
// xdp: a network interface by AF_XDP sockets.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/base/descriptor.h>
#include <weir/device/device.h>
#include <weir/device/device_spec.h>

namespace weir {

namespace device_internal {
class Netlink;
class XdpBinding;
struct Link;
struct XdpConfig;
}  // namespace device_internal

/// The kind `xdp`, with all its options.
DeviceKind xdp_kind();

/// Whether there is an Ethernet interface of that name; the error says which there are. Changes nothing.
Result<> find_xdp_interface(const std::string& name);

/// Owns an Ethernet interface: an XDP program leads all its frames to AF_XDP sockets, one for each of its queues, and
/// the kernel's own stack gets none. Frames are received into the node's frame pool and sent from it. A worker polls
/// several sockets if the interface has more queues than the node has workers. The interface receives frames for all
/// addresses while the port is open.
///
/// The port is up while the interface is there, set up, and has a carrier; changes are logged. An interface that
/// disappears is bound again when one of its name returns.
///
/// Received frames are whole (checksums and VLAN tags), or `open` fails: offload settings that stand in the way are
/// changed, and undone when the port closes (offload_record.h if the process is killed). Frames longer than the MTU
/// allows are not taken.
class XdpDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> make(const DeviceSpec& spec);
  ~XdpDevice() override;

  Result<> open(const DeviceContext& context) override;
  [[nodiscard]] DeviceTraits traits() const override { return traits_; }
  [[nodiscard]] std::string interface() const override;
  /// The interface's, as they were when the port was opened.
  [[nodiscard]] std::optional<MacAddress> mac() const override { return mac_; }
  [[nodiscard]] std::optional<std::uint32_t> mtu() const override { return mtu_; }
  bool tend() override;
  std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) override;
  std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) override;
  [[nodiscard]] int descriptor(unsigned queue) const override;
  void want_wake_ups(unsigned queue, bool wanted) override;
  Result<> flush() override;
  /// `lost` are frames that the kernel dropped for lack of room, or of a socket on their queue.
  [[nodiscard]] DeviceCounters counters() const override;

 private:
  enum class State : std::uint8_t { absent, down, no_carrier, up };
  struct Gate;

  explicit XdpDevice(const device_internal::XdpConfig& config);
  Result<> bind(const device_internal::Link& link);
  Result<> wait_for_sockets(unsigned queue, const device_internal::XdpBinding& binding, bool wanted);
  void release();
  void look();
  void set_state(State state);
  [[nodiscard]] std::string name() const;

  std::unique_ptr<device_internal::XdpConfig> config_;
  DeviceTraits traits_;
  MacAddress mac_;
  std::uint32_t mtu_ = 0;
  FramePool* pool_ = nullptr;
  const Clock* clock_ = nullptr;

  // Of the thread that opened it.
  std::unique_ptr<device_internal::Netlink> netlink_;  // for questions
  std::unique_ptr<device_internal::Netlink> watch_;    // tells of changes
  State state_ = State::absent;
  Nanoseconds try_again_ = 0;  // on the system's clock: when to bind an interface that could not be bound
  std::string last_error_;     // of binding; logged once

  std::vector<std::unique_ptr<Gate>> receivers_;  // by queue
  std::vector<std::unique_ptr<Gate>> senders_;    // by worker
  std::atomic<std::uint32_t> longest_{0};         // bytes of a frame

  mutable std::mutex lock_;  // guards what follows
  std::unique_ptr<device_internal::XdpBinding> binding_;
  std::uint64_t lost_before_ = 0;  // by earlier bindings
};

}  // namespace weir
