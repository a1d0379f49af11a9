#pragma once
// A packet's layout: which headers it has, in 16 bits. Every rule that looks at a header matches it whole.

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

/// How parsing ended. Anything but `ok` names the first header that could not be read; the headers before it are good.
enum class ParseVerdict : std::uint8_t {
  ok,
  truncated_ethernet,   ///< shorter than 14 bytes
  truncated_vlan,       ///< ends inside a VLAN tag
  truncated_arp,        ///< ends inside ARP
  truncated_ipv4,       ///< ends inside the IPv4 header
  bad_ipv4,             ///< version not 4, header length below 20, or total length below the header's
  ipv4_length,          ///< total length beyond the end of the frame
  truncated_ipv6,       ///< ends inside the IPv6 header
  bad_ipv6,             ///< version not 6
  ipv6_length,          ///< payload length beyond the end of the frame
  truncated_extension,  ///< an IPv6 extension header ends beyond the payload
  headers_too_long,     ///< more than 8 extension headers, or more than 232 bytes from the L3 header on
  truncated_l4,         ///< the payload ends inside the TCP, UDP, SCTP or ICMP header
  bad_l4,               ///< TCP data offset or UDP length that cannot be
  truncated_vxlan,      ///< ends inside the VXLAN header
};
inline constexpr unsigned parse_verdicts = 15;

std::string_view name_of(ParseVerdict verdict);

enum class L3 : std::uint8_t { none = 0, arp = 1, ipv4 = 2, ipv6 = 3 };
/// `none`: a later fragment, or not readable; `other`: a protocol Weir does not parse. Bit 2: it has ports.
enum class L4 : std::uint8_t { none = 0, other = 1, icmp = 2, icmpv6 = 3, tcp = 4, udp = 5, sctp = 6 };

struct Layout {
  std::uint16_t bits = 0;

  static constexpr unsigned l3_shift = 2;
  static constexpr unsigned l4_shift = 4;
  static constexpr unsigned verdict_shift = 12;
  static constexpr std::uint16_t tags_mask = 0x3;
  static constexpr std::uint16_t l3_mask = 0x3 << l3_shift;
  static constexpr std::uint16_t l4_mask = 0x7 << l4_shift;
  static constexpr std::uint16_t ip_bit = 0x2 << l3_shift;     ///< set for IPv4 and IPv6
  static constexpr std::uint16_t ports_bit = 0x4 << l4_shift;  ///< set for TCP, UDP and SCTP
  static constexpr std::uint16_t fragment_bit = 1U << 7U;
  static constexpr std::uint16_t later_fragment_bit = 1U << 8U;  ///< a fragment, not the first
  static constexpr std::uint16_t options_bit = 1U << 9U;         ///< IPv4 options or IPv6 extension headers
  static constexpr std::uint16_t vxlan_bit = 1U << 10U;
  static constexpr std::uint16_t tunnel_bit = 1U << 11U;  ///< came out of a tunnel by decapsulation
  static constexpr std::uint16_t verdict_mask = 0xfU << verdict_shift;

  [[nodiscard]] constexpr unsigned tags() const { return bits & tags_mask; }
  [[nodiscard]] constexpr L3 l3() const { return static_cast<L3>((bits & l3_mask) >> l3_shift); }
  [[nodiscard]] constexpr L4 l4() const { return static_cast<L4>((bits & l4_mask) >> l4_shift); }
  [[nodiscard]] constexpr bool ip() const { return (bits & ip_bit) != 0; }
  [[nodiscard]] constexpr bool ports() const { return (bits & ports_bit) != 0; }
  [[nodiscard]] constexpr bool fragment() const { return (bits & fragment_bit) != 0; }
  [[nodiscard]] constexpr bool later_fragment() const { return (bits & later_fragment_bit) != 0; }
  [[nodiscard]] constexpr bool options() const { return (bits & options_bit) != 0; }
  [[nodiscard]] constexpr bool vxlan() const { return (bits & vxlan_bit) != 0; }
  [[nodiscard]] constexpr bool tunnel() const { return (bits & tunnel_bit) != 0; }
  [[nodiscard]] constexpr ParseVerdict verdict() const { return static_cast<ParseVerdict>(bits >> verdict_shift); }
  [[nodiscard]] constexpr bool ethernet() const { return verdict() != ParseVerdict::truncated_ethernet; }

  constexpr void set_tags(unsigned n) { bits = static_cast<std::uint16_t>((bits & ~tags_mask) | n); }
  constexpr void set_l3(L3 l3) {
    bits = static_cast<std::uint16_t>((bits & ~l3_mask) | (static_cast<unsigned>(l3) << l3_shift));
  }
  constexpr void set_l4(L4 l4) {
    bits = static_cast<std::uint16_t>((bits & ~l4_mask) | (static_cast<unsigned>(l4) << l4_shift));
  }
  constexpr void set(std::uint16_t bit) { bits = static_cast<std::uint16_t>(bits | bit); }
  constexpr void set_verdict(ParseVerdict verdict) {
    bits = static_cast<std::uint16_t>((bits & ~verdict_mask) | (static_cast<unsigned>(verdict) << verdict_shift));
  }

  /// "vlan ipv4 tcp", "ipv6 udp extensions first-fragment", "ethernet broken: truncated_ipv4"
  [[nodiscard]] std::string to_string() const;

  constexpr bool operator==(const Layout&) const = default;
};

}  // namespace weir
