#pragma once
// Control updates: what is asked for is recorded, then applied as one; if a part cannot be done, none of it stays.

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/base/error.h>
#include <weir/flow/state.h>

namespace weir {

/// What an update did.
struct UpdateReport {
  std::size_t rules_cleared = 0;  ///< that now decide again
  Nanoseconds barrier = 0;        ///< time waited for workers and engines
};

/// What an `assign` would change in one piece of state.
struct Difference {
  std::string name;
  std::size_t added = 0, removed = 0, changed = 0;  ///< entries
};

/// A list of changes. Recorded without effect; `commit` applies them in order, once. One thread.
class Update {
 public:
  /// Sets an entry that neither learning nor age changes.
  template <class K, class V>
  void set(Table<K, V>& table, std::type_identity_t<K> key, std::type_identity_t<V> value) {
    steps_.push_back([&table, key, value](Update& update) { return update.put(table, key, value); });
  }
  template <class K, class V>
  void erase(Table<K, V>& table, std::type_identity_t<K> key) {
    steps_.push_back([&table, key](Update& update) { return update.remove(table, key); });
  }

  template <class V>
  void set(Prefixes<V>& prefixes, IpPrefix prefix, std::type_identity_t<V> value) {
    put(prefixes, prefix, std::make_shared<const V>(std::move(value)));
  }
  template <class V>
  void erase(Prefixes<V>& prefixes, IpPrefix prefix) {
    put(prefixes, prefix, std::shared_ptr<const V>{});
  }
  /// The entries become these; those that stay are not touched.
  template <class V>
  void assign(Prefixes<V>& prefixes, std::vector<std::pair<IpPrefix, V>> entries) {
    const auto wanted = std::make_shared<const std::vector<std::pair<IpPrefix, V>>>(std::move(entries));
    steps_.push_back([&prefixes, wanted](Update& update) {
      for (const auto& [prefix, value] : prefixes.edits(*wanted)) {
        update.place(prefixes, prefix, value);
      }
      return Result<>{};
    });
    previews_.push_back([&prefixes, wanted](State&) {
      Difference difference{prefixes.name()};
      for (const auto& [prefix, value] : prefixes.edits(*wanted)) {
        const bool there = prefixes.exact(prefix) != nullptr;
        ++(value == nullptr ? difference.removed : there ? difference.changed : difference.added);
      }
      return difference;
    });
  }

  /// Replaces the rule at `order`, if there is one.
  template <class A>
  void set(Classifier<A>& classifier, std::uint32_t order, Match match, std::type_identity_t<A> action) {
    using Entry = typename Classifier<A>::Rule;
    put(classifier, order, std::make_shared<const Entry>(Entry{order, match, std::move(action)}));
  }
  /// The rules become these, in this order. Those that stay, with all before and after them, are not touched: their
  /// orders are spaced so that a few new ones find room between them. Not beside `set` and `erase` of the same object.
  template <class A>
  void assign(Classifier<A>& classifier, std::vector<std::pair<Match, A>> rules) {
    const auto wanted = std::make_shared<const std::vector<std::pair<Match, A>>>(std::move(rules));
    steps_.push_back([&classifier, wanted](Update& update) -> Result<> {
      const auto edits = classifier.edits(*wanted);
      if (!edits) {
        return std::unexpected(edits.error());
      }
      for (const auto& [order, rule] : *edits) {
        update.place(classifier, order, rule);
      }
      return {};
    });
    previews_.push_back([&classifier, wanted](State&) {
      Difference difference{classifier.name()};
      const auto edits = classifier.edits(*wanted);
      for (const auto& [order, rule] : edits ? *edits : std::remove_cvref_t<decltype(*edits)>()) {
        const bool there = classifier.at(order) != nullptr;
        ++(rule == nullptr ? difference.removed : there ? difference.changed : difference.added);
      }
      return difference;
    });
  }
  template <class A>
  void erase(Classifier<A>& classifier, std::uint32_t order) {
    put(classifier, order, typename Classifier<A>::RulePtr{});
  }

  /// The value becomes this one; nothing is touched if it is already.
  template <std::equality_comparable T>
  void assign(Versioned<T>& versioned, std::type_identity_t<T> value) {
    previews_.push_back([&versioned, value](State&) {
      return Difference{.name = versioned.name(), .changed = versioned.value_.read() == value ? 0U : 1U};
    });
    steps_.push_back([&versioned, value = std::move(value)](Update& update) {
      if (!(versioned.value_.read() == value)) {
        update.exchange(versioned, value);
      }
      return Result<>{};
    });
  }

  template <class T>
  void set(Versioned<T>& versioned, std::type_identity_t<T> value) {
    steps_.push_back([&versioned, value = std::move(value)](Update& update) {
      update.exchange(versioned, value);
      return Result<>{};
    });
  }

  void set_members(Group& group, std::vector<Member> members);

  /// The ports that a flood of `vlan` reaches; none: all ports again.
  void set_flood_domain(std::uint16_t vlan, std::vector<PortId> ports);
  /// The ports that a flood reaches where its VLAN has no list of its own.
  void set_flood_ports(std::vector<PortId> ports);

  /// What a flood of the domain reaches; nullptr: nothing any more.
  void set_flood_domain(DomainId id, std::shared_ptr<const FloodDomain> domain);
  /// The domains from `first` to before `end` become these, which are in the order of their numbers. Those that stay as
  /// they are are not touched. `name` is what the difference is called.
  void assign(std::string name, DomainId first, DomainId end, std::vector<FloodDomains::Numbered> domains);

  /// Delivery to the port begins at this stage of the graph (Graph::deliver_at); Deliveries::nowhere: it has no
  /// delivery side. Nothing is touched if it is so already.
  void set_delivery(PortId port, std::uint8_t stage);

  /// A flood reaches the port where its VLAN has no list of its own.
  void flood_to(PortId port);
  /// Tables, groups and flood domains name `port` no more: it is removed. Done after everything else, since it is not
  /// undone.
  void forget(PortId port) { forgotten_.push_back(port); }
  /// Called by `commit` when everything was applied: for what goes with the state and is none, such as a memory of what
  /// was asked for. Not if the update fails, or is only previewed.
  void afterwards(std::function<void()> call) { afterwards_.push_back(std::move(call)); }

  [[nodiscard]] bool empty() const { return steps_.empty(); }

  /// What `assign`s would change, without changing anything; those that change nothing are left out.
  [[nodiscard]] std::vector<Difference> preview(State& state) const;

  /// Applies everything at time `now`; on an error, undoes what was done. After it has returned, rules decided on the
  /// old state are cleared; workers may be in the middle of a batch with them until the caller's barrier.
  Result<UpdateReport> commit(State& state, Nanoseconds now);

 private:
  template <class K, class V>
  Result<> put(Table<K, V>& table, const K& key, const V& value) {
    const auto before = table.lookup(key);
    const bool pinned = table.pinned(key);
    bool full = false;
    report_.rules_cleared += table.set(key, value, true, now_, full);
    if (full) {
      return error("table '{}' is full ({} entries); give it more capacity", table.name(), table.capacity());
    }
    undo_.push_back([this, &table, key, before, pinned] {
      bool ignored = false;
      if (before.present) {
        table.set(key, before.value, pinned, now_, ignored);
      } else {
        table.erase(key, false);
      }
    });
    return {};
  }

  template <class K, class V>
  Result<> remove(Table<K, V>& table, const K& key) {
    const auto before = table.lookup(key);
    const bool pinned = table.pinned(key);
    report_.rules_cleared += table.erase(key, true);
    if (before.present) {
      at_end(&table, [this, &table] { report_.rules_cleared += table.release(); });
      undo_.push_back([this, &table, key, before, pinned] {
        bool full = false;
        table.set(key, before.value, pinned, now_, full);
      });
    }
    return {};
  }

  template <class V>
  void put(Prefixes<V>& prefixes, const IpPrefix& prefix, const std::shared_ptr<const V>& value) {
    steps_.push_back([&prefixes, prefix, value](Update& update) {
      update.place(prefixes, prefix, value);
      return Result<>{};
    });
  }

  template <class V>
  void place(Prefixes<V>& prefixes, const IpPrefix& prefix, const std::shared_ptr<const V>& value) {
    auto before = prefixes.put(prefix, value);
    revoke(prefixes, prefix);
    undo_.push_back([this, &prefixes, prefix, before] {
      prefixes.put(prefix, before);
      revoke(prefixes, prefix);
    });
  }

  template <class V>
  void revoke(Prefixes<V>& prefixes, const IpPrefix& prefix) {
    for (const FieldId field : {FieldId::ip_src, FieldId::ip_dst}) {
      note(prefixes.state(field).bit(), {{region_of(field, prefix)}});
    }
  }

  template <class A>
  void put(Classifier<A>& classifier, std::uint32_t order, const typename Classifier<A>::RulePtr& rule) {
    steps_.push_back([&classifier, order, rule](Update& update) {
      update.place(classifier, order, rule);
      return Result<>{};
    });
  }

  template <class A>
  void place(Classifier<A>& classifier, std::uint32_t order, const typename Classifier<A>::RulePtr& rule) {
    auto before = classifier.put(order, rule);
    at_end(&classifier, [&classifier] { classifier.publish(); });
    revoke(classifier, before, rule);
    undo_.push_back([this, &classifier, order, before, rule] {
      classifier.put(order, before);
      revoke(classifier, before, rule);
    });
  }

  template <class T>
  void exchange(Versioned<T>& versioned, const T& value) {
    undo_.push_back([this, &versioned, before = T(versioned.value_.read())] { replace(versioned, before); });
    replace(versioned, value);
  }

  // Once for each object, when all steps were done or undone.
  void at_end(const void* what, std::function<void()> finish) {
    if (std::ranges::find(touched_, what, &Touched::what) == touched_.end()) {
      touched_.push_back({what, std::move(finish)});
    }
  }

  template <class A, class RulePtr>
  void revoke(Classifier<A>& classifier, const RulePtr& before, const RulePtr& after) {
    for (const RulePtr& rule : {before, after}) {
      if (rule != nullptr) {
        note(classifier.state_.bit(), {{rule->match.region()}});
      }
    }
  }

  template <class T>
  void replace(Versioned<T>& versioned, const T& value) {
    // Published before the stripe changes: a trace that reads the old value has the old generation.
    versioned.value_.publish(value);
    const std::lock_guard guard(versioned.dependents_.lock());
    report_.rules_cleared += versioned.dependents_.changed();
  }

  /// The flood domains as they will be; published once, when all steps were done or undone.
  FloodDomains& edit_floods();

  void note(std::uint64_t source, std::span<const KeyRegion> regions);
  void revoke_noted(State& state);
  void forget_now(State& state, PortId port);

  struct Touched {
    const void* what;
    std::function<void()> finish;
  };
  struct Noted {
    std::uint64_t source;
    std::vector<KeyRegion> regions;
  };

  // Given the update itself, which may have been moved since.
  std::vector<std::function<Result<>(Update&)>> steps_;
  std::vector<std::function<Difference(State&)>> previews_;
  std::vector<std::function<void()>> undo_;
  std::vector<Touched> touched_;
  std::vector<Noted> noted_;
  std::vector<PortId> forgotten_;
  std::vector<std::function<void()>> afterwards_;
  std::unique_ptr<FloodDomains> floods_;
  State* state_ = nullptr;
  Nanoseconds now_ = 0;
  UpdateReport report_;
};

}  // namespace weir
