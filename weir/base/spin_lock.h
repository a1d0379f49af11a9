#pragma once
// For critical sections of a few cache misses, off the fast path.

#include <atomic>

namespace weir {

/// A test-and-test-and-set lock; satisfies BasicLockable. Never held across a system call or a callback.
class SpinLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      while (locked_.load(std::memory_order_relaxed)) {
        pause();
      }
    }
  }

  bool try_lock() {
    return !locked_.load(std::memory_order_relaxed) && !locked_.exchange(true, std::memory_order_acquire);
  }

  void unlock() { locked_.store(false, std::memory_order_release); }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace weir
