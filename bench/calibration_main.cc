// What the machine can do right now; printed around figures that are taken by scripts.

#include "calibration.h"
#include "measure.h"
#include <fmt/format.h>

int main() {
  fmt::print("noise: {:.3f} ns a step; bare loop: {:.1f} ns a packet\n", weir::bench::noise_ns(),
             weir::bench::calibrate(1024).forward_ns);
}
