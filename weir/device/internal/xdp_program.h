#pragma once
// The XDP program of a port: loaded, attached to its interface, and leading to its sockets.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <weir/base/error.h>
#include <weir/device/internal/netlink.h>

struct bpf_object;

namespace weir::device_internal {

/// The compiled xdp_port.bpf.c.
extern const std::span<const unsigned char> xdp_port_object;

enum class XdpMode : std::uint8_t {
  any,      ///< native if the driver can, else generic
  native,   ///< in the driver
  generic,  ///< behind it, on frames the kernel has made packets of
};

/// Attached while it lives; the kernel detaches it when the process ends, however that happens (bpf_link).
class XdpProgram {
 public:
  static Result<XdpProgram> attach(const Link& link, unsigned queues, XdpMode mode);
  XdpProgram(XdpProgram&& other) noexcept;
  XdpProgram& operator=(XdpProgram&& other) = delete;
  ~XdpProgram();

  /// Frames of `queue` go to `socket` from now on.
  Result<> claim(unsigned queue, int socket);

  [[nodiscard]] bool native() const { return native_; }
  /// Whether it takes frames of more than one buffer.
  [[nodiscard]] bool frags() const { return frags_; }
  /// Why it is not native, if that was tried.
  [[nodiscard]] const std::string& why_generic() const { return why_generic_; }
  /// Frames that no socket took, since they came by a queue that was not claimed.
  [[nodiscard]] std::uint64_t unclaimed() const;

 private:
  struct Close {
    void operator()(bpf_object* object) const;
  };

  XdpProgram() = default;
  static Result<XdpProgram> load(const Link& link, unsigned queues, bool frags);

  std::unique_ptr<bpf_object, Close> object_;
  Descriptor link_;
  int program_ = -1;  // of object_
  int sockets_ = -1;
  int unclaimed_ = -1;
  bool native_ = false;
  bool frags_ = false;
  std::string why_generic_;
};

}  // namespace weir::device_internal
