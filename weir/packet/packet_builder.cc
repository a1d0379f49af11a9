#include <weir/packet/packet_builder.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include <weir/packet/arp.h>
#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/icmp.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/sctp.h>
#include <weir/packet/udp.h>
#include <weir/packet/vxlan.h>

namespace weir {

namespace {

template <class T>
T checked(const Result<T>& result) {
  if (!result) {
    throw std::invalid_argument(result.error().message);
  }
  return *result;
}

void require(bool holds, const char* otherwise) {
  if (!holds) {
    throw std::invalid_argument(otherwise);
  }
}

MacAddress mac_of(std::string_view text) { return checked(MacAddress::parse(text)); }

IpAddress ip_of(std::string_view text, bool v6) {
  const IpAddress address = checked(IpAddress::parse(text));
  require(address.v6 == v6, "an IP address of the other family");
  return address;
}

template <class Header>
void append(std::vector<std::uint8_t>& out, const Header& header) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  out.insert(out.end(), bytes, bytes + sizeof header);
}

void append(std::vector<std::uint8_t>& out, const std::vector<std::uint8_t>& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

PacketBuilder& PacketBuilder::eth(std::string_view src, std::string_view dst) {
  eth_src_ = mac_of(src);
  eth_dst_ = mac_of(dst);
  return *this;
}

PacketBuilder& PacketBuilder::eth_type(std::uint16_t type) {
  eth_type_ = type;
  return *this;
}

PacketBuilder& PacketBuilder::vlan(std::uint16_t id, std::uint8_t priority, std::uint16_t type) {
  require(id < 4096 && priority < 8, "a VLAN beyond 12 bits, or a priority beyond 3");
  tags_.push_back({type, static_cast<std::uint16_t>(priority << 13U | id)});
  return *this;
}

PacketBuilder& PacketBuilder::set_network(Network network) {
  require(network_ == Network::none, "a packet with two L3 headers");
  network_ = network;
  return *this;
}

PacketBuilder& PacketBuilder::arp(std::uint16_t operation, std::string_view sender_mac, std::string_view sender_ip,
                                  std::string_view target_mac, std::string_view target_ip) {
  set_network(Network::arp);
  ArpHeader header{};
  header.hardware = 1;
  header.protocol = ethertype::ipv4;
  header.hardware_length = 6;
  header.protocol_length = 4;
  header.operation = operation;
  header.sender_mac = mac_of(sender_mac);
  header.sender_ip = ip_of(sender_ip, false).to_v4();
  header.target_mac = mac_of(target_mac);
  header.target_ip = ip_of(target_ip, false).to_v4();
  append(arp_, header);
  return *this;
}

PacketBuilder& PacketBuilder::ipv4(std::string_view src, std::string_view dst) {
  src_ = ip_of(src, false);
  dst_ = ip_of(dst, false);
  return set_network(Network::ipv4);
}

PacketBuilder& PacketBuilder::ipv6(std::string_view src, std::string_view dst) {
  src_ = ip_of(src, true);
  dst_ = ip_of(dst, true);
  return set_network(Network::ipv6);
}

PacketBuilder& PacketBuilder::ttl(std::uint8_t ttl) {
  ttl_ = ttl;
  return *this;
}

PacketBuilder& PacketBuilder::tos(std::uint8_t tos) {
  tos_ = tos;
  return *this;
}

PacketBuilder& PacketBuilder::id(std::uint32_t id) {
  id_ = id;
  return *this;
}

PacketBuilder& PacketBuilder::dont_fragment() {
  dont_fragment_ = true;
  return *this;
}

PacketBuilder& PacketBuilder::protocol(std::uint8_t protocol) {
  require(!has_transport_, "a protocol for a packet that has an L4 header");
  protocol_ = protocol;
  return *this;
}

PacketBuilder& PacketBuilder::options(unsigned bytes) {
  require(network_ == Network::ipv4 && bytes % 4 == 0 && bytes <= 40, "IPv4 options: a multiple of 4 up to 40 bytes");
  options_ = bytes;
  return *this;
}

PacketBuilder& PacketBuilder::extension(std::uint8_t type, unsigned bytes) {
  const unsigned unit = type == ipv6_extension::authentication ? 4 : 8;
  require(network_ == Network::ipv6 && bytes % unit == 0 && bytes >= 8 && bytes <= 255 * unit,
          "an IPv6 extension header: a multiple of 8 bytes (AH: of 4)");
  extensions_.push_back({type, bytes});
  return *this;
}

PacketBuilder& PacketBuilder::fragment(unsigned offset, unsigned bytes) {
  require((network_ == Network::ipv4 || network_ == Network::ipv6) && offset % 8 == 0 && offset < 65'536,
          "a fragment: of an IP packet, at a multiple of 8 bytes");
  fragment_at_ = static_cast<int>(extensions_.size());
  fragment_offset_ = offset;
  fragment_bytes_ = bytes;
  return *this;
}

PacketBuilder& PacketBuilder::set_transport(std::uint8_t protocol, unsigned header_bytes) {
  require(network_ == Network::ipv4 || network_ == Network::ipv6, "an L4 header without IP");
  require(!has_transport_, "a packet with two L4 headers");
  has_transport_ = true;
  protocol_ = protocol;
  header_.assign(header_bytes, 0);
  return *this;
}

PacketBuilder& PacketBuilder::tcp(std::uint16_t src_port, std::uint16_t dst_port, std::uint8_t flags) {
  set_transport(ip_protocol::tcp, sizeof(TcpHeader));
  auto& tcp = *reinterpret_cast<TcpHeader*>(header_.data());
  tcp.src_port = src_port;
  tcp.dst_port = dst_port;
  tcp.sequence = 1;
  tcp.acknowledgment = (flags & tcp_flag::ack) != 0 ? 1 : 0;
  tcp.data_offset = 5U << 4U;
  tcp.flags = flags;
  tcp.window = 65'535;
  return *this;
}

PacketBuilder& PacketBuilder::sequence(std::uint32_t sequence, std::uint32_t acknowledgment) {
  require(has_transport_ && protocol_ == ip_protocol::tcp, "a sequence number without TCP");
  auto& tcp = *reinterpret_cast<TcpHeader*>(header_.data());
  tcp.sequence = sequence;
  tcp.acknowledgment = acknowledgment;
  return *this;
}

PacketBuilder& PacketBuilder::tcp_options(unsigned bytes) {
  require(has_transport_ && protocol_ == ip_protocol::tcp && bytes % 4 == 0 && bytes <= 40,
          "TCP options: a multiple of 4 up to 40 bytes");
  header_.resize(sizeof(TcpHeader) + bytes, 1);
  reinterpret_cast<TcpHeader*>(header_.data())->data_offset = static_cast<std::uint8_t>((5 + bytes / 4) << 4U);
  return *this;
}

PacketBuilder& PacketBuilder::udp(std::uint16_t src_port, std::uint16_t dst_port) {
  set_transport(ip_protocol::udp, sizeof(UdpHeader));
  auto& udp = *reinterpret_cast<UdpHeader*>(header_.data());
  udp.src_port = src_port;
  udp.dst_port = dst_port;
  return *this;
}

PacketBuilder& PacketBuilder::sctp(std::uint16_t src_port, std::uint16_t dst_port) {
  set_transport(ip_protocol::sctp, sizeof(SctpHeader));
  auto& sctp = *reinterpret_cast<SctpHeader*>(header_.data());
  sctp.src_port = src_port;
  sctp.dst_port = dst_port;
  sctp.verification_tag = 1;
  return *this;
}

PacketBuilder& PacketBuilder::icmp(std::uint8_t type, std::uint8_t code, std::uint32_t rest) {
  set_transport(ip_protocol::icmp, sizeof(IcmpHeader));
  header_[0] = type;
  header_[1] = code;
  store_big<std::uint32_t>(&header_[4], rest);
  return *this;
}

PacketBuilder& PacketBuilder::icmpv6(std::uint8_t type, std::uint8_t code, std::uint32_t rest) {
  icmp(type, code, rest);
  protocol_ = ip_protocol::icmpv6;
  return *this;
}

PacketBuilder& PacketBuilder::vxlan(std::uint32_t vni, const PacketBuilder& inner) {
  require(vni < 1U << 24U, "a VNI beyond 24 bits");
  if (!has_transport_) {
    udp(49'152, VxlanHeader::port);
    plain_checksum_ = false;
  }
  VxlanHeader header{};
  header.flags = VxlanHeader::vni_valid;
  header.vni[0] = static_cast<std::uint8_t>(vni >> 16U);
  header.vni[1] = static_cast<std::uint8_t>(vni >> 8U);
  header.vni[2] = static_cast<std::uint8_t>(vni);
  append(payload_, header);
  append(payload_, inner.bytes());
  return *this;
}

PacketBuilder& PacketBuilder::payload(std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    payload_.push_back(static_cast<std::uint8_t>(i));
  }
  return *this;
}

PacketBuilder& PacketBuilder::payload(std::span<const std::uint8_t> bytes) {
  payload_.insert(payload_.end(), bytes.begin(), bytes.end());
  return *this;
}

PacketBuilder& PacketBuilder::pad_to(std::size_t bytes) {
  pad_to_ = bytes;
  return *this;
}

// L4 header and payload, with their checksum.
std::vector<std::uint8_t> PacketBuilder::transport() const {
  std::vector<std::uint8_t> out = header_;
  append(out, payload_);
  if (!has_transport_) {
    return out;
  }
  const auto length = static_cast<std::uint16_t>(out.size());
  std::uint64_t pseudo = std::uint64_t{protocol_} + length;
  pseudo += checksum::sum(src_.bytes);
  pseudo += checksum::sum(dst_.bytes);
  const std::uint16_t initial = protocol_ == ip_protocol::icmp ? 0 : checksum::fold(pseudo);
  const auto internet = [&] { return static_cast<std::uint16_t>(~checksum::sum(out, initial)); };
  switch (protocol_) {
    case ip_protocol::tcp:
      reinterpret_cast<TcpHeader*>(out.data())->checksum = internet();
      break;
    case ip_protocol::udp: {
      auto& udp = *reinterpret_cast<UdpHeader*>(out.data());
      udp.length = length;
      if (plain_checksum_) {
        const std::uint16_t sum = internet();
        udp.checksum = sum == 0 ? std::uint16_t{0xffff} : sum;
      }
      break;
    }
    case ip_protocol::sctp: {
      const std::uint32_t crc = checksum::crc32c(out);
      for (unsigned i = 0; i < 4; ++i) {
        out[8 + i] = static_cast<std::uint8_t>(crc >> 8 * i);
      }
      break;
    }
    default:
      reinterpret_cast<IcmpHeader*>(out.data())->checksum = internet();
  }
  return out;
}

void PacketBuilder::append_ipv4(std::vector<std::uint8_t>& out) const {
  std::vector<std::uint8_t> body = transport();
  std::uint16_t fragment = dont_fragment_ ? Ipv4Header::dont_fragment : 0;
  if (fragment_at_ >= 0) {
    const std::size_t from = std::min<std::size_t>(fragment_offset_, body.size());
    const std::size_t to = std::min<std::size_t>(from + fragment_bytes_, body.size());
    fragment = static_cast<std::uint16_t>(fragment | fragment_offset_ / 8 |
                                          (to < body.size() ? Ipv4Header::more_fragments : 0));
    body = {body.begin() + static_cast<std::ptrdiff_t>(from), body.begin() + static_cast<std::ptrdiff_t>(to)};
  }
  Ipv4Header ip{};
  ip.version_length = static_cast<std::uint8_t>(0x40 | (5 + options_ / 4));
  ip.tos = tos_;
  ip.total_length = static_cast<std::uint16_t>(sizeof ip + options_ + body.size());
  ip.id = static_cast<std::uint16_t>(id_);
  ip.fragment = fragment;
  ip.ttl = ttl_;
  ip.protocol = protocol_;
  ip.src = src_.to_v4();
  ip.dst = dst_.to_v4();
  const std::size_t start = out.size();
  append(out, ip);
  out.resize(out.size() + options_, 1);
  if (options_ != 0) {
    out.back() = 0;
  }
  const std::uint16_t sum = checksum::sum(std::span(out).subspan(start));
  store_big<std::uint16_t>(&out[start + 10], static_cast<std::uint16_t>(~sum));
  append(out, body);
}

void PacketBuilder::append_ipv6(std::vector<std::uint8_t>& out) const {
  std::vector<std::uint8_t> body = transport();
  std::uint8_t next = protocol_;
  const auto put_in_front = [&](const Extension& extension) {
    std::vector<std::uint8_t> header(extension.bytes, 0);
    header[0] = next;
    header[1] = static_cast<std::uint8_t>(extension.type == ipv6_extension::authentication ? extension.bytes / 4 - 2
                                                                                           : extension.bytes / 8 - 1);
    if (extension.type == ipv6_extension::hop_by_hop || extension.type == ipv6_extension::destination) {
      // PadN options (RFC 8200, section 4.2), each of which holds at most 255 bytes.
      for (std::size_t at = 2; at + 1 < header.size();) {
        const std::size_t rest = std::min<std::size_t>(header.size() - at - 2, 252);
        header[at] = 1;
        header[at + 1] = static_cast<std::uint8_t>(rest);
        at += 2 + rest;
      }
    }
    body.insert(body.begin(), header.begin(), header.end());
    next = extension.type;
  };
  const std::size_t kept = fragment_at_ < 0 ? 0 : static_cast<std::size_t>(fragment_at_);
  for (std::size_t i = extensions_.size(); i > kept; --i) {
    put_in_front(extensions_[i - 1]);
  }
  if (fragment_at_ >= 0) {
    const std::size_t from = std::min<std::size_t>(fragment_offset_, body.size());
    const std::size_t to = std::min<std::size_t>(from + fragment_bytes_, body.size());
    Ipv6Fragment fragment{};
    fragment.next_header = next;
    fragment.offset = static_cast<std::uint16_t>(fragment_offset_ | (to < body.size() ? 1U : 0U));
    fragment.id = id_;
    std::vector<std::uint8_t> piece;
    append(piece, fragment);
    piece.insert(piece.end(), body.begin() + static_cast<std::ptrdiff_t>(from),
                 body.begin() + static_cast<std::ptrdiff_t>(to));
    body = std::move(piece);
    next = ipv6_extension::fragment;
  }
  for (std::size_t i = kept; i > 0; --i) {
    put_in_front(extensions_[i - 1]);
  }
  Ipv6Header ip{};
  ip.version_class_label = 6U << 28U | std::uint32_t{tos_} << 20U;
  ip.payload_length = static_cast<std::uint16_t>(body.size());
  ip.next_header = next;
  ip.hop_limit = ttl_;
  ip.src = src_.to_v6();
  ip.dst = dst_.to_v6();
  append(out, ip);
  append(out, body);
}

std::uint16_t PacketBuilder::type() const {
  if (eth_type_ >= 0) {
    return static_cast<std::uint16_t>(eth_type_);
  }
  switch (network_) {
    case Network::arp:
      return ethertype::arp;
    case Network::ipv4:
      return ethertype::ipv4;
    case Network::ipv6:
      return ethertype::ipv6;
    case Network::none:
      break;
  }
  return 0x88b5;
}

std::vector<std::uint8_t> PacketBuilder::bytes() const {
  std::vector<std::uint8_t> out;
  const auto put16 = [&out](std::uint16_t value) {
    out.push_back(static_cast<std::uint8_t>(value >> 8U));
    out.push_back(static_cast<std::uint8_t>(value));
  };
  append(out, eth_dst_);
  append(out, eth_src_);
  for (const Tag& tag : tags_) {
    put16(tag.type);
    put16(tag.control);
  }
  put16(type());
  switch (network_) {
    case Network::arp:
      append(out, arp_);
      append(out, payload_);
      break;
    case Network::ipv4:
      append_ipv4(out);
      break;
    case Network::ipv6:
      append_ipv6(out);
      break;
    case Network::none:
      append(out, payload_);
  }
  if (out.size() < pad_to_) {
    out.resize(pad_to_, 0);
  }
  return out;
}

}  // namespace weir
