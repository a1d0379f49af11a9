#pragma once
// A task that a loop runs, and the handle that can cancel it.

#include <coroutine>
#include <exception>
#include <utility>

#include <weir/base/list.h>
#include <weir/base/task.h>

namespace weir {

class Loop;

/// Owns a task that was spawned on a loop: destroying the handle cancels the task, as destroying a Task does. The
/// loop's thread only. May outlive the loop, which cancels all tasks when it ends. A task may destroy the handle to
/// itself: it is then destroyed as soon as it waits or ends.
class [[nodiscard]] SpawnedTask {
 public:
  /// No task.
  SpawnedTask() = default;
  SpawnedTask(SpawnedTask&& other) noexcept;
  SpawnedTask& operator=(SpawnedTask&& other) noexcept;
  ~SpawnedTask() { cancel(); }

  /// The task has finished or was cancelled.
  [[nodiscard]] bool done() const { return root_ == nullptr; }
  void cancel();

 private:
  friend class task_detail::Root;
  explicit SpawnedTask(task_detail::Root& root);
  friend class Loop;
  task_detail::Root* root_ = nullptr;
};

namespace task_detail {

/// The promise of the coroutine at the bottom of every spawned task; on a list of its loop.
class Root final : public PromiseBase, public ListHook {
 public:
  struct Coroutine {
    using promise_type = Root;
    Root* root;
  };

  /// Wraps `task`, which starts when the root is resumed. Owned by the caller, to be freed by `destroy`.
  static Root& create(Loop& loop, Task<> task) {
    Root& created = *run(std::move(task)).root;
    created.loop_ = &loop;
    return created;
  }

  Root() { root = this; }

  Coroutine get_return_object() noexcept { return {this}; }
  std::suspend_always initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void return_void() noexcept {}
  void unhandled_exception() noexcept { std::terminate(); }

  [[nodiscard]] std::coroutine_handle<> handle() { return std::coroutine_handle<Root>::from_promise(*this); }
  [[nodiscard]] Loop& loop() { return *loop_; }

  /// Frees the coroutine and all it awaits. Not while it is running.
  void destroy() {
    unlink();
    release();  // first, since a variable of the task may be the handle to it
    handle().destroy();
  }

  /// To be destroyed when it stops running.
  void cancel_later() {
    release();
    cancelled_ = true;
  }
  [[nodiscard]] bool over() { return cancelled_ || handle().done(); }

 private:
  friend class weir::SpawnedTask;

  static Coroutine run(Task<> task) {
    Task<> own = std::move(task);  // a variable, so it is destroyed before the promise
    co_await std::move(own);
  }

  void release() {
    if (SpawnedTask* owner = std::exchange(owner_, nullptr)) {
      owner->root_ = nullptr;
    }
  }

  Loop* loop_ = nullptr;
  SpawnedTask* owner_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace task_detail

inline SpawnedTask::SpawnedTask(task_detail::Root& root) : root_(&root) { root.owner_ = this; }

inline SpawnedTask::SpawnedTask(SpawnedTask&& other) noexcept : root_(std::exchange(other.root_, nullptr)) {
  if (root_ != nullptr) {
    root_->owner_ = this;
  }
}

inline SpawnedTask& SpawnedTask::operator=(SpawnedTask&& other) noexcept {
  if (this != &other) {
    cancel();
    root_ = std::exchange(other.root_, nullptr);
    if (root_ != nullptr) {
      root_->owner_ = this;
    }
  }
  return *this;
}

}  // namespace weir
