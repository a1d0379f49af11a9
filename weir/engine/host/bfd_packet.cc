#include <weir/engine/host/bfd_packet.h>

#include <cstring>

#include <weir/packet/bytes.h>

namespace weir {

namespace {

struct Header {
  std::uint8_t version_diagnostic;  ///< version (3 bits), diagnostic (5)
  std::uint8_t state_flags;         ///< state (2 bits), then the flags below
  std::uint8_t multiplier;
  std::uint8_t length;
  Big32 my_discriminator;
  Big32 your_discriminator;
  Big32 desired_transmit;
  Big32 required_receive;
  Big32 required_echo_receive;
};
static_assert(sizeof(Header) == BfdPacket::bytes);

constexpr unsigned version = 1;
constexpr unsigned diagnostic_mask = 0x1f;
constexpr std::uint8_t poll_flag = 0x20;
constexpr std::uint8_t final_flag = 0x10;
constexpr std::uint8_t independent_flag = 0x08;
constexpr std::uint8_t authentication_flag = 0x04;
constexpr std::uint8_t demand_flag = 0x02;
constexpr std::uint8_t multipoint_flag = 0x01;
constexpr std::uint8_t least_authentication = 2;  // bytes

}  // namespace

std::string_view name_of(BfdState state) {
  constexpr std::string_view names[] = {"admin_down", "down", "init", "up"};
  return names[static_cast<unsigned>(state) % 4];
}

std::string_view name_of(BfdDiagnostic diagnostic) {
  constexpr std::string_view names[] = {"none",
                                        "detection_expired",
                                        "echo_failed",
                                        "neighbour_down",
                                        "forwarding_reset",
                                        "path_down",
                                        "concatenated_path_down",
                                        "admin_down",
                                        "reverse_concatenated_path_down"};
  const auto number = static_cast<std::size_t>(diagnostic);
  return number < std::size(names) ? names[number] : "reserved";
}

std::expected<BfdPacket, BfdFault> read_bfd(std::span<const std::uint8_t> payload) {
  constexpr auto malformed = std::unexpected(BfdFault::malformed);
  if (payload.size() < sizeof(Header)) {
    return malformed;
  }
  Header header;
  std::memcpy(&header, payload.data(), sizeof header);
  const std::uint8_t flags = header.state_flags;
  const bool authenticated = (flags & authentication_flag) != 0;
  const std::size_t least = sizeof(Header) + (authenticated ? least_authentication : 0U);
  if (header.version_diagnostic >> 5U != version || header.length < least || header.length > payload.size() ||
      header.multiplier == 0 || (flags & multipoint_flag) != 0 || header.my_discriminator == 0) {
    return malformed;
  }
  BfdPacket packet{.diagnostic = static_cast<BfdDiagnostic>(header.version_diagnostic & diagnostic_mask),
                   .state = static_cast<BfdState>(flags >> 6U),
                   .poll = (flags & poll_flag) != 0,
                   .final = (flags & final_flag) != 0,
                   .control_plane_independent = (flags & independent_flag) != 0,
                   .demand = (flags & demand_flag) != 0,
                   .multiplier = header.multiplier,
                   .my_discriminator = header.my_discriminator,
                   .your_discriminator = header.your_discriminator,
                   .desired_transmit = header.desired_transmit,
                   .required_receive = header.required_receive,
                   .required_echo_receive = header.required_echo_receive};
  // Only who has heard nothing yet names no session.
  if (packet.your_discriminator == 0 && packet.state != BfdState::down && packet.state != BfdState::admin_down) {
    return malformed;
  }
  if (authenticated) {
    return std::unexpected(BfdFault::authenticated);
  }
  return packet;
}

std::array<std::uint8_t, BfdPacket::bytes> write_bfd(const BfdPacket& packet) {
  const auto diagnostic = static_cast<unsigned>(packet.diagnostic) & diagnostic_mask;
  Header header{};
  header.version_diagnostic = static_cast<std::uint8_t>(version << 5U | diagnostic);
  header.state_flags = static_cast<std::uint8_t>(
      static_cast<unsigned>(packet.state) << 6U | (packet.poll ? poll_flag : 0U) | (packet.final ? final_flag : 0U) |
      (packet.control_plane_independent ? independent_flag : 0U) | (packet.demand ? demand_flag : 0U));
  header.multiplier = packet.multiplier;
  header.length = sizeof header;
  header.my_discriminator = packet.my_discriminator;
  header.your_discriminator = packet.your_discriminator;
  header.desired_transmit = packet.desired_transmit;
  header.required_receive = packet.required_receive;
  header.required_echo_receive = packet.required_echo_receive;
  std::array<std::uint8_t, BfdPacket::bytes> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace weir
