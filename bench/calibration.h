#pragma once
// What this machine can do at best right now: the floor that figures are given as multiples of.

namespace weir::bench {

struct Calibration {
  double forward_ns;      ///< per packet: write, parse, hash, exact look-up, TTL and addresses, digest
  double encapsulate_ns;  ///< the same with a 50-byte header put in front
};

/// A bare loop over `flows` flows in random order, batches of 32, 64-byte packets; median of five, in processor time of
/// the calling thread. No rules, counters, queues or choices: only the work that no switch can avoid.
Calibration calibrate(unsigned flows);

/// How much more the bare loop forwards on two cores at once than on one (1,024 flows): what the machine itself allows.
double scale_of_two_cores();

}  // namespace weir::bench
