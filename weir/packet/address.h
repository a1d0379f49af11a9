#pragma once
// Addresses, as bytes in network order, with their text forms.

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <weir/base/error.h>
#include <weir/base/hash.h>
#include <weir/packet/bytes.h>

namespace weir {

/// A 48-bit Ethernet address.
struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};

  auto operator<=>(const MacAddress&) const = default;
  [[nodiscard]] bool multicast() const { return (bytes[0] & 1U) != 0; }
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
    return hash_value(
        (std::uint64_t{load_big<std::uint32_t>(bytes.data())} << 16U) | load_big<std::uint16_t>(bytes.data() + 4),
        seed);
  }

  /// "02:00:00:00:00:01"
  static Result<MacAddress> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

struct Ipv4Address {
  std::array<std::uint8_t, 4> bytes{};

  auto operator<=>(const Ipv4Address&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
    return hash_value(load_big<std::uint32_t>(bytes.data()), seed);
  }
};

struct Ipv6Address {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const Ipv6Address&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
    return hash_value(load_big<std::uint64_t>(bytes.data() + 8),
                      hash_value(load_big<std::uint64_t>(bytes.data()), seed));
  }
};

/// An IPv4 or IPv6 address. An IPv4 address stands in the first four bytes, the rest is zero.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};
  bool v6 = false;

  IpAddress() = default;
  IpAddress(Ipv4Address address) {  // NOLINT: every IPv4 address is an IP address
    std::copy(address.bytes.begin(), address.bytes.end(), bytes.begin());
  }
  IpAddress(Ipv6Address address) : bytes(address.bytes), v6(true) {}  // NOLINT

  auto operator<=>(const IpAddress&) const = default;
  [[nodiscard]] unsigned bits() const { return v6 ? 128 : 32; }
  [[nodiscard]] bool multicast() const { return v6 ? bytes[0] == 0xff : (bytes[0] & 0xf0U) == 0xe0; }
  [[nodiscard]] Ipv4Address to_v4() const { return {{bytes[0], bytes[1], bytes[2], bytes[3]}}; }
  [[nodiscard]] Ipv6Address to_v6() const { return {bytes}; }
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return to_v6().hash(seed ^ (v6 ? 1 : 0)); }

  /// "10.0.0.1" or "2001:db8::1" (RFC 4291, section 2.2)
  static Result<IpAddress> parse(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

/// The addresses that share their first `length` bits with `address`. Bits beyond are zero.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;

  IpPrefix() = default;
  /// Clears the bits beyond `bits`; `bits` <= address.bits().
  IpPrefix(IpAddress base, unsigned bits);

  auto operator<=>(const IpPrefix&) const = default;
  [[nodiscard]] bool contains(const IpAddress& other) const;

  /// "10.0.0.0/8", or an address alone for the prefix of its full length. Host bits that are set are an error.
  static Result<IpPrefix> parse(std::string_view text);
  /// As `parse`, but host bits may be set and are kept apart: "10.1.0.2/24" is an interface's address and its network.
  static Result<std::pair<IpAddress, IpPrefix>> parse_interface(std::string_view text);
  [[nodiscard]] std::string to_string() const;
};

}  // namespace weir
