#pragma once
// Packets that arrive at a steady rate, by arithmetic on the time at which they are asked for.

#include <algorithm>
#include <cstdint>
#include <limits>

#include <weir/base/clock.h>

namespace weir::device_internal {

/// A source of `rate` packets a second (1 or more), divided among `share` equal takers of whom this is number `index`,
/// before a queue of `room` packets. The first packet comes when the pacer is first asked. What arrives at a full queue
/// is lost.
class Pacer {
 public:
  static constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

  Pacer(std::uint64_t rate, std::uint64_t room, std::uint64_t count = endless, unsigned index = 0, unsigned share = 1)
      : rate_(rate), room_(room), count_(count), index_(index), share_(share) {}

  /// How many packets wait in the queue at `now`, after those that did not fit are counted as lost.
  std::uint64_t waiting(Nanoseconds now) {
    if (!started_) {
      started_ = true;
      start_ = now;
    }
    const std::uint64_t fallen_behind = arrived(now) - gone_;
    if (fallen_behind > room_) {
      lost_ += fallen_behind - room_;
      gone_ += fallen_behind - room_;
    }
    return std::min(fallen_behind, room_);
  }

  /// `n` of those that wait were taken.
  void take(std::uint64_t n) { gone_ += n; }

  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// Whether all `count` packets were taken or lost.
  [[nodiscard]] bool done() const { return gone_ == count_; }

 private:
  // Packet i of all takers arrives i / rate seconds after the start; this taker's are i = index, index + share, ...
  [[nodiscard]] std::uint64_t arrived(Nanoseconds now) const {
    __extension__ using Wide = unsigned __int128;
    const Nanoseconds elapsed = now > start_ ? now - start_ : 0;
    const auto all = static_cast<std::uint64_t>(static_cast<Wide>(elapsed) * rate_ / 1'000'000'000U) + 1;
    return std::min(all > index_ ? (all - index_ - 1) / share_ + 1 : 0, count_);
  }

  std::uint64_t rate_;
  std::uint64_t room_;
  std::uint64_t count_;
  unsigned index_;
  unsigned share_;
  bool started_ = false;
  Nanoseconds start_ = 0;
  std::uint64_t gone_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace weir::device_internal
