#include <weir/engine/host/bfd_packet.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

// RFC 5880, section 4.1: version 1, detection expired; Init, poll, control plane independent; 3; 24.
const Bytes example{0x21, 0xa8, 3, 24, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0x27, 0x10, 0, 0, 0x4e, 0x20, 0, 0, 0, 5};

BfdPacket parts() {
  return {.diagnostic = BfdDiagnostic::detection_expired,
          .state = BfdState::init,
          .poll = true,
          .control_plane_independent = true,
          .multiplier = 3,
          .my_discriminator = 7,
          .your_discriminator = 9,
          .desired_transmit = 10'000,
          .required_receive = 20'000,
          .required_echo_receive = 5};
}

Bytes with(std::size_t at, std::uint8_t value, Bytes bytes = example) {
  bytes.at(at) = value;
  return bytes;
}

Bytes longer(std::size_t by, Bytes bytes) {
  bytes.resize(bytes.size() + by);
  return bytes;
}

TEST(BfdPacket, OnTheWire) {
  const auto written = write_bfd(parts());
  EXPECT_EQ(Bytes(written.begin(), written.end()), example);
  EXPECT_EQ(read_bfd(example), parts());
}

struct Case {
  std::string name;
  Bytes bytes;
  std::optional<BfdFault> fault;
};

TEST(BfdPacket, IsChecked) {
  const std::vector<Case> table{
      {"as it should be", example, {}},
      {"with bytes behind it", longer(9, example), {}},
      {"empty", {}, BfdFault::malformed},
      {"a byte short", Bytes(example.begin(), example.end() - 1), BfdFault::malformed},
      {"version 0", with(0, 0x01), BfdFault::malformed},
      {"version 2", with(0, 0x41), BfdFault::malformed},
      {"an unknown diagnostic", with(0, 0x3f), {}},
      {"a length below the least", with(3, 23), BfdFault::malformed},
      {"a length beyond the payload", with(3, 25), BfdFault::malformed},
      {"a length with bytes behind", with(3, 26, longer(2, example)), {}},
      {"no multiplier", with(2, 0), BfdFault::malformed},
      {"multipoint", with(1, 0xa9), BfdFault::malformed},
      {"no discriminator", with(7, 0), BfdFault::malformed},
      {"Init for no session", with(11, 0), BfdFault::malformed},
      {"Up for no session", with(1, 0xe8, with(11, 0)), BfdFault::malformed},
      {"Down for no session", with(1, 0x68, with(11, 0)), {}},
      {"AdminDown for no session", with(1, 0x28, with(11, 0)), {}},
      {"authenticated, without room for it", with(1, 0xac), BfdFault::malformed},
      {"authenticated", with(1, 0xac, with(3, 26, longer(2, example))), BfdFault::authenticated},
      {"authenticated and no discriminator", with(7, 0, with(1, 0xac, with(3, 26, longer(2, example)))),
       BfdFault::malformed},
      {"demand", with(1, 0xaa), {}},
      {"final", with(1, 0x98), {}},
  };
  for (const Case& each : table) {
    SCOPED_TRACE(each.name);
    const auto read = read_bfd(each.bytes);
    EXPECT_EQ(read ? std::nullopt : std::optional(read.error()), each.fault);
  }
}

TEST(BfdPacket, AnyBytesAndBack) {
  Random random(5);
  for (int i = 0; i < 100'000; ++i) {
    Bytes bytes(random.below(64));
    for (std::uint8_t& byte : bytes) {
      byte = static_cast<std::uint8_t>(random.below(256));
    }
    if (bytes.size() >= 4 && random.one_in(2)) {
      bytes[0] = 0x20;
      bytes[3] = 24;
    }
    if (const auto read = read_bfd(bytes)) {
      ASSERT_EQ(read_bfd(write_bfd(*read)), *read);
    }
  }
}

}  // namespace
}  // namespace weir
