#pragma once
// The routes that the kernel has (rtnetlink(7)): what routing daemons and administrators put there.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/error.h>
#include <weir/packet/address.h>

namespace weir {

struct KernelHop {
  std::string interface;
  std::optional<IpAddress> address;  ///< of the next router; nothing: hosts on the link

  bool operator==(const KernelHop&) const = default;
};

/// A route for packets to one host; without hops, they are dropped.
struct KernelRoute {
  std::vector<KernelHop> hops;

  bool operator==(const KernelRoute&) const = default;
};

/// Follows one of the kernel's routing tables, in the network namespace of the thread that opens it. One thread.
class KernelRoutes {
 public:
  using Map = std::map<IpPrefix, KernelRoute>;

  /// The table that routes are in unless something else is said.
  static constexpr std::uint32_t main_table = 254;
  /// After the kernel told of a change, the table is read again, but not more often than this.
  static constexpr Nanoseconds time_between_readings = 100'000'000;

  static Result<std::unique_ptr<KernelRoutes>> open(std::uint32_t table);
  ~KernelRoutes();
  KernelRoutes(const KernelRoutes&) = delete;
  KernelRoutes& operator=(const KernelRoutes&) = delete;

  /// Whether `routes` has changed: looks at what the kernel has told since the last call, without waiting for it. That
  /// some of that was lost counts as a change.
  Result<bool> tend(Nanoseconds now);

  /// As last read; of several routes to a prefix, that of the lowest metric.
  [[nodiscard]] const Map& routes() const { return routes_; }

 private:
  struct Sockets;

  KernelRoutes(std::unique_ptr<Sockets> sockets, std::uint32_t table);
  Result<> read();

  std::unique_ptr<Sockets> sockets_;
  std::uint32_t table_;
  Map routes_;
  bool stale_ = true;
  Nanoseconds read_again_ = 0;
};

}  // namespace weir
