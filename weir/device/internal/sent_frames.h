#pragma once
// Frames that were given to the kernel to send, until it has done so.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <weir/packet/packet.h>

namespace weir::device_internal {

/// Remembers which packet stands behind an address that was sent. The kernel gives addresses back about in the order in
/// which they were sent, and then finding one takes constant time; any other order works too. The same address may be
/// under way several times: it then lies in a buffer that copies share, and which of them is found makes no difference.
class SentFrames {
 public:
  /// Room for `capacity` frames, a power of two.
  explicit SentFrames(std::size_t capacity) : slots_(capacity) {}

  [[nodiscard]] std::size_t size() const { return head_ - tail_; }
  [[nodiscard]] std::size_t room() const { return slots_.size() - size(); }

  void add(std::uint64_t address, Packet* packet) { at(head_++) = {address, packet}; }

  /// The packet behind `address`, which is forgotten; nullptr if there is none.
  Packet* take(std::uint64_t address) {
    for (std::size_t i = tail_; i != head_; ++i) {
      if (at(i).address == address) {
        std::swap(at(i), at(tail_));
        return at(tail_++).packet;
      }
    }
    return nullptr;
  }

  /// Any one that is left, which is forgotten; nullptr at the end.
  Packet* take_any() { return tail_ == head_ ? nullptr : at(tail_++).packet; }

 private:
  struct Slot {
    std::uint64_t address = 0;
    Packet* packet = nullptr;
  };
  Slot& at(std::size_t i) { return slots_[i & (slots_.size() - 1)]; }

  std::vector<Slot> slots_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace weir::device_internal
