#pragma once
// Packets for tests, wrapped from the inside out: ethernet(ipv4({.ttl = 1}, udp(1000, 53, payload(20)))). Lengths and
// checksums are right unless a test spoils them.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::testing {

using Bytes = std::vector<std::uint8_t>;

/// A transport packet and its protocol number. Its checksum is filled in by the IP header put around it.
struct Transport {
  std::uint8_t protocol = 0;
  Bytes bytes;
};

struct Ipv4Options {
  std::string_view src = "10.0.0.1";
  std::string_view dst = "10.0.1.1";
  std::uint8_t ttl = 64;
  std::uint8_t tos = 0;
  std::uint16_t fragment = 0;  ///< flags and offset, as on the wire
  Bytes options{};             ///< a multiple of 4 bytes
};

struct Ipv6Options {
  std::string_view src = "2001:db8::1";
  std::string_view dst = "2001:db8:1::1";
  std::uint8_t hop_limit = 64;
  std::uint8_t traffic_class = 0;
  /// Extension headers: type, and bytes from the second on (the first is the next header).
  std::vector<std::pair<std::uint8_t, Bytes>> extensions{};
};

/// An EtherType and what follows it.
struct Content {
  std::uint16_t type = 0;
  Bytes bytes;
};

/// 0, 1, 2, ...
Bytes payload(std::size_t bytes);

Transport tcp(std::uint16_t src, std::uint16_t dst, std::uint8_t flags, const Bytes& data, const Bytes& options = {});
Transport udp(std::uint16_t src, std::uint16_t dst, const Bytes& data);
/// Without a checksum.
Transport udp_unsummed(std::uint16_t src, std::uint16_t dst, const Bytes& data);
Transport sctp(std::uint16_t src, std::uint16_t dst, const Bytes& data);
Transport icmp(std::uint8_t type, std::uint8_t code, std::uint16_t id, const Bytes& data);
Transport icmpv6(std::uint8_t type, std::uint8_t code, std::uint16_t id, const Bytes& data);
/// UDP to port 4789 without a checksum, around `inner`, a frame.
Transport vxlan(std::uint32_t vni, const Bytes& inner);

Content ipv4(const Ipv4Options& options, const Transport& transport);
Content ipv6(const Ipv6Options& options, const Transport& transport);
Content arp(std::uint16_t operation);

/// A frame; `tags`: control words, the outer one first, all of type 0x8100 but an outer one of two (0x88a8).
Bytes ethernet(const Content& content, const std::vector<std::uint16_t>& tags = {});

/// What is wrong with the checksums of a frame, `bytes`, which is well formed and not fragmented; empty if nothing.
std::string_view wrong_checksum(const Bytes& bytes);

}  // namespace weir::testing
