#pragma once
// What the kernel says about network interfaces (rtnetlink(7)).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weir/base/descriptor.h>
#include <weir/base/error.h>
#include <weir/packet/address.h>

namespace weir::device_internal {

/// A network interface as it was when asked for.
struct Link {
  unsigned index = 0;
  std::string name;
  std::string kind;  ///< "veth", "tun"; empty for hardware
  MacAddress mac;
  bool ethernet = false;
  bool up = false;       ///< set up by an administrator
  bool carrier = false;  ///< something is at its other end
  unsigned mtu = 0;
  unsigned xdp_program = 0;           ///< number of the XDP program on it; 0: none
  unsigned peer = 0;                  ///< number of the interface it leads to; 0: none
  std::optional<int> peer_namespace;  ///< identifier of the namespace that the peer is in; none: the same
};

/// Asks about one network namespace: that of the thread that opened it. One thread.
class Netlink {
 public:
  /// What `changed` tells of.
  enum class Watch : std::uint8_t { nothing, links, links_and_routes };

  static Result<Netlink> open(Watch watch = Watch::nothing);

  Result<std::vector<Link>> links();
  /// Nothing if there is no such interface.
  Result<std::optional<Link>> link(const std::string& name);
  /// In the namespace that has the identifier `space` here, if given.
  Result<std::optional<Link>> link(unsigned index, std::optional<int> space = {});

  /// The identifier here of the network namespace that `descriptor` stands for; nothing if it has none.
  std::optional<int> identifier(int descriptor);

  /// Whether anything that is watched may have changed since the last call. Never blocks.
  bool changed();

  /// Sends one request and calls `each` with every message of the answer (type, content behind the header). What the
  /// kernel refuses is its errno, 0 if nothing.
  Result<int> ask(std::span<const std::uint8_t> request,
                  const std::function<void(unsigned, std::span<const std::uint8_t>)>& each);

 private:
  explicit Netlink(Descriptor socket) : socket_(std::move(socket)) {}

  Result<std::optional<Link>> ask_link(unsigned index, const std::string& name, std::optional<int> space);

  Descriptor socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace weir::device_internal
