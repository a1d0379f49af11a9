#pragma once
// One packet of every kind that the engines treat differently.

#include <string>

#include <weir/base/random.h>
#include <weir/engine/testing/test_node.h>

namespace weir::testing {

struct Specimen {
  std::string name;
  TestPacket packet;
  bool sound = true;  ///< lengths and checksums are right
};

/// About a hundred.
std::vector<Specimen> corpus();

/// `packet` cut off at every length; and once more with the IP lengths made to fit, so that the cut falls into what the
/// parser reads.
std::vector<TestPacket> truncations(const TestPacket& packet);

/// `packet` with one to four of its first 120 bytes changed.
TestPacket mutation(const TestPacket& packet, Random& random);

}  // namespace weir::testing
