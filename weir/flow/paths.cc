#include <weir/flow/paths.h>

#include <algorithm>

namespace weir {

void Paths::want(const std::string& who, std::vector<PathWish> wishes) {
  if (!wishes.empty()) {
    (void)table();  // made before the lock is taken: the node's state has one of its own, under which it may ask for
                    // `alive`
  }
  const std::lock_guard guard(mutex_);
  auto& mine = wishes_[who];
  if (mine == wishes) {
    return;
  }
  mine = std::move(wishes);
  std::map<PathKey, std::optional<BfdSettings>> wanted;
  for (const auto& [service, each] : wishes_) {
    for (const PathWish& wish : each) {
      if (wanted.size() == capacity && !wanted.contains(wish.key)) {
        continue;
      }
      auto& bfd = wanted[wish.key];
      if (!bfd || (wish.bfd && wish.bfd->interval < bfd->interval)) {
        bfd = wish.bfd;
      }
    }
  }
  for (auto& [key, record] : records_) {
    if (record.wanted && !wanted.contains(key)) {
      record = {.alive = record.alive};
      table().erase(key, false);
      tell(key, record);
    }
  }
  for (const auto& [key, bfd] : wanted) {
    Record& record = records_[key];
    record.wanted = true;
    record.bfd = bfd;
    if (!bfd) {
      record.session.reset();
    }
    tell(key, record);
  }
  drop_unused();
  version_.fetch_add(1, std::memory_order_release);
}

std::vector<PathWish> Paths::wanted() const {
  const std::lock_guard guard(mutex_);
  std::vector<PathWish> all;
  for (const auto& [key, record] : records_) {
    if (record.wanted) {
      all.push_back({key, record.bfd});
    }
  }
  return all;
}

bool Paths::up(const PathKey& key) const {
  const std::lock_guard guard(mutex_);
  const auto place = records_.find(key);
  return up_now(key, place != records_.end() ? place->second : Record{});
}

Paths::Alive Paths::alive(const PathKey& key) {
  const std::lock_guard guard(mutex_);
  drop_unused();
  Record& record = records_[key];
  auto flag = record.alive.lock();
  if (flag == nullptr) {
    flag = std::make_shared<std::atomic<bool>>(up_now(key, record));
    record.alive = flag;
  }
  return flag;
}

void Paths::link(PortId port, bool up) {
  const std::lock_guard guard(mutex_);
  down_[port.number] = !up;
  const auto first = records_.lower_bound({port, {}});
  for (auto place = first; place != records_.end() && place->first.port == port; ++place) {
    tell(place->first, place->second);
  }
}

void Paths::session(const PathKey& key, std::optional<bool> up) {
  const std::lock_guard guard(mutex_);
  const auto place = records_.find(key);
  // A session may end after it is no longer wanted.
  if (place != records_.end() && place->second.bfd && place->second.session != up) {
    place->second.session = up;
    tell(key, place->second);
  }
}

void Paths::forget(PortId port) {
  const std::lock_guard guard(mutex_);
  for (auto& [service, each] : wishes_) {
    std::erase_if(each, [port](const PathWish& wish) { return wish.key.port == port; });
  }
  const std::size_t gone = std::erase_if(records_, [port](const auto& entry) { return entry.first.port == port; });
  if (gone != 0) {
    version_.fetch_add(1, std::memory_order_release);
  }
}

bool Paths::up_now(const PathKey& key, const Record& record) const {
  return !down_[key.port.number] && record.session.value_or(true);
}

// Rules that depend on the path are cleared, and groups pass over it, before this returns.
void Paths::tell(const PathKey& key, const Record& record) {
  const bool up = up_now(key, record);
  if (record.wanted && table().learn(key, {up}, 0).outcome != Learned::unchanged) {
    changes_.fetch_add(1, std::memory_order_release);
  }
  if (const auto flag = record.alive.lock()) {
    flag->store(up, std::memory_order_release);
  }
}

void Paths::drop_unused() {
  std::erase_if(records_, [](const auto& entry) { return !entry.second.wanted && entry.second.alive.expired(); });
}

}  // namespace weir
