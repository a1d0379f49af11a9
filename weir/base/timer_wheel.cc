#include <weir/base/timer_wheel.h>

#include <algorithm>
#include <bit>

namespace weir {

void WheelTimer::cancel() {
  if (wheel_ != nullptr) {
    wheel_->detach(*this);
  }
}

TimerWheel::~TimerWheel() {
  const auto drop = [](List<WheelTimer>& list) {
    while (WheelTimer* timer = list.pop_front()) {
      timer->wheel_ = nullptr;
    }
  };
  std::ranges::for_each(slots_, drop);
  drop(due_);
  drop(firing_);
}

void TimerWheel::start(WheelTimer& timer, Nanoseconds deadline) {
  timer.cancel();
  timer.wheel_ = this;
  timer.deadline_ = deadline;
  ++size_;
  place(timer);
}

void TimerWheel::place(WheelTimer& timer) {
  if (timer.deadline_ <= elapsed_) {
    timer.slot_ = WheelTimer::no_slot;
    due_.push_back(timer);
    return;
  }
  const auto highest_bit = static_cast<unsigned>(std::bit_width(timer.deadline_ ^ elapsed_)) - 1;
  const unsigned level = highest_bit / digit_bits;
  const auto digit = static_cast<unsigned>(timer.deadline_ >> (level * digit_bits)) % slots;
  timer.slot_ = static_cast<std::uint16_t>(level * slots + digit);
  occupied_[level] |= std::uint64_t{1} << digit;
  slots_[timer.slot_].push_back(timer);
}

void TimerWheel::detach(WheelTimer& timer) {
  timer.unlink();
  timer.wheel_ = nullptr;
  --size_;
  if (timer.slot_ != WheelTimer::no_slot && slots_[timer.slot_].empty()) {
    occupied_[timer.slot_ / slots] &= ~(std::uint64_t{1} << (timer.slot_ % slots));
  }
}

// At each level only digits above that of the current time are occupied, and a level's timers all come before those
// of the levels above; so the first bit of the first level with one is the first slot in time.
bool TimerWheel::find_first(First& first) const {
  for (unsigned level = 0; level < levels; ++level) {
    if (occupied_[level] == 0) {
      continue;
    }
    const auto digit = static_cast<unsigned>(std::countr_zero(occupied_[level]));
    const unsigned shift = level * digit_bits;
    const Nanoseconds above = shift + digit_bits < 64 ? (elapsed_ >> (shift + digit_bits)) << (shift + digit_bits) : 0;
    first = {level * slots + digit, above | (Nanoseconds{digit} << shift)};
    return true;
  }
  return false;
}

std::size_t TimerWheel::advance(Nanoseconds now) {
  for (First first{}; find_first(first) && first.start <= now;) {
    elapsed_ = first.start;
    occupied_[first.slot / slots] &= ~(std::uint64_t{1} << (first.slot % slots));
    // Each goes to a lower level or becomes due, never back to this slot.
    while (WheelTimer* timer = slots_[first.slot].pop_front()) {
      place(*timer);
    }
  }
  elapsed_ = std::max(elapsed_, now);
  firing_.take(due_);
  std::size_t fired = 0;
  while (WheelTimer* timer = firing_.pop_front()) {
    timer->wheel_ = nullptr;
    --size_;
    ++fired;
    timer->expired();
  }
  return fired;
}

Nanoseconds TimerWheel::next() const {
  if (!due_.empty() || !firing_.empty()) {
    return elapsed_;
  }
  First first{};
  if (!find_first(first)) {
    return never;
  }
  Nanoseconds earliest = never;
  unsigned looked_at = 0;
  for (const WheelTimer* timer = slots_[first.slot].front(); timer; timer = slots_[first.slot].next(*timer)) {
    if (++looked_at > 8) {
      return first.start;
    }
    earliest = std::min(earliest, timer->deadline_);
  }
  return earliest;
}

}  // namespace weir
