#include <weir/flow/dependency.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace weir {

void Dependents::fold(const DependencyLink& link) {
  if (link.refreshed != nullptr) {
    link.refreshed->touch(link.token, link.rule->last_used.load(std::memory_order_relaxed));
  }
}

std::size_t Dependents::changed() {
  ++generation_;
  // Links and rules belong to other cores' caches, a hundred nanoseconds away: each is asked for ahead of its use, the
  // link first, which says where the rule is, so that many are on their way at once.
  constexpr std::size_t ahead = 16;
  const std::size_t count = links_.size();
  for (std::size_t i = 0; i < std::min(2 * ahead, count); ++i) {
    __builtin_prefetch(links_[i]);
  }
  for (std::size_t i = 0; i < std::min(ahead, count); ++i) {
    __builtin_prefetch(links_[i]->rule, 1);
  }
  std::size_t cleared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + 2 * ahead < count) {
      __builtin_prefetch(links_[i + 2 * ahead]);
    }
    if (i + ahead < count) {
      __builtin_prefetch(links_[i + ahead]->rule, 1);
    }
    cleared += links_[i]->rule->valid.exchange(0, std::memory_order_acq_rel);
    fold(*links_[i]);
  }
  links_.clear();
  return cleared;
}

bool Dependents::link(DependencyLink& link, std::uint32_t generation) {
  const std::lock_guard guard(lock_);
  if (generation != generation_) {
    return false;
  }
  link.list = this;
  link.generation = generation_;
  link.place = static_cast<std::uint32_t>(links_.size());
  links_.push_back(&link);
  return true;
}

void Dependents::unlink(DependencyLink& link) {
  Dependents* list = std::exchange(link.list, nullptr);
  if (list == nullptr) {
    return;
  }
  const std::lock_guard guard(list->lock_);
  if (link.generation != list->generation_) {
    return;
  }
  fold(link);
  // The last takes its place.
  DependencyLink* last = list->links_.back();
  list->links_[link.place] = last;
  last->place = link.place;
  list->links_.pop_back();
}

Nanoseconds Dependents::last_used(const Refreshable& refreshed, std::uint32_t token) const {
  Nanoseconds latest = 0;
  for (const DependencyLink* link : links_) {
    if (link->refreshed == &refreshed && link->token == token) {
      latest = std::max(latest, link->rule->last_used.load(std::memory_order_relaxed));
    }
  }
  return latest;
}

}  // namespace weir
