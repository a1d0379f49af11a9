#pragma once
// The 64 bytes of a packet that a rule can match: what the parser fills and every engine's tables compare.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <weir/packet/bytes.h>
#include <weir/packet/layout.h>

namespace weir {

/// Everything is in network byte order but `ingress`, `layout` and `stage`. What a packet does not have is zero.
/// Some fields have another meaning where their usual one cannot occur:
///   ARP:     src/dst hold the sender's/target's IP (4 bytes) and MAC (6 bytes); src_port the operation
///   no L3:   src[0..1] holds the EtherType
///   ICMP(v6): src_port holds type and code, dst_port bytes 4 and 5 of the header (the identifier of an echo)
struct alignas(32) Key {
  std::uint16_t ingress = 0;  ///< port number; in delivery, delivery_bit and the number of the egress port
  std::uint16_t layout = 0;   ///< Layout::bits
  std::uint8_t stage = 0;     ///< where in the graph this look-up starts
  std::uint8_t protocol = 0;  ///< IPv4 protocol or the last IPv6 next header
  std::uint8_t tos = 0;       ///< IPv4 TOS or IPv6 traffic class
  std::uint8_t ttl = 0;       ///< IPv4 TTL or IPv6 hop limit
  std::array<std::uint8_t, 6> eth_dst{};
  std::array<std::uint8_t, 6> eth_src{};
  std::array<std::uint8_t, 2> vlan{};        ///< outer tag's control
  std::array<std::uint8_t, 2> vlan_inner{};  ///< inner tag's control
  std::array<std::uint8_t, 3> vni{};         ///< of the VXLAN header, or of the tunnel the packet came out of
  std::uint8_t tcp_flags = 0;
  std::array<std::uint8_t, 2> src_port{};
  std::array<std::uint8_t, 2> dst_port{};
  std::array<std::uint8_t, 16> src{};
  std::array<std::uint8_t, 16> dst{};

  /// In `ingress`: the look-up starts on the delivery side of a port.
  static constexpr std::uint16_t delivery_bit = 0x8000;

  static constexpr std::size_t words = 8;

  [[nodiscard]] std::uint64_t word(std::size_t i) const {
    std::uint64_t value;
    std::memcpy(&value, reinterpret_cast<const std::uint8_t*>(this) + 8 * i, 8);
    return value;
  }
  void set_word(std::size_t i, std::uint64_t value) {
    std::memcpy(reinterpret_cast<std::uint8_t*>(this) + 8 * i, &value, 8);
  }
  [[nodiscard]] std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(this); }
  [[nodiscard]] const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(this); }

  bool operator==(const Key& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};
static_assert(sizeof(Key) == 64);
static_assert(offsetof(Key, eth_dst) == 8 && offsetof(Key, vni) == 24 && offsetof(Key, src) == 32);

inline Key operator&(const Key& a, const Key& b) {
  Key result;
  for (std::size_t i = 0; i < Key::words; ++i) {
    result.set_word(i, a.word(i) & b.word(i));
  }
  return result;
}

inline Key operator|(const Key& a, const Key& b) {
  Key result;
  for (std::size_t i = 0; i < Key::words; ++i) {
    result.set_word(i, a.word(i) | b.word(i));
  }
  return result;
}

/// Whether all bits of `inner` are in `outer`.
inline bool covers(const Key& outer, const Key& inner) {
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < Key::words; ++i) {
    missing |= inner.word(i) & ~outer.word(i);
  }
  return missing == 0;
}

/// Whether `a` and `b` agree on the bits of `mask`.
inline bool equal_under(const Key& a, const Key& b, const Key& mask) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < Key::words; ++i) {
    difference |= (a.word(i) ^ b.word(i)) & mask.word(i);
  }
  return difference == 0;
}

}  // namespace weir
