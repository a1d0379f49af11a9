#pragma once
// Which ways to a neighbour work: by the link of the port, and by BFD (RFC 5880) where it was asked for.

#include <atomic>
#include <bitset>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <weir/flow/neighbours.h>

namespace weir {

/// The way over a port to the neighbour with the address.
using PathKey = NeighbourKey;

struct PathState {
  bool up = true;

  bool operator==(const PathState&) const = default;
  [[nodiscard]] std::string to_string() const { return up ? "up" : "down"; }
};

/// How a BFD session watches a path.
struct BfdSettings {
  static constexpr Nanoseconds least_interval = 10'000'000;
  static constexpr Nanoseconds most_interval = 60'000'000'000;

  Nanoseconds interval = 300'000'000;  ///< between packets, that the node sends and that it hears, at least
  std::uint8_t multiplier = 3;         ///< packets in a row that the other side misses; 1 to 255

  bool operator==(const BfdSettings&) const = default;
};

/// A path that a service needs to know of.
struct PathWish {
  PathKey key;
  std::optional<BfdSettings> bfd{};  ///< nothing: it is up while its port is

  bool operator==(const PathWish&) const = default;
};

/// The paths of one node. The table is one like any other: stages look it up through their flow, and what they decided
/// goes when a path changes. A path that is not in it counts as up. Control says which are wanted; the node tells when
/// ports go up and down, the host part of the engines (`engine/host`) what BFD finds. Any thread.
class Paths {
 public:
  using Entries = Table<PathKey, PathState>;
  /// Read by select groups for each packet, kept true while the path is up.
  using Alive = std::shared_ptr<const std::atomic<bool>>;

  /// Those beyond are not watched, and count as up.
  static constexpr std::uint32_t capacity = 4096;

  /// `make` makes the table when it is first needed, so that nodes without paths show none.
  explicit Paths(std::function<Entries&()> make) : make_(std::move(make)) {}

  [[nodiscard]] Entries& table() {
    std::call_once(made_, [this] { table_ = &make_(); });
    return *table_;
  }

  /// The paths that the service called `who` needs to know of; replaces what it wanted before. Where two want the same
  /// path, the shorter interval counts.
  void want(const std::string& who, std::vector<PathWish> wishes);
  /// All that are wanted, each once.
  [[nodiscard]] std::vector<PathWish> wanted() const;
  /// Changes whenever `wanted` does.
  [[nodiscard]] std::uint64_t version() const { return version_.load(std::memory_order_acquire); }
  /// Times that a path came, went up or went down.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// Whether the path is up, as far as is known.
  [[nodiscard]] bool up(const PathKey& key) const;

  /// What a member of a select group looks at.
  [[nodiscard]] Alive alive(const PathKey& key);

  // ---- For the node and the host part ----

  /// Whether the port is up. Ports of which nothing was said are.
  void link(PortId port, bool up);
  /// What the path's BFD session says: that it is up or down; nothing, if it knows nothing (RFC 5882, section 3.2): it
  /// has never been up, or an administrator took it down.
  void session(const PathKey& key, std::optional<bool> up);
  /// The port goes.
  void forget(PortId port);

 private:
  struct Record {
    bool wanted = false;
    std::optional<BfdSettings> bfd;
    std::optional<bool> session;
    std::weak_ptr<std::atomic<bool>> alive;
  };

  [[nodiscard]] bool up_now(const PathKey& key, const Record& record) const;
  void tell(const PathKey& key, const Record& record);
  void drop_unused();

  std::function<Entries&()> make_;
  std::once_flag made_;
  Entries* table_ = nullptr;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> changes_{0};
  mutable std::mutex mutex_;  // guards the rest
  std::map<std::string, std::vector<PathWish>> wishes_;
  std::map<PathKey, Record> records_;
  std::bitset<max_ports> down_;  // ports
};

}  // namespace weir
