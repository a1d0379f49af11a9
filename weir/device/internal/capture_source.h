#pragma once
// Bytes of a capture, from memory or from a file, read once from front to back.

#include <cstdint>
#include <span>
#include <vector>

#include <weir/base/error.h>

namespace weir::device_internal {

/// Owns the descriptor it is given; memory must outlive it. A file that shrinks while it is read only ends early (which
/// is why it is not mapped).
class CaptureSource {
 public:
  /// The most that `peek` can show at once.
  static constexpr std::size_t window = 1U << 20U;

  explicit CaptureSource(std::span<const std::uint8_t> memory) : view_(memory), whole_(memory) {}
  explicit CaptureSource(int descriptor) : descriptor_(descriptor), buffer_(window) {}
  ~CaptureSource();
  CaptureSource(const CaptureSource&) = delete;
  CaptureSource& operator=(const CaptureSource&) = delete;

  /// The next `n` <= window bytes, or what there is if the input ends before. Valid until the next call of a member.
  std::span<const std::uint8_t> peek(std::size_t n) {
    if (view_.size() < n && descriptor_ >= 0) {
      fill(n);
    }
    return view_.first(n < view_.size() ? n : view_.size());
  }

  /// Passes over `n` bytes, or all there are.
  void skip(std::uint64_t n);

  /// Back to the first byte.
  void rewind();

  /// Where the next byte stands in the input.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  /// errno of a failed read, which looks like an end; 0 if there was none.
  [[nodiscard]] int failure() const { return failure_; }

 private:
  void fill(std::size_t n);

  int descriptor_ = -1;
  std::vector<std::uint8_t> buffer_;
  std::span<const std::uint8_t> view_;  // what was read and not passed over
  std::span<const std::uint8_t> whole_;
  std::uint64_t offset_ = 0;
  int failure_ = 0;
};

}  // namespace weir::device_internal
