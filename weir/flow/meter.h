#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include <weir/base/clock.h>

namespace weir {

/// A rate with a burst, as the generic cell rate algorithm (ITU-T I.371): one word of state, no lock.
class Meter {
 public:
  /// `per_second` > 0 units (packets or bytes), `burst` units at once.
  Meter(std::string name, std::uint64_t per_second, std::uint64_t burst, bool bytes)
      : name_(std::move(name)), per_second_(per_second), burst_(burst), bytes_(bytes) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Whether a packet of `length` bytes at `now` is within the rate; if so, it is charged. Any thread.
  bool conforms(std::uint32_t length, Nanoseconds now) {
    const Nanoseconds cost = time_for(bytes_ ? length : 1);
    const Nanoseconds tolerance = time_for(burst_);
    Nanoseconds full = full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const Nanoseconds next = std::max(full, now) + cost;
      if (next > now + tolerance) {
        return false;
      }
      if (full_at_.compare_exchange_weak(full, next, std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  [[nodiscard]] Nanoseconds time_for(std::uint64_t units) const { return units * 1'000'000'000U / per_second_; }

  std::string name_;
  std::uint64_t per_second_;
  std::uint64_t burst_;
  bool bytes_;
  std::atomic<Nanoseconds> full_at_{0};  // when the bucket, were nothing to come, would be empty of debt
};

}  // namespace weir
