#pragma once
// What a port holds of its interface while that is there: sockets on all queues, the program, changed settings.

#include <memory>
#include <string>
#include <vector>

#include <weir/base/descriptor.h>
#include <weir/device/internal/offload_guard.h>
#include <weir/device/internal/xdp_program.h>
#include <weir/device/internal/xdp_queue.h>

namespace weir::device_internal {

struct XdpConfig {
  std::string interface;
  XdpMode mode = XdpMode::any;
  std::uint32_t ring = 0;         // entries; 0: by the size of the pool
  bool far_end_prepared = false;  // by hand: a veth's far end that cannot be reached
};

/// Destroying it leaves the interface as it was found.
class XdpBinding {
 public:
  static Result<std::unique_ptr<XdpBinding>> make(const XdpConfig& config, Netlink& netlink, const Link& link,
                                                  FramePool& pool);
  ~XdpBinding();
  XdpBinding(const XdpBinding&) = delete;
  XdpBinding& operator=(const XdpBinding&) = delete;

  [[nodiscard]] unsigned index() const { return index_; }
  [[nodiscard]] const std::vector<std::unique_ptr<XdpQueue>>& queues() const { return queues_; }
  /// The first so many of them send.
  [[nodiscard]] unsigned senders() const { return senders_; }
  /// Frames that the kernel dropped.
  [[nodiscard]] std::uint64_t lost() const;
  /// How the interface is used, in words.
  [[nodiscard]] std::string describe() const;
  /// Why it is not used as it could be, or empty.
  [[nodiscard]] std::string shortcoming() const;

 private:
  XdpBinding() = default;
  Result<> bind_queues(const Link& link, FramePool& pool, unsigned count);
  Result<> bind_queue(const Link& link, FramePool& pool, unsigned queue, bool several_buffers);
  Result<> try_queues(const Link& link, FramePool& pool, unsigned count, bool several_buffers);
  void release_queues();

  unsigned index_ = 0;
  unsigned senders_ = 0;
  XdpLimits limits_;
  bool zero_copy_ = false;
  int reason_ = 0;  // errno of the last socket that could not be bound

  // Made in this order, and undone in the other one.
  std::vector<OffloadGuard> offloads_;
  Descriptor promiscuous_;
  std::unique_ptr<XdpProgram> program_;
  xsk_umem* umem_ = nullptr;
  std::vector<std::unique_ptr<XdpQueue>> queues_;
};

}  // namespace weir::device_internal
