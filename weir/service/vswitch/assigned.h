#pragma once
// A table whose entries are configured: what differs from one configuration to the next becomes an update.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <weir/flow/update.h>

namespace weir::vswitch_internal {

/// The configured entries of a table that may hold learned ones as well. Remembers them, so that one change among many
/// thousands costs a comparison and no look at the table.
template <class K, class V>
class Assigned {
 public:
  using Entries = std::vector<std::pair<K, V>>;

  explicit Assigned(Table<K, V>& table) : table_(table) {}
  [[nodiscard]] Table<K, V>& table() const { return table_; }
  [[nodiscard]] const Entries& entries() const { return now_; }

  /// Records what makes the table hold `wanted` and no longer what was configured before. Lives as long as the update.
  void assign(Update& update, Entries wanted) {
    std::ranges::sort(wanted, {}, &std::pair<K, V>::first);
    auto before = now_.begin();
    for (const auto& entry : wanted) {
      for (; before != now_.end() && before->first < entry.first; ++before) {
        update.erase(table_, before->first);
      }
      const bool there = before != now_.end() && before->first == entry.first;
      if (!there || !(before->second == entry.second)) {
        update.set(table_, entry.first, entry.second);
      }
      before += there ? 1 : 0;
    }
    for (; before != now_.end(); ++before) {
      update.erase(table_, before->first);
    }
    update.afterwards([this, kept = std::make_shared<Entries>(std::move(wanted))] { now_ = std::move(*kept); });
  }

 private:
  Table<K, V>& table_;
  Entries now_;
};

}  // namespace weir::vswitch_internal
