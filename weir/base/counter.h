#pragma once
// Counters that a worker adds to without sharing a cache line, and that are summed when read.

#include <atomic>
#include <cstdint>

namespace weir {

/// A number one thread adds to and any thread reads. Adding is a plain load and store, not a locked operation.
class OwnedCounter {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void set(std::uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace weir
