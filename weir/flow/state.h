#pragma once
// All shared state of one node: tables, groups, counters, drop reasons; who depends on it, and when it ages.

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/epoch.h>
#include <weir/flow/classifier.h>
#include <weir/flow/connections.h>
#include <weir/flow/counter.h>
#include <weir/flow/delivery.h>
#include <weir/flow/drop_reason.h>
#include <weir/flow/group.h>
#include <weir/flow/meter.h>
#include <weir/flow/neighbours.h>
#include <weir/flow/paths.h>
#include <weir/flow/prefixes.h>
#include <weir/flow/table.h>
#include <weir/flow/versioned.h>

namespace weir {

/// Owns what stages refer to; everything lives until the State is destroyed. Names are for people and need not be
/// unique. Creating is for any thread, before or while packets run.
class State {
 public:
  State(Epochs& epochs, std::uint64_t seed) : epochs_(epochs), seed_(seed), flood_(epochs, {}) {
    for (const DropReason& reason : drop::builtin) {
      this->reason(reason);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <class K, class V>
  Table<K, V>& table(std::string name, TableOptions options = {}) {
    auto table =
        std::make_unique<Table<K, V>>(std::move(name), options, seed_, [this](Nanoseconds at) { schedule(at); });
    return keep(tables_, std::move(table));
  }
  template <class V>
  Prefixes<V>& prefixes(std::string name) {
    return keep_any<Prefixes<V>>(std::move(name), epochs_, next_bit(), next_bit());
  }
  template <class A>
  Classifier<A>& classifier(std::string name) {
    return keep_any<Classifier<A>>(std::move(name), epochs_, next_bit());
  }
  template <class T>
  Versioned<T>& versioned(std::string name, T value) {
    return keep_any<Versioned<T>>(std::move(name), epochs_, std::move(value));
  }
  Counter& counter(std::string name) { return keep(counters_, std::make_unique<Counter>(std::move(name))); }
  /// The counter of this name, listed for as long as somebody holds it: for what control adds and removes while packets
  /// run. What an Update replaces it holds until no worker uses it any more.
  std::shared_ptr<Counter> temporary_counter(std::string name);
  /// Packets per second.
  Meter& packet_meter(std::string name, std::uint64_t per_second, std::uint64_t burst) {
    return keep_any<Meter>(std::move(name), per_second, burst, false);
  }
  /// Bytes per second.
  Meter& byte_meter(std::string name, std::uint64_t per_second, std::uint64_t burst) {
    return keep_any<Meter>(std::move(name), per_second, burst, true);
  }
  /// At most 65,535 groups.
  Group& group(std::string name);
  /// The group that NextHops::group names; nullptr if there is none.
  [[nodiscard]] Group* find_group(std::uint16_t id) const;

  /// The reason's number; the same for the same name.
  ReasonId reason(const DropReason& reason);
  [[nodiscard]] DropReason reason(ReasonId id) const;
  [[nodiscard]] unsigned reasons() const;

  [[nodiscard]] const FloodDomains& flood_domains() const { return flood_.read(); }

  /// Where delivery to each port begins.
  [[nodiscard]] Deliveries& deliveries() { return deliveries_; }

  /// The rate of ICMP errors that the node sends: 1,000 a second, 100 at once.
  [[nodiscard]] Meter& icmp_errors() { return icmp_errors_; }

  /// Whom the node has next to it. Made when it is first asked for, so that nodes without neighbours show no table.
  Neighbours& neighbours();
  [[nodiscard]] bool has_neighbours() const { return has_neighbours_.load(std::memory_order_acquire); }

  /// Which ways to neighbours work.
  [[nodiscard]] Paths& paths() { return paths_; }

  /// The node's one T, made when it is first asked for: what engines share beside the state that stages see.
  template <class T>
  T& shared() {
    const std::lock_guard guard(mutex_);
    auto& owned = shared_[typeid(T)];
    if (owned == nullptr) {
      owned = std::make_shared<T>();
    }
    return *static_cast<T*>(owned.get());
  }

  /// The connections that the node follows. Made when they are first asked for, so that nodes without show no table.
  Connections& connections();
  [[nodiscard]] bool has_connections() const { return has_connections_.load(std::memory_order_acquire); }
  /// The most of them, and how long they stay unused; before `connections` is first called.
  void limit_connections(std::uint32_t limit, const ConnectionTimeouts& timeouts = {}) {
    connection_limit_ = limit;
    connection_timeouts_ = timeouts;
  }

  /// Seed of every hash of this node.
  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  [[nodiscard]] Epochs& epochs() { return epochs_; }

  /// Holders are told of every change of region state from now on.
  void add(RuleHolder& holder);
  void remove(RuleHolder& holder);

  /// By workers, between batches: removes what has been idle too long. One load when nothing is due.
  void expire(Nanoseconds now) {
    if (now >= next_expiry_.load(std::memory_order_relaxed)) {
      expire_due(now);
    }
  }

  /// Says so once: a stage's programming error.
  void report(std::string_view stage, std::string_view message);

  /// Calls visit(TableBase&) / visit(Group&) / visit(const Counter&) for each.
  template <class Visit>
  void for_each_table(Visit visit) const {
    const std::lock_guard guard(mutex_);
    for (const auto& table : tables_) {
      visit(*table);
    }
  }
  template <class Visit>
  void for_each_group(Visit visit) {
    const std::lock_guard guard(mutex_);
    for (Group& group : groups_) {
      visit(group);
    }
  }
  template <class Visit>
  void for_each_counter(Visit visit) const {
    const std::lock_guard guard(mutex_);
    for (const auto& counter : counters_) {
      visit(*counter);
    }
    for (const auto& [name, temporary] : temporary_counters_) {
      if (const auto counter = temporary.lock()) {
        visit(*counter);
      }
    }
  }

 private:
  friend class Update;

  template <class Base, class Derived>
  Derived& keep(std::vector<std::unique_ptr<Base>>& owners, std::unique_ptr<Derived> owned) {
    const std::lock_guard guard(mutex_);
    Derived& result = *owned;
    owners.push_back(std::move(owned));
    return result;
  }
  template <class T, class... Args>
  T& keep_any(Args&&... args) {
    auto owned = std::make_shared<T>(std::forward<Args>(args)...);
    const std::lock_guard guard(mutex_);
    others_.push_back(owned);
    return *owned;
  }

  // Region states beyond 64 share the last bit: an update then also clears rules that depend on a namesake.
  std::uint64_t next_bit() {
    const unsigned bit = std::min(regions_.fetch_add(1, std::memory_order_relaxed), 63U);
    return std::uint64_t{1} << bit;
  }

  void schedule(Nanoseconds at);
  void expire_due(Nanoseconds now);
  std::size_t revoke(std::uint64_t sources, std::span<const KeyRegion> regions);

  Epochs& epochs_;
  std::uint64_t seed_;
  Published<FloodDomains> flood_;
  Deliveries deliveries_;
  Meter icmp_errors_{"icmp_errors", 1'000, 100, false};
  std::once_flag neighbours_made_;
  std::unique_ptr<Neighbours> neighbours_;
  std::atomic<bool> has_neighbours_{false};
  Paths paths_{
      [this]() -> Paths::Entries& { return table<PathKey, PathState>("paths", {.capacity = Paths::capacity}); }};
  std::once_flag connections_made_;
  std::uint32_t connection_limit_ = Connections::default_limit;
  ConnectionTimeouts connection_timeouts_;
  Connections* connections_ = nullptr;  // among tables_
  std::atomic<bool> has_connections_{false};
  std::atomic<Nanoseconds> next_expiry_{~Nanoseconds{0}};
  std::mutex expiry_mutex_;
  std::atomic<unsigned> regions_{0};
  std::mutex update_mutex_;  // one update at a time

  std::mutex holders_mutex_;  // guards holders_; held for a whole scan
  std::vector<RuleHolder*> holders_;

  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::unique_ptr<TableBase>> tables_;
  std::vector<std::unique_ptr<Counter>> counters_;
  std::unordered_map<std::string, std::weak_ptr<Counter>> temporary_counters_;
  std::size_t look_through_at_ = 64;  // so many of them
  std::deque<Group> groups_;
  std::vector<std::shared_ptr<void>> others_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> shared_;
  std::unordered_map<std::string, ReasonId> reason_ids_;
  std::deque<std::pair<std::string, std::string>> reason_texts_;
  std::unordered_set<std::string> reported_;
};

}  // namespace weir
