#pragma once
// A connected socket on a loop, with deadlines.

#include <string>
#include <string_view>

#include <weir/base/descriptor.h>
#include <weir/base/loop.h>

namespace weir {

/// Owns a connected, non-blocking socket. One task at a time.
class Stream {
 public:
  enum class Outcome : std::uint8_t {
    done,
    closed,  ///< by the other side, or broken
    late,    ///< the deadline, a time of the loop's clock, has passed
  };

  Stream(Loop& loop, Descriptor socket) : loop_(loop), socket_(std::move(socket)) {}
  ~Stream() { loop_.forget(socket_.get()); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Appends what has arrived, at most 16 KiB; waits until something has.
  Task<Outcome> read(std::string& into, Nanoseconds deadline);
  /// Writes all of it. `bytes` must live as long as the task.
  Task<Outcome> write(std::string_view bytes, Nanoseconds deadline);

 private:
  Task<Outcome> wait(bool for_write, Nanoseconds deadline);

  Loop& loop_;
  Descriptor socket_;
};

}  // namespace weir
