#include <weir/engine/reference/headers.h>

#include <algorithm>

namespace weir::reference {

namespace {

using enum ParseVerdict;

// Headers reach at most so far behind the start of the L3 header (ParseVerdict::headers_too_long).
constexpr std::size_t header_span = 232;
constexpr unsigned extension_limit = 8;

constexpr std::uint8_t hop_by_hop = 0;
constexpr std::uint8_t routing = 43;
constexpr std::uint8_t fragment_header = 44;
constexpr std::uint8_t authentication = 51;
constexpr std::uint8_t destination_options = 60;

bool is_extension(std::uint8_t protocol) {
  return protocol == hop_by_hop || protocol == routing || protocol == fragment_header || protocol == authentication ||
         protocol == destination_options;
}

// Each function reads one header and what follows it, and returns how that ended.
class Reader {
 public:
  Reader(const Frame& frame, std::optional<bool> vxlan) : frame_(frame), vxlan_(vxlan) {}

  Headers run() {
    headers_.l3_end = frame_.bytes.size();
    if (frame_.tunnel) {
      headers_.layout.set(Layout::tunnel_bit);
    }
    headers_.layout.set_verdict(ethernet());
    return headers_;
  }

 private:
  [[nodiscard]] std::uint8_t byte(std::size_t at) const { return frame_.bytes[at]; }
  [[nodiscard]] std::uint16_t word(std::size_t at) const { return word_at(frame_, at); }
  [[nodiscard]] bool beyond_packet(std::size_t end) const { return end > headers_.l3_end; }
  [[nodiscard]] bool too_long(std::size_t end) const { return end > headers_.l3 + header_span; }

  ParseVerdict ethernet() {
    if (beyond_packet(14)) {
      return truncated_ethernet;
    }
    std::size_t type_at = 12;
    headers_.type = word(type_at);
    unsigned tags = 0;
    ParseVerdict verdict = ok;
    while (tags < 2 && (headers_.type == 0x8100 || headers_.type == 0x88a8)) {
      if (beyond_packet(type_at + 6)) {
        verdict = truncated_vlan;
        break;
      }
      type_at += 4;
      headers_.type = word(type_at);
      ++tags;
    }
    headers_.layout.set_tags(tags);
    headers_.l3 = headers_.payload = type_at + 2;
    if (verdict != ok) {
      return verdict;
    }
    switch (headers_.type) {
      case 0x0800:
        return ipv4();
      case 0x86dd:
        return ipv6();
      case 0x0806:
        return arp();
      default:
        return ok;
    }
  }

  ParseVerdict arp() {
    const std::size_t at = headers_.l3;
    if (beyond_packet(at + 28)) {
      return truncated_arp;
    }
    // Hardware Ethernet, protocol IPv4, and the lengths of their addresses (RFC 826); other ARP is not read.
    if (word(at) == 1 && word(at + 2) == 0x0800 && byte(at + 4) == 6 && byte(at + 5) == 4) {
      headers_.layout.set_l3(L3::arp);
      headers_.payload = at + 28;
    }
    return ok;
  }

  ParseVerdict ipv4() {
    const std::size_t at = headers_.l3;
    if (beyond_packet(at + 20)) {
      return truncated_ipv4;
    }
    const std::size_t header = std::size_t{4} * (byte(at) & 0x0fU);
    const std::size_t total = word(at + 2);
    if (byte(at) >> 4U != 4 || header < 20 || total < header) {
      return bad_ipv4;
    }
    if (beyond_packet(at + header)) {
      return truncated_ipv4;
    }
    if (beyond_packet(at + total)) {
      return ipv4_length;
    }
    headers_.l3_end = at + total;
    headers_.layout.set_l3(L3::ipv4);
    headers_.protocol = byte(at + 9);
    if (header > 20) {
      headers_.layout.set(Layout::options_bit);
    }
    const unsigned offset = word(at + 6) & 0x1fffU;
    const bool more = (word(at + 6) & 0x2000U) != 0;
    if (offset != 0 || more) {
      headers_.layout.set(Layout::fragment_bit);
    }
    if (offset != 0) {
      headers_.layout.set(Layout::later_fragment_bit);
    }
    return l4(at + header);
  }

  ParseVerdict ipv6() {
    const std::size_t at = headers_.l3;
    if (beyond_packet(at + 40)) {
      return truncated_ipv6;
    }
    if (byte(at) >> 4U != 6) {
      return bad_ipv6;
    }
    if (beyond_packet(at + 40 + word(at + 4))) {
      return ipv6_length;
    }
    headers_.l3_end = at + 40 + word(at + 4);
    headers_.layout.set_l3(L3::ipv6);
    headers_.protocol = byte(at + 6);
    return extensions(at + 40);
  }

  ParseVerdict extensions(std::size_t at) {
    for (unsigned count = 0; is_extension(headers_.protocol); ++count) {
      headers_.layout.set(Layout::options_bit);
      if (count == extension_limit) {
        return headers_too_long;
      }
      if (beyond_packet(at + 8)) {
        return truncated_extension;
      }
      if (too_long(at + 8)) {
        return headers_too_long;
      }
      std::size_t length = 8;
      if (headers_.protocol == authentication) {
        length = std::size_t{4} * (byte(at + 1) + 2U);  // RFC 4302, section 2.2
      } else if (headers_.protocol != fragment_header) {
        length = std::size_t{8} * (byte(at + 1) + 1U);  // RFC 8200, section 4
      }
      if (beyond_packet(at + length)) {
        return truncated_extension;
      }
      if (too_long(at + length)) {
        return headers_too_long;
      }
      const bool fragment = headers_.protocol == fragment_header;
      headers_.protocol = byte(at);
      if (fragment) {
        const unsigned offset = word(at + 2) >> 3U;
        const bool more = (word(at + 2) & 1U) != 0;
        if (offset != 0 || more) {  // otherwise atomic: a whole packet all the same (RFC 6946)
          headers_.layout.set(Layout::fragment_bit);
        }
        if (offset != 0) {
          headers_.layout.set(Layout::later_fragment_bit);
          headers_.payload = at + length;
          return known_ports();
        }
      }
      at += length;
    }
    return l4(at);
  }

  ParseVerdict l4(std::size_t at) {
    headers_.l4 = headers_.payload = at;
    if (headers_.layout.later_fragment()) {
      return known_ports();
    }
    const bool v6 = headers_.layout.l3() == L3::ipv6;
    switch (headers_.protocol) {
      case 6:
        return tcp(at);
      case 17:
        return udp(at);
      case 132:
        return whole(at, 12, L4::sctp);
      case 1:
        return v6 ? other() : whole(at, 8, L4::icmp);
      case 58:
        return v6 ? whole(at, 8, L4::icmpv6) : other();
      default:
        return other();
    }
  }

  // A later fragment is of its first one's kind, if that was told.
  ParseVerdict known_ports() {
    if ((frame_.offload.flags & Offload::has_ports) == 0) {
      return ok;
    }
    const bool v6 = headers_.layout.l3() == L3::ipv6;
    switch (headers_.protocol) {
      case 6:
        headers_.layout.set_l4(L4::tcp);
        return ok;
      case 17:
        headers_.layout.set_l4(L4::udp);
        return ok;
      case 132:
        headers_.layout.set_l4(L4::sctp);
        return ok;
      case 1:
        headers_.layout.set_l4(v6 ? L4::other : L4::icmp);
        return ok;
      case 58:
        headers_.layout.set_l4(v6 ? L4::icmpv6 : L4::other);
        return ok;
      default:
        return other();
    }
  }

  ParseVerdict other() {
    headers_.layout.set_l4(L4::other);
    return ok;
  }

  // A header of `bytes` bytes, all of it good.
  ParseVerdict whole(std::size_t at, std::size_t bytes, L4 kind) {
    if (beyond_packet(at + bytes)) {
      return truncated_l4;
    }
    if (too_long(at + bytes)) {
      return headers_too_long;
    }
    headers_.layout.set_l4(kind);
    headers_.payload = at + bytes;
    return ok;
  }

  ParseVerdict tcp(std::size_t at) {
    if (beyond_packet(at + 20)) {
      return truncated_l4;
    }
    if (too_long(at + 20)) {
      return headers_too_long;
    }
    const std::size_t length = std::size_t{4} * (byte(at + 12) >> 4U);
    if (length < 20 || beyond_packet(at + length)) {
      return bad_l4;
    }
    return whole(at, length, L4::tcp);
  }

  ParseVerdict udp(std::size_t at) {
    if (beyond_packet(at + 8)) {
      return truncated_l4;
    }
    if (too_long(at + 8)) {
      return headers_too_long;
    }
    const std::size_t length = word(at + 4);
    // Of a fragmented datagram, the end lies in a later fragment.
    if (length < 8 || (beyond_packet(at + length) && !headers_.layout.fragment())) {
      return bad_l4;
    }
    const ParseVerdict verdict = whole(at, 8, L4::udp);
    // A tunnel in a tunnel is payload.
    const bool asks = word(at + 2) == 4789 && !headers_.layout.fragment() && !headers_.layout.tunnel();
    return vxlan_.value_or(asks) ? vxlan(at + 8, at + length) : verdict;
  }

  ParseVerdict vxlan(std::size_t at, std::size_t datagram_end) {
    if (beyond_packet(at + 8) || at + 8 > datagram_end) {
      return truncated_vxlan;
    }
    if (too_long(at + 8)) {
      return headers_too_long;
    }
    if ((byte(at) & 0x08U) != 0) {  // the VNI is valid (RFC 7348, section 5)
      headers_.layout.set(Layout::vxlan_bit);
      headers_.payload = at + 8;
    }
    return ok;
  }

  const Frame& frame_;
  std::optional<bool> vxlan_;
  Headers headers_;
};

}  // namespace

Headers parse(const Frame& frame, std::optional<bool> vxlan) { return Reader(frame, vxlan).run(); }

Key key_of(const Frame& frame, const Headers& headers) {
  Key key;
  const Layout layout = headers.layout;
  const auto copy = [&frame](auto& to, std::size_t from, std::size_t bytes) {
    std::copy_n(frame.bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes, to.begin());
  };
  key.ingress = frame.egress != 0 ? frame.egress : frame.ingress;
  key.layout = layout.bits;
  if (layout.tunnel()) {
    key.vni = {static_cast<std::uint8_t>(frame.vni >> 16U), static_cast<std::uint8_t>(frame.vni >> 8U),
               static_cast<std::uint8_t>(frame.vni)};
  }
  if (!layout.ethernet()) {
    return key;
  }
  copy(key.eth_dst, 0, 6);
  copy(key.eth_src, 6, 6);
  if (layout.tags() >= 1) {
    copy(key.vlan, 14, 2);
  }
  if (layout.tags() >= 2) {
    copy(key.vlan_inner, 18, 2);
  }
  const std::size_t l3 = headers.l3;
  switch (layout.l3()) {
    case L3::none:
      key.src[0] = static_cast<std::uint8_t>(headers.type >> 8U);
      key.src[1] = static_cast<std::uint8_t>(headers.type);
      return key;
    case L3::arp:
      copy(key.src_port, l3 + 6, 2);
      copy(key.src, l3 + 14, 4);
      std::copy_n(&frame.bytes[l3 + 8], 6, key.src.begin() + 4);
      copy(key.dst, l3 + 24, 4);
      std::copy_n(&frame.bytes[l3 + 18], 6, key.dst.begin() + 4);
      return key;
    case L3::ipv4:
      key.ttl = frame.bytes[l3 + 8];
      copy(key.src, l3 + 12, 4);
      copy(key.dst, l3 + 16, 4);
      break;
    case L3::ipv6:
      key.ttl = frame.bytes[l3 + 7];
      copy(key.src, l3 + 8, 16);
      copy(key.dst, l3 + 24, 16);
      break;
  }
  key.protocol = headers.protocol;
  key.tos = tos_of(frame, headers);
  const std::size_t l4 = headers.l4;
  if (layout.later_fragment()) {
    if (layout.l4() != L4::none && layout.l4() != L4::other) {
      store_big<std::uint16_t>(key.src_port.data(), frame.offload.checksum_start);
      store_big<std::uint16_t>(key.dst_port.data(), frame.offload.checksum_offset);
    }
    return key;
  }
  switch (layout.l4()) {
    case L4::none:
    case L4::other:
      break;
    case L4::icmp:
    case L4::icmpv6:
      copy(key.src_port, l4, 2);
      copy(key.dst_port, l4 + 4, 2);
      break;
    case L4::tcp:
      key.tcp_flags = frame.bytes[l4 + 13];
      [[fallthrough]];
    case L4::udp:
    case L4::sctp:
      copy(key.src_port, l4, 2);
      copy(key.dst_port, l4 + 2, 2);
      break;
  }
  if (layout.vxlan()) {
    copy(key.vni, headers.payload - 4, 3);
  }
  return key;
}

std::uint32_t l3_length(const Frame& frame, const Headers& headers) {
  if (frame.offload.gso_size != 0) {
    return static_cast<std::uint32_t>(headers.payload - headers.l3 + frame.offload.gso_size);
  }
  return static_cast<std::uint32_t>(headers.l3_end - headers.l3);
}

std::uint8_t tos_of(const Frame& frame, const Headers& headers) {
  const std::size_t l3 = headers.l3;
  if (headers.layout.l3() == L3::ipv4) {
    return frame.bytes[l3 + 1];
  }
  return static_cast<std::uint8_t>(word_at(frame, l3) >> 4U);  // version (4 bits), traffic class (8), flow label
}

}  // namespace weir::reference
