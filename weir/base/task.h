#pragma once
// Coroutine tasks. A task is a function that can wait without a thread:
//
//   Task<std::size_t> read_some(Loop& loop, int fd, std::span<std::byte> into) {
//     if (auto ready = co_await loop.readable(fd); !ready) { ... }
//     co_return ::read(fd, into.data(), into.size());
//   }
//
// A task starts when it is awaited (by another task) or spawned (Loop::spawn), and then runs on that loop's thread.
// Its parameters live as long as the task, so take by value what the caller may not keep alive. A lambda's captures
// are not parameters: a capturing lambda that is a coroutine must outlive its task.
//
// Do not write co_await inside a conditional expression (`c ? co_await a : co_await b`): g++ 12 destroys its result
// twice. Use an if statement. Nor in a loop's condition (`while (co_await a) {}`): its code for that ends the process.

#include <cassert>
#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace weir {

namespace task_detail {

class Root;

/// What the promise of a task and of a root have in common.
struct PromiseBase {
  std::coroutine_handle<> continuation;  ///< who awaits this task
  Root* root = nullptr;                  ///< the spawned task that this one runs for
};

template <class P>
concept Promise = std::derived_from<P, PromiseBase>;

/// At a task's end its awaiter goes on, by symmetric transfer: a chain of tasks that finish without waiting does not
/// use up the stack (in optimised builds; g++ makes no tail calls without optimisation or with sanitizers).
struct FinalAwaiter {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <Promise P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> finished) const noexcept {
    return finished.promise().continuation;
  }
  void await_resume() const noexcept {}
};

class TaskPromiseBase : public PromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

 protected:
  void rethrow() {
    if (exception_) {
      std::rethrow_exception(std::exchange(exception_, nullptr));
    }
  }

 private:
  std::exception_ptr exception_;
};

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  std::coroutine_handle<TaskPromise> get_return_object() noexcept {
    return std::coroutine_handle<TaskPromise>::from_promise(*this);
  }
  template <class V = T>
    requires std::convertible_to<V&&, T>
  void return_value(V&& value) {
    value_.emplace(std::forward<V>(value));
  }
  T result() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  std::coroutine_handle<TaskPromise> get_return_object() noexcept {
    return std::coroutine_handle<TaskPromise>::from_promise(*this);
  }
  void return_void() noexcept {}
  void result() { rethrow(); }
};

}  // namespace task_detail

/// A lazy coroutine that gives a T. Owned by whoever holds it; awaited at most once, with `co_await std::move(task)` or
/// on the call itself. An exception that leaves the task is thrown at its awaiter; for a spawned task see Loop::spawn.
/// Destroying a task that has not finished cancels it: it never goes on, its local variables are destroyed, innermost
/// call first, and what it waited for is given up. A task must not be destroyed from its own code.
template <class T = void>
class [[nodiscard]] Task {
 public:
  static_assert(!std::is_reference_v<T>, "a task gives a value; return a pointer instead");
  using promise_type = task_detail::TaskPromise<T>;

  Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}  // NOLINT: from get_return_object
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~Task() { destroy(); }

  class Awaiter {
   public:
    explicit Awaiter(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    template <task_detail::Promise P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> awaiting) noexcept {
      handle_.promise().continuation = awaiting;
      handle_.promise().root = awaiting.promise().root;
      return handle_;
    }
    T await_resume() { return handle_.promise().result(); }

   private:
    std::coroutine_handle<promise_type> handle_;
  };

  /// Starts the task and waits for its result.
  Awaiter operator co_await() && noexcept {
    assert(handle_ && !handle_.done() && !handle_.promise().continuation && "a task is awaited once");
    return Awaiter(handle_);
  }

 private:
  void destroy() {
    if (handle_) {
      std::exchange(handle_, nullptr).destroy();
    }
  }

  std::coroutine_handle<promise_type> handle_;
};

}  // namespace weir
