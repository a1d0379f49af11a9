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
  // The rules belong to other cores' caches: asking for some lines ahead of their use, many come at once.
  constexpr int ahead = 16;
  DependencyLink* scout = std::exchange(first_, nullptr);
  DependencyLink* link = scout;
  const auto ask = [&scout] {
    if (scout != nullptr) {
      __builtin_prefetch(scout->rule, 1);
      scout = scout->next;
    }
  };
  for (int i = 0; i < ahead; ++i) {
    ask();
  }
  std::size_t cleared = 0;
  for (; link != nullptr; link = link->next) {
    ask();
    cleared += link->rule->valid.exchange(0, std::memory_order_acq_rel);
    fold(*link);
  }
  return cleared;
}

bool Dependents::link(DependencyLink& link, std::uint32_t generation) {
  const std::lock_guard guard(lock_);
  if (generation != generation_) {
    return false;
  }
  link.list = this;
  link.generation = generation;
  link.previous = nullptr;
  link.next = first_;
  if (first_ != nullptr) {
    first_->previous = &link;
  }
  first_ = &link;
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
  (link.previous != nullptr ? link.previous->next : list->first_) = link.next;
  if (link.next != nullptr) {
    link.next->previous = link.previous;
  }
}

Nanoseconds Dependents::last_used(const Refreshable& refreshed, std::uint32_t token) const {
  Nanoseconds latest = 0;
  for (const DependencyLink* link = first_; link != nullptr; link = link->next) {
    if (link->refreshed == &refreshed && link->token == token) {
      latest = std::max(latest, link->rule->last_used.load(std::memory_order_relaxed));
    }
  }
  return latest;
}

}  // namespace weir
