#include <weir/packet/transport.h>

#include <algorithm>

#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/sctp.h>
#include <weir/packet/tcp.h>

namespace weir {

namespace {

using Bytes = std::span<const std::uint8_t>;

template <class T>
const T* header_at(Bytes bytes, std::size_t at) {
  return at <= bytes.size() && bytes.size() - at >= sizeof(T) ? reinterpret_cast<const T*>(bytes.data() + at) : nullptr;
}

// RFC 9293, section 3.1: kind, and but for the first two kinds a length that counts both.
void read_tcp_options(Bytes options, TransportFacts& facts) {
  constexpr std::uint8_t end = 0;
  constexpr std::uint8_t nothing = 1;
  constexpr std::uint8_t window_scale = 3;
  for (std::size_t at = 0; at < options.size() && options[at] != end;) {
    if (options[at] == nothing) {
      ++at;
      continue;
    }
    if (at + 1 >= options.size() || options[at + 1] < 2 || options[at + 1] > options.size() - at) {
      return;
    }
    if (options[at] == window_scale && options[at + 1] == 3) {
      facts.has_scale = true;
      facts.scale = std::min<std::uint8_t>(options[at + 2], 14);  // RFC 7323, section 2.3
    }
    at += options[at + 1];
  }
}

// Bytes of the packet from its L4 header on, as its IP header has it.
std::uint32_t l4_bytes(const TransportPlace& place) {
  if (place.segments) {
    return place.frame_bytes - static_cast<std::uint32_t>(place.l4);
  }
  const auto headers = static_cast<std::uint32_t>(place.l4 - place.l3);
  const std::uint8_t* l3 = place.frame.data() + place.l3;
  const std::uint32_t total = place.layout.l3() == L3::ipv4
                                  ? load_big<std::uint16_t>(l3 + 2)
                                  : std::uint32_t{load_big<std::uint16_t>(l3 + 4)} + sizeof(Ipv6Header);
  return total > headers ? total - headers : 0;
}

void read_tcp(const TransportPlace& place, TransportFacts& facts) {
  const auto* tcp = header_at<TcpHeader>(place.frame, place.l4);
  if (tcp == nullptr) {
    return;
  }
  const std::uint32_t length = tcp->header_length();
  const std::uint32_t bytes = l4_bytes(place);
  if (length < sizeof(TcpHeader) || length > bytes) {
    return;
  }
  facts.whole = true;
  facts.sequence = tcp->sequence;
  facts.acknowledgment = tcp->acknowledgment;
  facts.window = tcp->window;
  facts.flags = tcp->flags;
  facts.payload = bytes - length;
  if ((tcp->flags & tcp_flag::syn) != 0) {
    const std::size_t options = place.l4 + sizeof(TcpHeader);
    const std::size_t end = std::min(place.frame.size(), place.l4 + length);
    read_tcp_options(place.frame.subspan(options, end - options), facts);
  }
}

void read_sctp(const TransportPlace& place, TransportFacts& facts) {
  constexpr std::size_t common = 12;
  constexpr std::size_t chunk_header = 4;
  const Bytes frame = place.frame;
  if (place.l4 + common + chunk_header > frame.size()) {
    return;
  }
  facts.whole = true;
  facts.verification_tag = load_big<std::uint32_t>(frame.data() + place.l4 + 4);
  facts.chunk = frame[place.l4 + common];
  const std::size_t value = place.l4 + common + chunk_header;
  if ((facts.chunk == sctp_chunk::init || facts.chunk == sctp_chunk::init_ack) && value + 4 <= frame.size()) {
    facts.initiate_tag = load_big<std::uint32_t>(frame.data() + value);
  }
}

// Finds the L4 header of a quoted packet; false if it is not the first fragment, or its headers are not all quoted.
bool find_quoted_l4(Bytes frame, QuotedPacket& quoted) {
  if (!quoted.src.v6) {
    const auto* ip = header_at<Ipv4Header>(frame, quoted.l3);
    const std::size_t length = (ip->version_length & 0x0fU) * 4U;
    quoted.protocol = ip->protocol;
    quoted.l4 = static_cast<std::uint16_t>(quoted.l3 + length);
    return length >= sizeof(Ipv4Header) && (ip->fragment & Ipv4Header::offset_mask) == 0;
  }
  const auto* ip = header_at<Ipv6Header>(frame, quoted.l3);
  std::uint8_t next = ip->next_header;
  std::size_t at = quoted.l3 + sizeof(Ipv6Header);
  for (unsigned headers = 0; headers < 8; ++headers) {
    if (next == ipv6_extension::hop_by_hop || next == ipv6_extension::routing || next == ipv6_extension::destination) {
      if (at + 2 > frame.size()) {
        return false;
      }
      next = frame[at];
      at += (frame[at + 1] + 1U) * 8U;
    } else if (next == ipv6_extension::fragment) {
      if (at + 8 > frame.size() || (load_big<std::uint16_t>(frame.data() + at + 2) & 0xfff8U) != 0) {
        return false;
      }
      next = frame[at];
      at += 8;
    } else {
      quoted.protocol = next;
      quoted.l4 = static_cast<std::uint16_t>(at);
      return true;
    }
  }
  return false;
}

// Eight bytes of L4 are enough (RFC 792): ports, or type and identifier.
void read_quote(const TransportPlace& place, TransportFacts& facts) {
  const Bytes frame = place.frame;
  QuotedPacket& quoted = facts.quoted;
  const std::size_t at = place.l4 + 8;
  quoted.l3 = static_cast<std::uint16_t>(at);
  if (place.layout.l3() == L3::ipv4) {
    const auto* ip = header_at<Ipv4Header>(frame, at);
    if (ip == nullptr || ip->version_length >> 4U != 4) {
      return;
    }
    quoted.src = IpAddress(ip->src);
    quoted.dst = IpAddress(ip->dst);
  } else {
    const auto* ip = header_at<Ipv6Header>(frame, at);
    if (ip == nullptr || frame[at] >> 4U != 6) {
      return;
    }
    quoted.src = IpAddress(ip->src);
    quoted.dst = IpAddress(ip->dst);
  }
  const std::uint32_t l4_length = l4_bytes(place);
  quoted.bytes = static_cast<std::uint16_t>(l4_length > 8 ? l4_length - 8 : 0);
  if (!find_quoted_l4(frame, quoted) || quoted.l4 + 8U > frame.size() || quoted.l4 - quoted.l3 + 8U > quoted.bytes) {
    return;
  }
  const std::uint8_t* l4 = frame.data() + quoted.l4;
  switch (quoted.protocol) {
    case ip_protocol::tcp:
    case ip_protocol::udp:
    case ip_protocol::sctp:
      quoted.src_port = load_big<std::uint16_t>(l4);
      quoted.dst_port = load_big<std::uint16_t>(l4 + 2);
      break;
    case ip_protocol::icmp:
    case ip_protocol::icmpv6:
      quoted.icmp_type = l4[0];
      quoted.icmp_id = load_big<std::uint16_t>(l4 + 4);
      break;
    default:
      break;
  }
  facts.quotes = true;
}

void read_icmp(const TransportPlace& place, TransportFacts& facts) {
  if (place.l4 + 8 > place.frame.size()) {
    return;
  }
  facts.whole = true;
  facts.error = is_icmp_error(place.layout.l3() == L3::ipv6, place.frame[place.l4]);
  if (facts.error) {
    read_quote(place, facts);
  }
}

}  // namespace

bool is_icmp_error(bool v6, std::uint8_t type) {
  if (v6) {
    return type < 128;  // RFC 4443, section 2.1
  }
  // Redirects are not among them: they speak of the way, not of the packet, and nobody should pass them on.
  return type == icmp_type::unreachable || type == icmp_type::source_quench || type == icmp_type::time_exceeded ||
         type == icmp_type::parameter_problem;
}

TransportFacts read_transport(const TransportPlace& place) {
  TransportFacts facts;
  const Layout layout = place.layout;
  facts.later_fragment = layout.later_fragment();
  if (!layout.ip() || layout.later_fragment() || place.l4 <= place.l3 || place.l4 > place.frame.size()) {
    return facts;
  }
  switch (layout.l4()) {
    case L4::tcp:
      read_tcp(place, facts);
      break;
    case L4::sctp:
      read_sctp(place, facts);
      break;
    case L4::icmp:
    case L4::icmpv6:
      read_icmp(place, facts);
      break;
    case L4::udp:
    case L4::other:
      facts.whole = true;
      break;
    case L4::none:
      break;
  }
  return facts;
}

}  // namespace weir
