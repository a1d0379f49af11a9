#pragma once
// What the node knows of the hosts and routers next to it: the Ethernet address of an IP address behind a port.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include <weir/flow/port.h>
#include <weir/flow/table.h>
#include <weir/packet/address.h>

namespace weir {

/// An IP address on the link of a port.
struct NeighbourKey {
  PortId port;
  IpAddress address;

  bool operator==(const NeighbourKey&) const = default;
  auto operator<=>(const NeighbourKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return address.hash(port.hash(seed)); }
  [[nodiscard]] bool mentions(PortId other) const { return port == other; }
  [[nodiscard]] std::string to_string() const { return address.to_string(); }
};

struct NeighbourKeyHash {
  std::size_t operator()(const NeighbourKey& key) const { return key.hash(0); }
};

/// The neighbours of one node. The table is one like any other: stages look it up through their flow, and what they
/// decided goes when an entry changes. Entries are learned by the host part of the engines (`engine/host`), which hears
/// the answers; a control update may set some that stay. All functions are for any thread.
class Neighbours {
 public:
  using Entries = Table<NeighbourKey, MacAddress>;

  static constexpr std::uint32_t capacity = 4096;
  /// An entry that nobody has confirmed for so long goes.
  static constexpr Nanoseconds lifetime = 60'000'000'000;

  explicit Neighbours(Entries& table) : table_(table) {}

  [[nodiscard]] Entries& table() { return table_; }

  /// Those that are to be known whether or not packets ask for them, such as next hops of routes. Replaces what `who`
  /// wanted before.
  void want(std::vector<NeighbourKey> keys, const std::string& who = {}) {
    auto wanted = std::make_shared<std::vector<NeighbourKey>>();
    const std::lock_guard guard(mutex_);
    wanted_by_[who] = std::move(keys);
    for (const auto& [name, each] : wanted_by_) {
      wanted->insert(wanted->end(), each.begin(), each.end());
    }
    wanted_ = std::move(wanted);
  }
  [[nodiscard]] std::shared_ptr<const std::vector<NeighbourKey>> wanted() const {
    const std::lock_guard guard(mutex_);
    return wanted_;
  }

  // ---- For the host part ----

  [[nodiscard]] std::optional<MacAddress> find(const NeighbourKey& key) const { return table_.find(key); }
  /// Adds the entry, changes it, or confirms it.
  Learned learn(const NeighbourKey& key, const MacAddress& mac, Nanoseconds now) {
    const Learned outcome = table_.learn(key, mac, now).outcome;
    if (outcome == Learned::added || outcome == Learned::moved) {
      changes_.fetch_add(1, std::memory_order_release);
    }
    return outcome;
  }
  /// Entries added or changed by `learn`.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  /// A worker has asked for it, and no longer does: answers that nobody asked for make no entry. An answer may come to
  /// another worker than the one that asked.
  void ask(const NeighbourKey& key) {
    const std::lock_guard guard(mutex_);
    ++asked_[key];
  }
  void settle(const NeighbourKey& key) {
    const std::lock_guard guard(mutex_);
    const auto place = asked_.find(key);
    if (place != asked_.end() && --place->second == 0) {
      asked_.erase(place);
    }
  }
  [[nodiscard]] bool asked(const NeighbourKey& key) const {
    const std::lock_guard guard(mutex_);
    return asked_.contains(key);
  }

 private:
  Entries& table_;
  std::atomic<std::uint64_t> changes_{0};
  mutable std::mutex mutex_;                                            // guards the rest
  std::unordered_map<NeighbourKey, unsigned, NeighbourKeyHash> asked_;  // how many workers ask
  std::map<std::string, std::vector<NeighbourKey>> wanted_by_;
  std::shared_ptr<const std::vector<NeighbourKey>> wanted_ = std::make_shared<const std::vector<NeighbourKey>>();
};

}  // namespace weir
