#include <weir/flow/state.h>

#include <limits>
#include <stdexcept>

#include <weir/base/log.h>

namespace weir {

Group& State::group(std::string name) {
  const std::lock_guard guard(mutex_);
  if (groups_.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw std::length_error(fmt::format("group '{}' is one too many; a node has at most 65,536", name));
  }
  return groups_.emplace_back(std::move(name), static_cast<std::uint16_t>(groups_.size()), epochs_);
}

std::shared_ptr<Counter> State::temporary_counter(std::string name) {
  const std::lock_guard guard(mutex_);
  if (temporary_counters_.size() >= look_through_at_) {
    std::erase_if(temporary_counters_, [](const auto& other) { return other.second.expired(); });
    look_through_at_ = std::max<std::size_t>(64, 2 * temporary_counters_.size());
  }
  auto& known = temporary_counters_[name];
  auto counter = known.lock();
  if (counter == nullptr) {
    counter = std::make_shared<Counter>(std::move(name));
    known = counter;
  }
  return counter;
}

Group* State::find_group(std::uint16_t id) const {
  const std::lock_guard guard(mutex_);
  return id < groups_.size() ? const_cast<Group*>(&groups_[id]) : nullptr;
}

ReasonId State::reason(const DropReason& reason) {
  const std::lock_guard guard(mutex_);
  const auto [place, fresh] =
      reason_ids_.try_emplace(std::string(reason.name), static_cast<ReasonId>(reason_texts_.size()));
  if (fresh) {
    if (reason_texts_.size() == max_reasons - 1) {
      reason_texts_.emplace_back("other", "a reason beyond the first 255");
    } else if (reason_texts_.size() == max_reasons) {
      place->second = max_reasons - 1;
    } else {
      reason_texts_.emplace_back(reason.name, reason.help);
    }
  }
  return place->second;
}

DropReason State::reason(ReasonId id) const {
  const std::lock_guard guard(mutex_);
  return {reason_texts_[id].first, reason_texts_[id].second};
}

unsigned State::reasons() const {
  const std::lock_guard guard(mutex_);
  return static_cast<unsigned>(reason_texts_.size());
}

void State::add(RuleHolder& holder) {
  const std::lock_guard guard(holders_mutex_);
  holders_.push_back(&holder);
}

void State::remove(RuleHolder& holder) {
  const std::lock_guard guard(holders_mutex_);
  std::erase(holders_, &holder);
}

void State::report(std::string_view stage, std::string_view message) {
  {
    const std::lock_guard guard(mutex_);
    // Bounded: a stage that words its errors by packet must not fill the log.
    if (reported_.size() >= 100 || !reported_.insert(fmt::format("{}: {}", stage, message)).second) {
      return;
    }
  }
  log::error("stage '{}': {}; such packets are dropped (stage_error)", stage, message);
}

Neighbours& State::neighbours() {
  std::call_once(neighbours_made_, [this] {
    const TableOptions options{.capacity = Neighbours::capacity, .idle = Neighbours::lifetime};
    neighbours_ = std::make_unique<Neighbours>(table<NeighbourKey, MacAddress>("neighbours", options));
    has_neighbours_.store(true, std::memory_order_release);
  });
  return *neighbours_;
}

Connections& State::connections() {
  std::call_once(connections_made_, [this] {
    connections_ = &keep(
        tables_, std::make_unique<Connections>(seed_, connection_limit_, [this](Nanoseconds at) { schedule(at); }));
    connections_->set_timeouts(connection_timeouts_);
    has_connections_.store(true, std::memory_order_release);
  });
  return *connections_;
}

void State::schedule(Nanoseconds at) {
  Nanoseconds seen = next_expiry_.load(std::memory_order_relaxed);
  while (at < seen && !next_expiry_.compare_exchange_weak(seen, at, std::memory_order_relaxed)) {
  }
}

void State::expire_due(Nanoseconds now) {
  const std::unique_lock guard(expiry_mutex_, std::try_to_lock);
  if (!guard.owns_lock()) {
    return;  // another worker is at it
  }
  next_expiry_.store(~Nanoseconds{0}, std::memory_order_relaxed);
  std::vector<TableBase*> tables;
  {
    const std::lock_guard list_guard(mutex_);
    for (const auto& table : tables_) {
      tables.push_back(table.get());
    }
  }
  for (TableBase* table : tables) {
    schedule(table->expire(now));
  }
}

std::size_t State::revoke(std::uint64_t sources, std::span<const KeyRegion> regions) {
  const EpochScope scope(epochs_);
  const std::lock_guard guard(holders_mutex_);
  std::size_t cleared = 0;
  for (RuleHolder* holder : holders_) {
    cleared += holder->revoke(sources, regions);
  }
  return cleared;
}

}  // namespace weir
