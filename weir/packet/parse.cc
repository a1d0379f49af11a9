#include <weir/packet/parse.h>

#include <algorithm>

#include <weir/packet/arp.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/icmp.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/sctp.h>
#include <weir/packet/tcp.h>
#include <weir/packet/udp.h>
#include <weir/packet/vxlan.h>

namespace weir {

namespace {

constexpr unsigned max_extensions = 8;

// Counted from the L3 header, so that pushing or popping a tag does not change what can be parsed. With the longest
// Ethernet header it stays within Packet::header_bytes.
constexpr unsigned max_header_bytes = 232;
static_assert(14 + 2 * 4 + max_header_bytes <= Packet::header_bytes);

// Walks down the headers of one packet. `end_` is where the enclosing header says its content ends; `limit_` is how far
// bytes can be read, and how long headers may be. A header must lie within both.
class Parser {
 public:
  Parser(Packet& packet, Key& key)
      : packet_(packet), key_(key), at_(packet.data), limit_(packet.head()), end_(packet.length) {}

  Layout run() {
    layout_.bits = packet_.tunnel != 0 ? Layout::tunnel_bit : 0;
    if (packet_.tunnel != 0) {
      store_big<std::uint16_t>(key_.vni.data(), static_cast<std::uint16_t>(packet_.vni >> 8U));
      key_.vni[2] = static_cast<std::uint8_t>(packet_.vni);
    }
    packet_.l3 = packet_.l4 = 0;
    packet_.payload = 0;
    ethernet();
    return layout_;
  }

 private:
  template <class Header>
  const Header& header(unsigned offset) const {
    return *reinterpret_cast<const Header*>(at_ + offset);
  }

  // Whether `bytes` at `offset` can be read; if not, says so as `truncated` or as headers_too_long.
  bool within(unsigned offset, unsigned bytes, ParseVerdict truncated) {
    if (offset + bytes > end_) [[unlikely]] {
      layout_.set_verdict(truncated);
      return false;
    }
    if (offset + bytes > limit_) [[unlikely]] {
      layout_.set_verdict(ParseVerdict::headers_too_long);
      return false;
    }
    return true;
  }

  void ethernet() {
    if (!within(0, sizeof(EthernetHeader), ParseVerdict::truncated_ethernet)) {
      return;
    }
    const auto& ethernet = header<EthernetHeader>(0);
    std::memcpy(key_.eth_dst.data(), at_, 12);
    std::uint16_t type = ethernet.type;
    unsigned offset = sizeof(EthernetHeader);
    unsigned tags = 0;
    while ((type == ethertype::vlan || type == ethertype::service_vlan) && tags < 2) [[unlikely]] {
      if (!within(offset, sizeof(VlanTag), ParseVerdict::truncated_vlan)) {
        break;
      }
      const auto& tag = header<VlanTag>(offset);
      std::memcpy(tags == 0 ? key_.vlan.data() : key_.vlan_inner.data(), &tag.control, 2);
      type = tag.type;
      offset += sizeof(VlanTag);
      ++tags;
    }
    layout_.set_tags(tags);
    packet_.l3 = static_cast<std::uint8_t>(offset);
    packet_.payload = static_cast<std::uint16_t>(offset);
    limit_ = std::min(limit_, offset + max_header_bytes);
    if (layout_.verdict() == ParseVerdict::ok) [[likely]] {
      if (type == ethertype::ipv4) {
        ipv4(offset);
      } else if (type == ethertype::ipv6) {
        ipv6(offset);
      } else if (type == ethertype::arp) {
        arp(offset);
      }
    }
    if (layout_.l3() == L3::none) {
      store_big<std::uint16_t>(key_.src.data(), type);
    }
  }

  void arp(unsigned offset) {
    if (!within(offset, sizeof(ArpHeader), ParseVerdict::truncated_arp)) {
      return;
    }
    const auto& arp = header<ArpHeader>(offset);
    if (arp.hardware != 1 || arp.protocol != ethertype::ipv4 || arp.hardware_length != 6 || arp.protocol_length != 4) {
      return;  // ARP for something else than IPv4 over Ethernet: nothing Weir reads
    }
    layout_.set_l3(L3::arp);
    std::memcpy(key_.src_port.data(), &arp.operation, 2);
    std::memcpy(key_.src.data(), &arp.sender_ip, 4);
    std::memcpy(key_.src.data() + 4, &arp.sender_mac, 6);
    std::memcpy(key_.dst.data(), &arp.target_ip, 4);
    std::memcpy(key_.dst.data() + 4, &arp.target_mac, 6);
    packet_.payload = static_cast<std::uint16_t>(offset + sizeof(ArpHeader));
  }

  void ipv4(unsigned offset) {
    if (!within(offset, sizeof(Ipv4Header), ParseVerdict::truncated_ipv4)) {
      return;
    }
    const auto& ip = header<Ipv4Header>(offset);
    const unsigned length = ip.header_length();
    if (ip.version() != 4 || length < sizeof(Ipv4Header) || ip.total_length < length) [[unlikely]] {
      layout_.set_verdict(ParseVerdict::bad_ipv4);
      return;
    }
    if (!within(offset, length, ParseVerdict::truncated_ipv4)) {
      return;
    }
    if (offset + ip.total_length > end_) [[unlikely]] {
      layout_.set_verdict(ParseVerdict::ipv4_length);
      return;
    }
    end_ = offset + ip.total_length;
    layout_.set_l3(L3::ipv4);
    if (length > sizeof(Ipv4Header)) [[unlikely]] {
      layout_.set(Layout::options_bit);
    }
    key_.protocol = ip.protocol;
    key_.tos = ip.tos;
    key_.ttl = ip.ttl;
    std::memcpy(key_.src.data(), &ip.src, 4);
    std::memcpy(key_.dst.data(), &ip.dst, 4);
    const std::uint16_t fragment = ip.fragment;
    if ((fragment & (Ipv4Header::more_fragments | Ipv4Header::offset_mask)) != 0) [[unlikely]] {
      layout_.set(Layout::fragment_bit);
      if ((fragment & Ipv4Header::offset_mask) != 0) {
        layout_.set(Layout::later_fragment_bit);
      }
    }
    l4(offset + length, ip.protocol);
  }

  void ipv6(unsigned offset) {
    if (!within(offset, sizeof(Ipv6Header), ParseVerdict::truncated_ipv6)) {
      return;
    }
    const auto& ip = header<Ipv6Header>(offset);
    if (ip.version() != 6) {
      layout_.set_verdict(ParseVerdict::bad_ipv6);
      return;
    }
    unsigned at = offset + sizeof(Ipv6Header);
    if (at + ip.payload_length > end_) {
      layout_.set_verdict(ParseVerdict::ipv6_length);
      return;
    }
    end_ = at + ip.payload_length;
    layout_.set_l3(L3::ipv6);
    key_.tos = ip.traffic_class();
    key_.ttl = ip.hop_limit;
    std::memcpy(key_.src.data(), &ip.src, 32);

    std::uint8_t next = ip.next_header;
    for (unsigned extensions = 0;; ++extensions) {
      const bool fragment = next == ipv6_extension::fragment;
      if (!fragment && next != ipv6_extension::hop_by_hop && next != ipv6_extension::routing &&
          next != ipv6_extension::destination && next != ipv6_extension::authentication) {
        break;
      }
      key_.protocol = next;
      layout_.set(Layout::options_bit);
      if (extensions == max_extensions) {
        layout_.set_verdict(ParseVerdict::headers_too_long);
        return;
      }
      if (!within(at, 8, ParseVerdict::truncated_extension)) {
        return;
      }
      const std::uint8_t following = at_[at];
      unsigned length = 8;
      if (next == ipv6_extension::authentication) {
        length = (at_[at + 1] + 2U) * 4U;
      } else if (!fragment) {
        length = (at_[at + 1] + 1U) * 8U;
      }
      if (!within(at, length, ParseVerdict::truncated_extension)) {
        return;
      }
      if (fragment) {
        const std::uint16_t field = header<Ipv6Fragment>(at).offset;
        if ((field & 0xfff9U) != 0) {  // not an atomic fragment (RFC 6946)
          layout_.set(Layout::fragment_bit);
        }
        if ((field & 0xfff8U) != 0) {  // what follows is the middle of something
          layout_.set(Layout::later_fragment_bit);
          key_.protocol = following;
          packet_.payload = static_cast<std::uint16_t>(at + length);
          known_ports(following);
          return;
        }
      }
      at += length;
      next = following;
    }
    key_.protocol = next;
    l4(at, next);
  }

  void l4(unsigned offset, std::uint8_t protocol) {
    packet_.l4 = static_cast<std::uint8_t>(offset);
    packet_.payload = static_cast<std::uint16_t>(offset);
    if (layout_.later_fragment()) [[unlikely]] {
      return known_ports(protocol);
    }
    switch (protocol) {
      case ip_protocol::tcp:
        return tcp(offset);
      case ip_protocol::udp:
        return udp(offset);
      case ip_protocol::sctp:
        if (within(offset, sizeof(SctpHeader), ParseVerdict::truncated_l4)) {
          ports(offset, L4::sctp, sizeof(SctpHeader));
        }
        return;
      case ip_protocol::icmp:
      case ip_protocol::icmpv6:
        return icmp(offset, protocol);
      default:
        layout_.set_l4(L4::other);
    }
  }

  // Of a later fragment, as far as they were told.
  void known_ports(std::uint8_t protocol) {
    if ((packet_.offload.flags & Offload::has_ports) == 0) {
      return;
    }
    const bool v6 = layout_.l3() == L3::ipv6;
    layout_.set_l4(protocol == ip_protocol::tcp            ? L4::tcp
                   : protocol == ip_protocol::udp          ? L4::udp
                   : protocol == ip_protocol::sctp         ? L4::sctp
                   : protocol == ip_protocol::icmp && !v6  ? L4::icmp
                   : protocol == ip_protocol::icmpv6 && v6 ? L4::icmpv6
                                                           : L4::other);
    if (layout_.l4() != L4::other) {
      store_big<std::uint16_t>(key_.src_port.data(), packet_.offload.checksum_start);
      store_big<std::uint16_t>(key_.dst_port.data(), packet_.offload.checksum_offset);
    }
  }

  void ports(unsigned offset, L4 l4, unsigned length) {
    layout_.set_l4(l4);
    std::memcpy(key_.src_port.data(), at_ + offset, 4);
    packet_.payload = static_cast<std::uint16_t>(offset + length);
  }

  void tcp(unsigned offset) {
    if (!within(offset, sizeof(TcpHeader), ParseVerdict::truncated_l4)) {
      return;
    }
    const auto& tcp = header<TcpHeader>(offset);
    const unsigned length = tcp.header_length();
    if (length < sizeof(TcpHeader)) [[unlikely]] {
      layout_.set_verdict(ParseVerdict::bad_l4);
      return;
    }
    if (!within(offset, length, ParseVerdict::bad_l4)) {
      return;
    }
    key_.tcp_flags = tcp.flags;
    ports(offset, L4::tcp, length);
  }

  void udp(unsigned offset) {
    if (!within(offset, sizeof(UdpHeader), ParseVerdict::truncated_l4)) {
      return;
    }
    const auto& udp = header<UdpHeader>(offset);
    // The length of a fragmented datagram lies beyond its first fragment.
    if (udp.length < sizeof(UdpHeader) || (offset + udp.length > end_ && !layout_.fragment())) [[unlikely]] {
      layout_.set_verdict(ParseVerdict::bad_l4);
      return;
    }
    ports(offset, L4::udp, sizeof(UdpHeader));
    if (udp.dst_port == VxlanHeader::port && !layout_.fragment() && !layout_.tunnel()) [[unlikely]] {
      end_ = offset + udp.length;
      vxlan(offset + sizeof(UdpHeader));
    }
  }

  void vxlan(unsigned offset) {
    if (!within(offset, sizeof(VxlanHeader), ParseVerdict::truncated_vxlan)) {
      return;
    }
    const auto& vxlan = header<VxlanHeader>(offset);
    if ((vxlan.flags & VxlanHeader::vni_valid) == 0) {
      return;  // RFC 7348, section 5: not a VXLAN packet
    }
    layout_.set(Layout::vxlan_bit);
    std::memcpy(key_.vni.data(), vxlan.vni, 3);
    packet_.payload = static_cast<std::uint16_t>(offset + sizeof(VxlanHeader));
  }

  void icmp(unsigned offset, std::uint8_t protocol) {
    const bool v6 = layout_.l3() == L3::ipv6;
    if ((protocol == ip_protocol::icmpv6) != v6) {
      layout_.set_l4(L4::other);
      return;
    }
    if (!within(offset, sizeof(IcmpHeader), ParseVerdict::truncated_l4)) {
      return;
    }
    layout_.set_l4(v6 ? L4::icmpv6 : L4::icmp);
    std::memcpy(key_.src_port.data(), at_ + offset, 2);
    std::memcpy(key_.dst_port.data(), at_ + offset + 4, 2);
    packet_.payload = static_cast<std::uint16_t>(offset + sizeof(IcmpHeader));
  }

  Packet& packet_;
  Key& key_;
  const std::uint8_t* at_;
  unsigned limit_;
  unsigned end_;
  Layout layout_;
};

}  // namespace

void parse(Packet& packet, Key& key) {
  key = Key{};
  packet.layout = Parser(packet, key).run();
  key.layout = packet.layout.bits;
}

std::uint32_t l3_length(const Packet& packet) {
  if (packet.offload.gso_size != 0) {
    return packet.payload - packet.l3 + packet.offload.gso_size;
  }
  const std::uint8_t* l3 = packet.data + packet.l3;
  switch (packet.layout.l3()) {
    case L3::ipv4:
      return reinterpret_cast<const Ipv4Header*>(l3)->total_length;
    case L3::ipv6:
      return sizeof(Ipv6Header) + reinterpret_cast<const Ipv6Header*>(l3)->payload_length;
    default:
      return packet.length - packet.l3;
  }
}

std::uint32_t frame_length(const Packet& packet) {
  return packet.offload.gso_size != 0 ? std::uint32_t{packet.payload} + packet.offload.gso_size : packet.length;
}

}  // namespace weir
