#pragma once
// A hierarchical timer wheel: starting, cancelling and firing a timer take constant time, whatever the number of
// timers.
//
// Deadlines are exact, in nanoseconds. A timer sits at the level of the highest base-64 digit in which its deadline
// differs from the wheel's time, and moves down as the time comes closer (at most ten times, typically four). Empty
// stretches of time are skipped by bitmap, so advancing costs by timers, not by time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <weir/base/clock.h>
#include <weir/base/list.h>

namespace weir {

class TimerWheel;

/// Something that happens at a time. Cancels itself when it is destroyed. One thread, the wheel's.
class WheelTimer : private ListHook {
 public:
  WheelTimer() = default;
  virtual ~WheelTimer() { cancel(); }

  /// Started, and neither fired nor cancelled.
  [[nodiscard]] bool pending() const { return wheel_ != nullptr; }
  [[nodiscard]] Nanoseconds deadline() const { return deadline_; }

  void cancel();

 protected:
  /// Called once, no longer pending; may start, cancel and destroy timers, this one included.
  virtual void expired() = 0;

 private:
  friend class TimerWheel;
  friend class List<WheelTimer>;
  static constexpr std::uint16_t no_slot = 0xffff;

  TimerWheel* wheel_ = nullptr;
  Nanoseconds deadline_ = 0;
  std::uint16_t slot_ = no_slot;
};

/// Timers by deadline. One thread. Timers that outlive the wheel are cancelled by its end.
class TimerWheel {
 public:
  static constexpr Nanoseconds never = ~Nanoseconds{0};

  explicit TimerWheel(Nanoseconds now) : elapsed_(now) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel();

  /// Starts `timer`, or moves it if it is pending. One whose deadline has passed fires at the next `advance`.
  void start(WheelTimer& timer, Nanoseconds deadline);

  /// Moves the time to `now` (never back) and fires what is due, in the order of deadlines and, among equal ones, of
  /// starting. Timers that these start fire at a later call at the earliest, even if due. Returns how many fired. Not
  /// to be called from a timer.
  std::size_t advance(Nanoseconds now);

  /// When to call `advance` next: not later than the first deadline, and exactly then if few timers share its slot.
  /// `never` without timers.
  [[nodiscard]] Nanoseconds next() const;

  /// Pending timers.
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  friend class WheelTimer;
  static constexpr unsigned digit_bits = 6;
  static constexpr unsigned slots = 1U << digit_bits;
  static constexpr unsigned levels = (64 + digit_bits - 1) / digit_bits;

  struct First {
    unsigned slot;  // level * slots + digit
    Nanoseconds start;
  };
  [[nodiscard]] bool find_first(First& first) const;
  void place(WheelTimer& timer);
  void detach(WheelTimer& timer);

  Nanoseconds elapsed_;
  std::size_t size_ = 0;
  std::array<std::uint64_t, levels> occupied_{};  // one bit a slot
  std::array<List<WheelTimer>, levels * slots> slots_;
  List<WheelTimer> due_;     // fire at the next advance
  List<WheelTimer> firing_;  // fire in this one
};

/// A function to be called once, later; destroying or replacing the handle cancels it. The handle may be destroyed by
/// the function it calls, and may outlive the loop or wheel.
class Timer {
 public:
  using Function = std::move_only_function<void()>;

  /// Not running.
  Timer() = default;
  Timer(TimerWheel& wheel, Nanoseconds deadline, Function call) : Timer(std::move(call)) {
    wheel.start(*callback_, deadline);
  }

  [[nodiscard]] bool pending() const { return callback_ && callback_->pending(); }
  void cancel() { callback_.reset(); }

 private:
  friend class Loop;
  explicit Timer(Function call) : callback_(std::make_unique<Callback>(std::move(call))) {}

  class Callback final : public WheelTimer {
   public:
    explicit Callback(Function call) : call_(std::move(call)) {}

   private:
    void expired() override {
      Function call = std::move(call_);  // which may destroy this timer
      call();
    }
    Function call_;
  };

  std::unique_ptr<Callback> callback_;
};

}  // namespace weir
