#pragma once
// What tells connections apart.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <weir/flow/maybe.h>
#include <weir/flow/port.h>
#include <weir/packet/address.h>
#include <weir/packet/bytes.h>

namespace weir {

/// Conversations of different zones have nothing to do with each other, whatever their addresses.
struct ConnectionZone {
  std::uint64_t number = 0;

  /// By where a packet belongs on the wire: its VLAN and the VNI of the tunnel that it came out of. Flow fills them in.
  static constexpr ConnectionZone by_link() { return {}; }
  /// Those of one port, to which packets go and from which they come: what guards the port sees both directions, each
  /// with the VLAN tag that it has at the port.
  static constexpr ConnectionZone of_port(PortId port) { return {std::uint64_t{ports} << 56U | port.number}; }
  /// One of a service's own, in which both directions are looked up whatever link they came by; 0 to 65,535.
  static constexpr ConnectionZone shared(std::uint16_t number) { return {std::uint64_t{services} << 56U | number}; }

  bool operator==(const ConnectionZone&) const = default;

  // In the top byte, what kind of zone it is.
  static constexpr std::uint8_t links = 0, ports = 1, services = 2;
  [[nodiscard]] constexpr std::uint8_t kind() const { return static_cast<std::uint8_t>(number >> 56U); }
  [[nodiscard]] constexpr PortId port() const {
    return kind() == ports ? PortId{static_cast<std::uint16_t>(number)} : PortId{};
  }
  [[nodiscard]] constexpr Maybe<std::uint16_t> vlan() const {
    const std::uint64_t field = number >> 16U & 0x1fffU;
    return field == 0 ? Maybe<std::uint16_t>() : static_cast<std::uint16_t>(field & 0xfffU);
  }
  [[nodiscard]] constexpr Maybe<std::uint32_t> vni() const {
    const std::uint64_t field = number >> 29U & 0x1ffffffU;
    return field == 0 ? Maybe<std::uint32_t>() : static_cast<std::uint32_t>(field & 0xffffffU);
  }
  constexpr void add_vlan(std::uint16_t id) { number |= (std::uint64_t{1} << 12U | id) << 16U; }
  constexpr void add_vni(std::uint32_t vni) { number |= (std::uint64_t{1} << 24U | vni) << 29U; }
};

/// Addresses, ports and protocol of a packet, in its zone. For ICMP both ports are the identifier of the echo, and
/// `role` tells requests from replies. Plain data.
struct ConnectionTuple {
  enum class Role : std::uint8_t { none, request, reply };

  IpAddress src, dst;
  std::uint16_t src_port = 0, dst_port = 0;
  std::uint8_t protocol = 0;
  Role role = Role::none;
  ConnectionZone zone;

  bool operator==(const ConnectionTuple&) const = default;

  /// That of an answer.
  [[nodiscard]] ConnectionTuple mirrored() const {
    ConnectionTuple other = *this;
    std::swap(other.src, other.dst);
    std::swap(other.src_port, other.dst_port);
    other.role = role == Role::request ? Role::reply : role == Role::reply ? Role::request : Role::none;
    return other;
  }

  /// The same for both directions.
  [[nodiscard]] std::uint64_t symmetric_hash(std::uint64_t seed) const {
    const auto end = [&](const IpAddress& address, std::uint16_t port) {
      return multiply_fold(load_big<std::uint64_t>(address.bytes.data()) ^ seed,
                           load_big<std::uint64_t>(address.bytes.data() + 8) ^ port ^ 0x9e3779b97f4a7c15U);
    };
    return multiply_fold((end(src, src_port) + end(dst, dst_port)) ^ seed,
                         (zone.number << 8U ^ protocol) * 2 + 0x9e3779b97f4a7c15U);
  }

  /// "tcp 10.0.0.1:40000 > 10.0.0.2:80"
  [[nodiscard]] std::string to_string() const;
};

}  // namespace weir
