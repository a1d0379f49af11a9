#pragma once
// An event loop for one thread: coroutine tasks, timers and descriptors, on epoll.
//
//   auto loop = Loop::create(clock);
//   (*loop)->spawn(serve(**loop, listener));
//   (*loop)->run();
//
// The loop belongs to the thread that polls it: everything but `post` and `stop` is for that thread (before it starts
// and after it ended, for its creator). Code that runs on the loop must not wait for anything, and must not poll.
// There may be any number of loops.

#include <atomic>
#include <cassert>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/descriptor.h>
#include <weir/base/error.h>
#include <weir/base/list.h>
#include <weir/base/spawned_task.h>
#include <weir/base/task.h>
#include <weir/base/timer_wheel.h>

namespace weir {

class Loop {
 public:
  using Function = std::move_only_function<void()>;
  class Sleep;
  class Readiness;

  /// A timeout that does not end.
  static constexpr auto forever = std::chrono::nanoseconds::max();

  /// A loop whose timers go by `clock`, which must outlive it. With a clock that stands still (ManualClock), timers
  /// fire at the first poll after the clock was moved; moving it does not wake a loop that waits. Fails if the process
  /// is out of descriptors; a loop uses three.
  static Result<std::unique_ptr<Loop>> create(const Clock& clock);

  /// Destroys all tasks that have not finished, then all posted functions that have not run. Timers are cancelled.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// Runs `task` from the next poll on, until it ends or the loop is destroyed. An exception that leaves a spawned
  /// task, or a function called by the loop, ends the process (std::terminate): there is nobody who could handle it.
  void spawn(Task<> task);

  /// The same, but for as long as the handle lives.
  SpawnedTask spawn_scoped(Task<> task);

  /// `co_await loop.sleep(1ms)`: goes on no earlier than that. Zero and less give way to whatever else is due.
  [[nodiscard]] Sleep sleep(std::chrono::nanoseconds duration);

  /// `Result<> ready = co_await loop.readable(fd)`: waits until a read from (a write to) `fd` would not block; end of
  /// file and errors on the descriptor count as that, and so does any file that epoll does not take. It is a hint: use
  /// non-blocking descriptors and be ready for EAGAIN. At most one task may wait for each direction of a descriptor;
  /// another one gets an error. Cancelling the task ends the wait. A descriptor must not be closed while a task waits
  /// for it, since the kernel would tell nobody: call `forget` first.
  [[nodiscard]] Readiness readable(int fd);
  [[nodiscard]] Readiness writable(int fd);

  /// Drops what the loop knows of `fd`: tasks that wait for it get an error, from the next poll on. Only needed before
  /// closing a descriptor that a task waits for.
  void forget(int fd);

  /// Calls `call` once, no earlier than after `duration`, unless the handle is destroyed before.
  [[nodiscard]] Timer after(std::chrono::nanoseconds duration, Function call);

  /// Calls `call` on the loop's thread at the next poll, in the order of posting. Any thread.
  void post(Function call);

  /// Polls until `stop`.
  void run();

  /// Makes `run` return after its current turn; if none is running, the next one returns at once. Any thread; also
  /// from a signal handler.
  void stop();

  /// One turn: waits up to `timeout` (rounded up to milliseconds) for something to do and does what there is. Returns
  /// how many tasks were resumed and functions called. It may return early and with 0: a signal, `stop` and
  /// housekeeping end the wait too.
  std::size_t poll_once(std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero());

  /// For embedding in another loop: a descriptor that is readable when `poll_once` has something to do (timers of a
  /// clock that stands still excepted). It may be readable without need. Owned by this loop; only wait for it.
  [[nodiscard]] int descriptor() const { return epoll_.get(); }

 private:
  friend class SpawnedTask;
  struct Interest {
    Readiness* reader = nullptr;
    Readiness* writer = nullptr;
    std::uint32_t generation = 0;
  };

  Loop(const Clock& clock, Descriptor epoll, Descriptor event, Descriptor timer);

  std::size_t turn(std::chrono::nanoseconds timeout) noexcept;
  std::size_t dispatch(int fd, std::uint32_t generation, std::uint32_t events);
  std::size_t run_posted();
  std::size_t run_ready();
  bool has_work() const;
  void settle();
  void arm_timer();
  void wake();
  void start_timer(WheelTimer& timer, std::chrono::nanoseconds duration);
  bool wait(Readiness& readiness);
  int arm(int fd, Interest& interest);
  void give_up(Readiness& readiness);
  void fail(Readiness*& waiter, const Error& why);
  bool wake_up(Readiness*& waiter);
  void resume(task_detail::Root& root, std::coroutine_handle<> at);
  void cancel(task_detail::Root& root);

  const Clock& clock_;
  Descriptor epoll_;
  Descriptor event_;  // eventfd: work was posted from outside a turn
  Descriptor timer_;  // timerfd: set to the wheel's next time before anyone waits

  TimerWheel wheel_;
  Nanoseconds armed_for_ = TimerWheel::never;
  std::unordered_map<int, Interest> interests_;
  std::uint32_t generation_ = 0;
  List<task_detail::Root> ready_;    // spawned, not started
  List<task_detail::Root> started_;  // the others
  List<Readiness> failed_;           // to be resumed with an error
  task_detail::Root* current_ = nullptr;
  bool in_turn_ = false;

  std::atomic<bool> stop_{false};
  std::atomic<bool> signalled_{false};  // event_ is readable, or about to be
  std::mutex mutex_;                    // guards posted_
  std::vector<Function> posted_;
};

/// What `sleep` gives; to be awaited where it stands.
class Loop::Sleep final : private WheelTimer {
 public:
  Sleep(Loop& loop, std::chrono::nanoseconds duration) : loop_(loop), duration_(duration) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <task_detail::Promise P>
  void await_suspend(std::coroutine_handle<P> task) {
    root_ = task.promise().root;
    task_ = task;
    assert(&root_->loop() == &loop_ && "a task waits on the loop it runs on");
    loop_.start_timer(*this, duration_);
  }
  void await_resume() const noexcept {}

 private:
  void expired() override { loop_.resume(*root_, task_); }

  Loop& loop_;
  std::chrono::nanoseconds duration_;
  task_detail::Root* root_ = nullptr;
  std::coroutine_handle<> task_;
};

/// What `readable` and `writable` give; to be awaited where it stands.
class Loop::Readiness final : private ListHook {
 public:
  Readiness(Loop& loop, int fd, bool write) : loop_(loop), fd_(fd), write_(write) {}
  ~Readiness() {
    if (waiting_) {
      loop_.give_up(*this);
    }
  }

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <task_detail::Promise P>
  bool await_suspend(std::coroutine_handle<P> task) {
    root_ = task.promise().root;
    task_ = task;
    assert(&root_->loop() == &loop_ && "a task waits on the loop it runs on");
    return loop_.wait(*this);
  }
  Result<> await_resume() { return std::move(result_); }

 private:
  friend class Loop;
  friend class List<Readiness>;

  Loop& loop_;
  int fd_;
  bool write_;
  bool waiting_ = false;  // the loop's interests point here
  task_detail::Root* root_ = nullptr;
  std::coroutine_handle<> task_;
  Result<> result_;
};

inline Loop::Sleep Loop::sleep(std::chrono::nanoseconds duration) { return {*this, duration}; }
inline Loop::Readiness Loop::readable(int fd) { return {*this, fd, false}; }
inline Loop::Readiness Loop::writable(int fd) { return {*this, fd, true}; }

}  // namespace weir
