#pragma once
// Rates of a running node, as medians over windows.

#include <cstdint>
#include <string>
#include <vector>

#include <sched.h>

#include <weir/weir.h>

namespace weir::bench {

std::uint64_t thread_cpu_ns();

/// What one window, or the median of several, saw.
struct Rate {
  double mpps = 0;                          ///< packets out of `port` per microsecond of wall time
  double ns = 0;                            ///< processor time of all workers per packet
  double cpu_share = 0;                     ///< of one worker, mean
  double hits = 0, probes = 0, misses = 0;  ///< per packet
  std::uint64_t rules = 0, masks = 0;
};

/// Keeps the calling thread off the first processors, where workers are pinned, while it lives: a measuring thread that
/// wakes up there takes a millisecond from a worker. Made after the node has started, which counts the processors that
/// its caller may use.
class OutOfTheWay {
 public:
  OutOfTheWay();
  ~OutOfTheWay();
  OutOfTheWay(const OutOfTheWay&) = delete;
  OutOfTheWay& operator=(const OutOfTheWay&) = delete;

 private:
  cpu_set_t before_;
};

/// Lets a started node warm up for `warm_ms`, then measures five windows of `window_ms` and returns the median by
/// rate. Counts what leaves by `port`.
Rate measure(Node& node, PortId port, unsigned warm_ms = 400, unsigned window_ms = 400);

/// Time in which one addition loop of fixed length runs now, in ns per step: a quiet machine shows the same number
/// everywhere it is printed.
double noise_ns();

}  // namespace weir::bench
