#pragma once
// What connection tracking reads of a packet beside its key: sequence numbers, SCTP chunks, the header that an ICMP
// error quotes. Off the fast path; the engines' `track` action reads what it needs itself.

#include <cstdint>
#include <span>

#include <weir/packet/address.h>
#include <weir/packet/layout.h>

namespace weir {

/// What becomes of the packet that an ICMP error quotes, where connections are translated.
struct QuotedTranslation {
  IpAddress src, dst;
  std::uint16_t src_port = 0, dst_port = 0;  ///< TCP, UDP, SCTP
  std::uint16_t icmp_id = 0;                 ///< ICMP, ICMPv6
  std::uint8_t protocol = 0;                 ///< of the quoted packet
  std::uint16_t l3 = 0, l4 = 0;              ///< of the quoted packet's headers, from the ICMP header on
  std::uint16_t bytes = 0;                   ///< quoted, from its L3 header on
};

/// A packet's addresses and ports, as the header that an ICMP error quotes has them.
struct QuotedPacket {
  IpAddress src, dst;
  std::uint8_t protocol = 0;
  std::uint16_t src_port = 0, dst_port = 0;  ///< TCP, UDP, SCTP
  std::uint8_t icmp_type = 0;                ///< ICMP and ICMPv6
  std::uint16_t icmp_id = 0;
  std::uint16_t l3 = 0;  ///< offset in the frame
  std::uint16_t l4 = 0;
  std::uint16_t bytes = 0;  ///< quoted, from the L3 header on

  void apply(const QuotedTranslation& translation) {
    src = translation.src;
    dst = translation.dst;
    src_port = translation.src_port;
    dst_port = translation.dst_port;
    icmp_id = translation.icmp_id;
  }
};

/// Plain data; what a packet does not have is zero.
struct TransportFacts {
  /// The headers that the rest is read from are all there.
  bool whole = false;
  /// A later fragment: it has none of them.
  bool later_fragment = false;

  // TCP (RFC 9293)
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  std::uint32_t payload = 0;  ///< bytes; of all segments, where the packet awaits segmentation
  std::uint16_t window = 0;   ///< as it stands in the header
  std::uint8_t flags = 0;
  bool has_scale = false;  ///< of a SYN: the window scale option is there (RFC 7323)
  std::uint8_t scale = 0;  ///< 0 to 14

  // SCTP (RFC 9260)
  std::uint8_t chunk = 0;              ///< type of the first one
  std::uint32_t verification_tag = 0;  ///< of the common header
  std::uint32_t initiate_tag = 0;      ///< of INIT and INIT ACK

  // ICMP, ICMPv6
  bool error = false;   ///< it is an error message
  bool quotes = false;  ///< and the packet that it quotes could be read as far as its ports
  QuotedPacket quoted{};
};

/// Where in a frame its headers are.
struct TransportPlace {
  std::span<const std::uint8_t> frame;  ///< its first bytes: all headers lie in them
  Layout layout;
  std::size_t l3 = 0, l4 = 0;     ///< offsets
  std::uint32_t frame_bytes = 0;  ///< of the whole frame
  bool segments = false;          ///< it awaits segmentation: IP's length field does not count
};

/// Reads no byte beyond `place.frame`, whatever the headers say.
TransportFacts read_transport(const TransportPlace& place);

/// Whether an ICMP (or ICMPv6) message of this type reports an error about a packet that it quotes.
bool is_icmp_error(bool v6, std::uint8_t type);

}  // namespace weir
