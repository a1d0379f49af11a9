#pragma once
// BFD control packets as data: read and written (RFC 5880, section 4.1).

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace weir {

/// In the order of their numbers.
enum class BfdState : std::uint8_t { admin_down, down, init, up };

/// Why a session last went down; in the order of their numbers.
enum class BfdDiagnostic : std::uint8_t {
  none,
  detection_expired,
  echo_failed,
  neighbour_down,
  forwarding_reset,
  path_down,
  concatenated_down,
  admin_down,
  reverse_concatenated_down,
};

std::string_view name_of(BfdState state);
/// "reserved" for numbers that mean nothing yet.
std::string_view name_of(BfdDiagnostic diagnostic);

/// Intervals are in microseconds.
struct BfdPacket {
  static constexpr std::size_t bytes = 24;

  BfdDiagnostic diagnostic = BfdDiagnostic::none;
  BfdState state = BfdState::down;
  bool poll = false;
  bool final = false;
  bool control_plane_independent = false;
  bool demand = false;
  std::uint8_t multiplier = 1;
  std::uint32_t my_discriminator = 0;
  std::uint32_t your_discriminator = 0;
  std::uint32_t desired_transmit = 0;
  std::uint32_t required_receive = 0;
  std::uint32_t required_echo_receive = 0;

  bool operator==(const BfdPacket&) const = default;
};

enum class BfdFault : std::uint8_t {
  malformed,      ///< one of the checks of RFC 5880, section 6.8.6
  authenticated,  ///< its A bit is set; sessions have no authentication
};

/// What the payload of a UDP packet says. Bytes behind the packet's own length are no fault.
std::expected<BfdPacket, BfdFault> read_bfd(std::span<const std::uint8_t> payload);

std::array<std::uint8_t, BfdPacket::bytes> write_bfd(const BfdPacket& packet);

}  // namespace weir
