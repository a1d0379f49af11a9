#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include <weir/base/clock.h>

namespace weir {

/// A rate with a burst, as the generic cell rate algorithm (ITU-T I.371): one word of state, no lock. Keeps time in
/// 64ths of a nanosecond since its first packet, so that a small packet at 100 Gbit/s (5 ns) is charged to half a per
/// cent; good for nine years.
class Meter {
 public:
  /// `per_second` > 0 units (packets or bytes), `burst` units at once (at most a year's worth counts).
  Meter(std::string name, std::uint64_t per_second, std::uint64_t burst, bool bytes)
      : name_(std::move(name)), per_second_(per_second), bytes_(bytes) {
    constexpr Nanoseconds year = 365ULL * 24 * 3600 * ticks_per_second;
    const double ticks = static_cast<double>(burst) / static_cast<double>(per_second) * double{ticks_per_second};
    tolerance_ = ticks < static_cast<double>(year) / 2 ? exact(burst) : year;
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Whether a packet of `length` bytes at `now` is within the rate; if so, it is charged. Any thread.
  bool conforms(std::uint32_t length, Nanoseconds now) {
    // A packet's units times ticks_per_second stay below 2^64: 65,535 bytes times 2^36.
    const std::uint64_t cost = (bytes_ ? length : 1) * ticks_per_second / per_second_;
    const std::uint64_t tick = ticks_since_first(now);
    std::uint64_t full = full_at_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t next = std::max(full, tick) + cost;
      if (next > tick + tolerance_) {
        return false;
      }
      if (full_at_.compare_exchange_weak(full, next, std::memory_order_relaxed)) {
        return true;
      }
    }
  }

 private:
  static constexpr std::uint64_t ticks_per_ns = 64;
  static constexpr std::uint64_t ticks_per_second = ticks_per_ns * 1'000'000'000;
  static constexpr Nanoseconds unset = ~Nanoseconds{0};

  [[nodiscard]] std::uint64_t exact(std::uint64_t units) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{units} * ticks_per_second / per_second_);
  }
  std::uint64_t ticks_since_first(Nanoseconds now) {
    Nanoseconds first = first_.load(std::memory_order_relaxed);
    if (first == unset && first_.compare_exchange_strong(first, now, std::memory_order_relaxed)) {
      first = now;
    }
    return now > first ? (now - first) * ticks_per_ns : 0;  // another thread's clock reading may be the older one
  }

  std::string name_;
  std::uint64_t per_second_;
  std::uint64_t tolerance_;  // in ticks
  bool bytes_;
  std::atomic<Nanoseconds> first_{unset};  // when the first packet came
  std::atomic<std::uint64_t> full_at_{0};  // tick at which the bucket, were nothing to come, would be empty of debt
};

}  // namespace weir
