#pragma once
// Packets from one worker to another.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

#include <weir/packet/packet.h>

namespace weir {

/// A queue with one writer and one reader, neither of which waits.
class PacketRing {
 public:
  static constexpr std::size_t capacity = 1024;

  /// Room left, as the writer may count on. Writer.
  [[nodiscard]] std::size_t room() const {
    return capacity - (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire));
  }
  /// False if it is full. Writer.
  bool push(Packet* packet) {
    if (room() == 0) {
      return false;
    }
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    slots_[tail % capacity] = packet;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  /// Takes up to out.size() packets; returns how many. Reader.
  std::size_t pop(std::span<Packet*> out) {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t count = std::min(out.size(), tail_.load(std::memory_order_acquire) - head);
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = slots_[(head + i) % capacity];
    }
    head_.store(head + count, std::memory_order_release);
    return count;
  }
  /// Any thread; may be out of date at once.
  [[nodiscard]] bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::size_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }

 private:
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::array<Packet*, capacity> slots_{};
};

}  // namespace weir
