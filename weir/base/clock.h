#pragma once
// Time is injected: whoever needs it is given a Clock, so that tests and captures can set it.

#include <atomic>
#include <chrono>
#include <cstdint>

#include <time.h>

namespace weir {

/// Nanoseconds since some fixed point of the clock at hand.
using Nanoseconds = std::uint64_t;

inline constexpr Nanoseconds nanoseconds(std::chrono::nanoseconds duration) {
  return static_cast<Nanoseconds>(duration.count());
}

/// A source of time. All members may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Nanoseconds now() const = 0;

  /// Whether time passes while one waits, as fast as CLOCK_MONOTONIC or nearly so.
  [[nodiscard]] virtual bool runs() const { return true; }
};

/// CLOCK_MONOTONIC.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return read(); }

  static Nanoseconds read() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000U + static_cast<Nanoseconds>(t.tv_nsec);
  }
};

/// A clock that stands still until it is moved; it never goes back.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanoseconds start = 0) : now_(start) {}
  [[nodiscard]] Nanoseconds now() const override { return now_.load(std::memory_order_acquire); }
  [[nodiscard]] bool runs() const override { return false; }

  void advance(Nanoseconds by) { now_.fetch_add(by, std::memory_order_acq_rel); }

  /// Moves the clock to `time`; an earlier time leaves it where it is.
  void set(Nanoseconds time) {
    Nanoseconds seen = now_.load(std::memory_order_relaxed);
    while (seen < time && !now_.compare_exchange_weak(seen, time, std::memory_order_acq_rel)) {
    }
  }

 private:
  std::atomic<Nanoseconds> now_;
};

}  // namespace weir
