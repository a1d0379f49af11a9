#pragma once
// Exact-match tables that stages look up and learn into.

#include <atomic>
#include <concepts>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <type_traits>
#include <vector>

#include <weir/base/counter.h>
#include <weir/base/hash.h>
#include <weir/flow/dependency.h>
#include <weir/flow/port.h>

namespace weir {

/// What `flow.learn` did.
enum class Learned : std::uint8_t {
  unchanged,  ///< the entry was there; its age starts anew
  added,
  moved,   ///< the entry had another value
  pinned,  ///< the entry was set by a control update and stays
  full,    ///< no room; nothing was changed (counted)
};

struct TableOptions {
  std::uint32_t capacity = 65'536;  ///< entries, 1 to 16,777,216
  Nanoseconds idle = 0;             ///< learned entries unused for so long go; 0: they stay
};

/// What State does with any table.
class TableBase {
 public:
  virtual ~TableBase() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  [[nodiscard]] virtual std::size_t capacity() const = 0;
  /// Times that an entry found no room.
  [[nodiscard]] virtual std::uint64_t rejected() const = 0;
  /// Removes what has been idle too long at `now`; returns when to look again (never: ~0).
  virtual Nanoseconds expire(Nanoseconds now) = 0;
  /// Removes the entries that mention `port`, pinned or not; returns how many rules that cleared.
  virtual std::size_t forget(PortId port) = 0;
};

/// Whether a key or value names the port. Structures that hold one say so: `bool mentions(PortId port) const`.
template <class T>
bool mentions(const T& value, PortId port) {
  if constexpr (std::same_as<T, PortId>) {
    return value == port;
  } else if constexpr (requires { value.mentions(port); }) {
    return value.mentions(port);
  } else {
    return false;
  }
}

/// From K to V, both plain data. Flow stages read and learn through their Flow only; it is changed by control through
/// an Update only. Any thread; a look-up takes one uncontended lock, as decisions are off the fast path.
template <class K, class V>
class Table final : public TableBase, public Refreshable {
  static_assert(std::is_trivially_copyable_v<K> && std::is_trivially_copyable_v<V>);

 public:
  using Key = K;
  using Value = V;

  Table(std::string name, TableOptions options, std::uint64_t seed, std::function<void(Nanoseconds)> schedule)
      : name_(std::move(name)),
        options_(options),
        seed_(seed),
        schedule_(std::move(schedule)),
        stripes_(std::bit_ceil(std::max(options.capacity / 2, 16U))),
        entries_(options.capacity) {
    for (std::uint32_t i = options.capacity; i-- > 0;) {
      free_.push_back(i);
    }
  }

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::size_t size() const override {
    const std::lock_guard guard(free_lock_);
    return entries_.size() - free_.size() - reserved_.size();
  }
  [[nodiscard]] std::size_t capacity() const override { return entries_.size(); }
  [[nodiscard]] std::uint64_t rejected() const override { return rejected_.load(std::memory_order_relaxed); }

  /// What is there now. Nothing depends on it: for packet stages, which see every packet, and for control.
  [[nodiscard]] std::optional<V> find(const K& key) const {
    const Found found = lookup(key);
    return found.present ? std::optional(found.value) : std::nullopt;
  }

  /// Calls visit(key, value) for every entry; entries that change meanwhile may be seen either way.
  template <class Visit>
  void for_each(Visit visit) const {
    for (Stripe& stripe : stripes_) {
      const std::lock_guard guard(stripe.dependents.lock());
      for (std::uint32_t i = stripe.first; i != none; i = entries_[i].next) {
        visit(entries_[i].key, entries_[i].value);
      }
    }
  }

  Nanoseconds expire(Nanoseconds now) override {
    for (;;) {
      Due due;
      {
        const std::lock_guard guard(due_lock_);
        if (due_.empty() || due_.top().at > now) {
          return due_.empty() ? ~Nanoseconds{0} : due_.top().at;
        }
        due = due_.top();
        due_.pop();
      }
      review(due, now);
    }
  }

  std::size_t forget(PortId port) override {
    std::size_t cleared = 0;
    for (Stripe& stripe : stripes_) {
      const std::lock_guard guard(stripe.dependents.lock());
      for (std::uint32_t i = stripe.first; i != none;) {
        const Entry& entry = entries_[i];
        const std::uint32_t next = entry.next;
        if (mentions(entry.key, port) || mentions(entry.value, port)) {
          cleared += remove(stripe, i, false);
        }
        i = next;
      }
    }
    return cleared + room_again();
  }

 private:
  friend class Flow;
  friend class Neighbours;
  friend class Paths;
  friend class Update;

  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Entry {
    K key{};
    V value{};
    std::uint32_t next = none;
    std::uint32_t serial = 0;  ///< tells this use of the slot from earlier ones
    bool pinned = false;
    Nanoseconds last_used = 0;
  };
  struct Stripe {
    Dependents dependents;
    std::uint32_t first = none;
  };
  struct Due {
    Nanoseconds at;
    std::uint32_t entry;
    std::uint32_t serial;
    std::uint32_t stripe;
    auto operator<=>(const Due&) const = default;
  };
  struct Found {
    bool present;
    V value;
    KeyedDependency dependency;
  };
  struct LearnedAs {
    Learned outcome;
    KeyedDependency dependency;
  };

  Stripe& stripe_of(const K& key) const { return stripes_[hash_value(key, seed_) & (stripes_.size() - 1)]; }

  std::uint32_t find(const Stripe& stripe, const K& key) const {
    std::uint32_t i = stripe.first;
    while (i != none && !(entries_[i].key == key)) {
      i = entries_[i].next;
    }
    return i;
  }

  Found lookup(const K& key) const {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard guard(stripe.dependents.lock());
    const std::uint32_t i = find(stripe, key);
    return {i != none,
            i != none ? entries_[i].value : V{},
            {.stripe = &stripe.dependents, .generation = stripe.dependents.generation()}};
  }

  LearnedAs learn(const K& key, const V& value, Nanoseconds now) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard guard(stripe.dependents.lock());
    const std::uint32_t i = find(stripe, key);
    const auto result = [&](Learned outcome, std::uint32_t token) {
      return LearnedAs{outcome,
                       {.stripe = &stripe.dependents,
                        .generation = stripe.dependents.generation(),
                        .refreshed = options_.idle != 0 && token != none ? this : nullptr,
                        .token = token}};
    };
    if (i == none) {
      // Read before the attempt: room made in between must show.
      const std::uint32_t full_generation = generation_of(full_);
      const std::uint32_t added = insert(stripe, key, value, now, false, false);
      if (added == none) {
        // The rule depends on the table staying full, not on this key.
        return {Learned::full, {.stripe = &full_, .generation = full_generation}};
      }
      stripe.dependents.changed();
      return result(Learned::added, added);
    }
    Entry& entry = entries_[i];
    if (entry.pinned) {
      return result(Learned::pinned, none);
    }
    entry.last_used = std::max(entry.last_used, now);
    if (entry.value == value) {
      return result(Learned::unchanged, i);
    }
    entry.value = value;
    stripe.dependents.changed();
    return result(Learned::moved, i);
  }

  // What `learn` would say, without effect; the rule it would make is not for keeping.
  LearnedAs would_learn(const K& key, const V& value) const {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard guard(stripe.dependents.lock());
    const std::uint32_t i = find(stripe, key);
    const KeyedDependency dependency{.stripe = &stripe.dependents, .generation = stripe.dependents.generation()};
    if (i != none) {
      const Entry& entry = entries_[i];
      return {entry.pinned ? Learned::pinned : entry.value == value ? Learned::unchanged : Learned::moved, dependency};
    }
    const std::lock_guard free_guard(free_lock_);
    return {free_.empty() ? Learned::full : Learned::added, dependency};
  }

  // Control: sets an entry; a pinned one neither learning nor age changes. Returns how many rules that cleared.
  std::size_t set(const K& key, const V& value, bool pinned, Nanoseconds now, bool& full) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard guard(stripe.dependents.lock());
    const std::uint32_t i = find(stripe, key);
    full = false;
    if (i == none) {
      full = insert(stripe, key, value, now, pinned, true) == none;
      return full ? 0 : stripe.dependents.changed();
    }
    Entry& entry = entries_[i];
    entry.value = value;
    if (entry.pinned && !pinned) {  // its age starts anew; a date that was noted before it was pinned no longer counts
      entry.last_used = now;
      renew(entry);
      watch(stripe, i);
    }
    entry.pinned = pinned;
    return stripe.dependents.changed();
  }

  // `reserve`: its place is kept for `set` until `release`, so that a control update can undo what it did.
  std::size_t erase(const K& key, bool reserve) {
    Stripe& stripe = stripe_of(key);
    std::size_t cleared = 0;
    {
      const std::lock_guard guard(stripe.dependents.lock());
      const std::uint32_t i = find(stripe, key);
      if (i == none) {
        return 0;
      }
      cleared = remove(stripe, i, reserve);
    }
    return cleared + (reserve ? 0 : room_again());
  }

  std::size_t release() {
    {
      const std::lock_guard guard(free_lock_);
      was_full_ = was_full_ || (free_.empty() && !reserved_.empty());
      free_.insert(free_.end(), reserved_.begin(), reserved_.end());
      reserved_.clear();
    }
    return room_again();
  }

  static std::uint32_t generation_of(Dependents& dependents) {
    const std::lock_guard guard(dependents.lock());
    return dependents.generation();
  }

  bool pinned(const K& key) const {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard guard(stripe.dependents.lock());
    const std::uint32_t i = find(stripe, key);
    return i != none && entries_[i].pinned;
  }

  std::uint32_t insert(Stripe& stripe, const K& key, const V& value, Nanoseconds now, bool pinned, bool control) {
    std::uint32_t i = none;
    {
      const std::lock_guard guard(free_lock_);
      std::vector<std::uint32_t>& from = control && !reserved_.empty() ? reserved_ : free_;
      if (from.empty()) {
        rejected_.fetch_add(1, std::memory_order_relaxed);
        return none;
      }
      i = from.back();
      from.pop_back();
    }
    Entry& entry = entries_[i];
    entry.key = key;
    entry.value = value;
    entry.pinned = pinned;
    entry.last_used = now;
    entry.next = stripe.first;
    renew(entry);
    stripe.first = i;
    if (!pinned) {
      watch(stripe, i);
    }
    return i;
  }

  // A due date may outlive its entry; `review` then compares serials while the slot serves another stripe.
  static void renew(Entry& entry) { std::atomic_ref(entry.serial).fetch_add(1, std::memory_order_relaxed); }

  // Sees to it that the entry is reviewed when it may have been idle too long.
  void watch(const Stripe& stripe, std::uint32_t i) {
    if (options_.idle != 0) {
      const Entry& entry = entries_[i];
      const std::lock_guard guard(due_lock_);
      due_.push(
          {entry.last_used + options_.idle, i, entry.serial, static_cast<std::uint32_t>(&stripe - stripes_.data())});
      schedule_(due_.top().at);
    }
  }

  std::size_t remove(Stripe& stripe, std::uint32_t i, bool reserve) {
    std::uint32_t* link = &stripe.first;
    while (*link != i) {
      link = &entries_[*link].next;
    }
    *link = entries_[i].next;
    const std::size_t cleared = stripe.dependents.changed();
    renew(entries_[i]);
    const std::lock_guard guard(free_lock_);
    if (reserve) {
      reserved_.push_back(i);
    } else {
      was_full_ = was_full_ || free_.empty();
      free_.push_back(i);
    }
    return cleared;
  }

  // Rules that found the table full are wrong once there is room. Whoever returns from here has seen them cleared, by
  // itself or by another.
  std::size_t room_again() {
    const std::lock_guard guard(full_.lock());
    {
      const std::lock_guard free_guard(free_lock_);
      if (!was_full_) {
        return 0;
      }
      was_full_ = false;
    }
    return full_.changed();
  }

  void review(const Due& due, Nanoseconds now) {
    Stripe& stripe = stripes_[due.stripe];
    bool removed = false;
    {
      const std::lock_guard guard(stripe.dependents.lock());
      Entry& entry = entries_[due.entry];
      if (std::atomic_ref(entry.serial).load(std::memory_order_relaxed) != due.serial || entry.pinned) {
        return;
      }
      entry.last_used = std::max(entry.last_used, stripe.dependents.last_used(*this, due.entry));
      if (entry.last_used + options_.idle <= now) {
        remove(stripe, due.entry, false);
        removed = true;
      } else {
        const std::lock_guard due_guard(due_lock_);
        due_.push({entry.last_used + options_.idle, due.entry, due.serial, due.stripe});
      }
    }
    if (removed) {
      room_again();
    }
  }

  void touch(std::uint32_t token, Nanoseconds time) override {
    entries_[token].last_used = std::max(entries_[token].last_used, time);
  }

  std::string name_;
  TableOptions options_;
  std::uint64_t seed_;
  std::function<void(Nanoseconds)> schedule_;
  mutable std::vector<Stripe> stripes_;
  std::vector<Entry> entries_;  // each guarded by its stripe's lock

  mutable SpinLock free_lock_;  // guards the next three
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> reserved_;  // by a control update that may have to be undone
  bool was_full_ = false;
  std::atomic<std::uint64_t> rejected_{0};
  Dependents full_;

  std::mutex due_lock_;                                             // guards due_
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  // earliest first
};

}  // namespace weir
