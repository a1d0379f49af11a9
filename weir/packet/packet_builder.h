#pragma once
// Packets made by hand, for tests, examples and generators:
//
//     PacketBuilder().vlan(100).ipv4("10.0.0.1", "10.0.0.2").ttl(64).tcp(1234, 80, tcp_flag::syn).payload(10).bytes()
//
// Headers are named from the outside in. Lengths, types and checksums come out right; for a packet that is wrong, edit
// the bytes. What cannot be meant (an address that is none, two L4 headers) throws std::invalid_argument.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <weir/packet/address.h>
#include <weir/packet/tcp.h>

namespace weir {

class PacketBuilder {
 public:
  /// Without this: from 02:00:00:00:00:01 to 02:00:00:00:00:02.
  PacketBuilder& eth(std::string_view src, std::string_view dst);
  /// EtherType behind all tags, of a packet without L3 (0x88b5, "local experimental", unless set), or a wrong one.
  PacketBuilder& eth_type(std::uint16_t type);
  /// One tag more, inside those before. `type`: 0x8100 or 0x88a8.
  PacketBuilder& vlan(std::uint16_t id, std::uint8_t priority = 0, std::uint16_t type = 0x8100);

  PacketBuilder& arp(std::uint16_t operation, std::string_view sender_mac, std::string_view sender_ip,
                     std::string_view target_mac, std::string_view target_ip);

  PacketBuilder& ipv4(std::string_view src, std::string_view dst);
  PacketBuilder& ipv6(std::string_view src, std::string_view dst);
  /// TTL or hop limit; 64 unless set.
  PacketBuilder& ttl(std::uint8_t ttl);
  /// TOS or traffic class.
  PacketBuilder& tos(std::uint8_t tos);
  /// IPv4 identification, or that of the IPv6 fragment header.
  PacketBuilder& id(std::uint32_t id);
  PacketBuilder& dont_fragment();
  /// Protocol (or last next header) of a packet without one of the L4 headers below; 253, "experimental", unless set.
  PacketBuilder& protocol(std::uint8_t protocol);
  /// IPv4 options of `bytes` (a multiple of 4, at most 40): no-operations and an end.
  PacketBuilder& options(unsigned bytes);
  /// An IPv6 extension header of `bytes` (a multiple of 8; of 4 for the authentication header): 0, 43, 51 or 60.
  PacketBuilder& extension(std::uint8_t type, unsigned bytes = 8);
  /// The packet is the fragment that carries `bytes` bytes from `offset` (a multiple of 8) on of what follows the IPv4
  /// header, or, for IPv6, of what is named after this call. Lengths and checksums further in are those of the whole.
  PacketBuilder& fragment(unsigned offset, unsigned bytes);

  PacketBuilder& tcp(std::uint16_t src_port, std::uint16_t dst_port, std::uint8_t flags = tcp_flag::ack);
  PacketBuilder& sequence(std::uint32_t sequence, std::uint32_t acknowledgment);
  /// TCP options of `bytes` (a multiple of 4, at most 40).
  PacketBuilder& tcp_options(unsigned bytes);
  PacketBuilder& udp(std::uint16_t src_port, std::uint16_t dst_port);
  PacketBuilder& sctp(std::uint16_t src_port, std::uint16_t dst_port);
  /// `rest`: the header's last four bytes; of an echo, identifier and sequence number.
  PacketBuilder& icmp(std::uint8_t type, std::uint8_t code = 0, std::uint32_t rest = 0);
  PacketBuilder& icmpv6(std::uint8_t type, std::uint8_t code = 0, std::uint32_t rest = 0);
  /// VXLAN over UDP (from 49152 to 4789, without a checksum, unless `udp` was called) with `inner` inside.
  PacketBuilder& vxlan(std::uint32_t vni, const PacketBuilder& inner);

  /// `bytes` bytes 0, 1, 2, ... behind the last header.
  PacketBuilder& payload(std::size_t bytes);
  PacketBuilder& payload(std::span<const std::uint8_t> bytes);
  /// Zeros behind the packet, as Ethernet pads: until the frame has `bytes` bytes.
  PacketBuilder& pad_to(std::size_t bytes);

  [[nodiscard]] std::vector<std::uint8_t> bytes() const;

 private:
  enum class Network : std::uint8_t { none, arp, ipv4, ipv6 };
  struct Tag {
    std::uint16_t type;
    std::uint16_t control;
  };
  struct Extension {
    std::uint8_t type;
    unsigned bytes;
  };

  PacketBuilder& set_network(Network network);
  PacketBuilder& set_transport(std::uint8_t protocol, unsigned header_bytes);
  [[nodiscard]] std::vector<std::uint8_t> transport() const;
  void append_ipv4(std::vector<std::uint8_t>& out) const;
  void append_ipv6(std::vector<std::uint8_t>& out) const;
  [[nodiscard]] std::uint16_t type() const;

  MacAddress eth_src_{{2, 0, 0, 0, 0, 1}};
  MacAddress eth_dst_{{2, 0, 0, 0, 0, 2}};
  int eth_type_ = -1;
  std::vector<Tag> tags_;

  Network network_ = Network::none;
  std::vector<std::uint8_t> arp_;
  IpAddress src_;
  IpAddress dst_;
  std::uint8_t ttl_ = 64;
  std::uint8_t tos_ = 0;
  std::uint32_t id_ = 0;
  bool dont_fragment_ = false;
  std::uint8_t protocol_ = 253;
  unsigned options_ = 0;
  std::vector<Extension> extensions_;
  int fragment_at_ = -1;  // extensions in front of the fragment header; -1: not a fragment
  unsigned fragment_offset_ = 0;
  unsigned fragment_bytes_ = 0;

  bool has_transport_ = false;
  bool plain_checksum_ = true;  // false: UDP's is left zero
  std::vector<std::uint8_t> header_;
  std::vector<std::uint8_t> payload_;
  std::size_t pad_to_ = 0;
};

}  // namespace weir
