#include <weir/engine/host/neighbour_discovery.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <weir/engine/host/checksums.h>
#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv6.h>

namespace weir {

namespace {

// The fixed part of both messages.
struct Header {
  std::uint8_t type;
  std::uint8_t code;
  Big16 checksum;
  std::uint8_t flags;  ///< of an advertisement
  std::uint8_t reserved[3];
  Ipv6Address target;
};
static_assert(sizeof(Header) == 24);

// An option that holds an Ethernet address; lengths count 8-byte units.
struct LinkAddressOption {
  std::uint8_t type;
  std::uint8_t length;
  MacAddress address;
};
static_assert(sizeof(LinkAddressOption) == 8);

constexpr std::uint8_t source_link_address = 1;
constexpr std::uint8_t target_link_address = 2;
constexpr std::uint8_t router_flag = 0x80;
constexpr std::uint8_t solicited_flag = 0x40;
constexpr std::uint8_t override_flag = 0x20;
constexpr std::uint8_t hop_limit = 255;  // a router in between would have taken one off
constexpr unsigned longest = 1280;

bool multicast(const Ipv6Address& address) { return address.bytes[0] == 0xff; }

// The message's bytes in one piece.
unsigned copy_message(const Packet& packet, std::array<std::uint8_t, longest>& to) {
  const unsigned bytes = packet.l3 + ip_bytes(packet) - packet.l4;
  if (bytes > to.size()) {
    return 0;
  }
  unsigned done = 0;
  unsigned skip = packet.l4;
  for (const Packet* segment = &packet; segment != nullptr && done < bytes; segment = segment->next) {
    if (skip >= segment->segment) {
      skip -= segment->segment;
      continue;
    }
    const unsigned part = std::min<unsigned>(segment->segment - skip, bytes - done);
    std::memcpy(to.data() + done, segment->data + skip, part);
    done += part;
    skip = 0;
  }
  return done;
}

// False if an option's length cannot be (RFC 4861, section 4.6).
bool read_options(std::span<const std::uint8_t> options, NeighbourMessage& message) {
  const std::uint8_t wanted = message.advertisement ? target_link_address : source_link_address;
  while (!options.empty()) {
    if (options.size() < 2 || options[1] == 0 || options[1] * 8U > options.size()) {
      return false;
    }
    if (options[0] == wanted) {
      const auto& option = *reinterpret_cast<const LinkAddressOption*>(options.data());
      if (option.address.multicast() || option.address == MacAddress{}) {
        return false;
      }
      message.link_address = option.address;
    }
    options = options.subspan(options[1] * 8U);
  }
  return true;
}

bool addresses_valid(const NeighbourMessage& message) {
  if (multicast(message.src) || multicast(message.target) || message.target == Ipv6Address{}) {
    return false;
  }
  if (message.advertisement) {
    return message.src != Ipv6Address{} && !(multicast(message.dst) && message.solicited);
  }
  return message.src != Ipv6Address{} || (message.dst == solicited_node(message.target) && !message.link_address);
}

}  // namespace

Ipv6Address solicited_node(const Ipv6Address& address) {
  Ipv6Address group{{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}};
  std::copy_n(address.bytes.begin() + 13, 3, group.bytes.begin() + 13);
  return group;
}

MacAddress ethernet_group(const Ipv6Address& group) {
  MacAddress mac{{0x33, 0x33}};
  std::copy_n(group.bytes.begin() + 12, 4, mac.bytes.begin() + 2);
  return mac;
}

bool is_neighbour_message(const Packet& packet) {
  if (packet.layout.l3() != L3::ipv6 || packet.layout.l4() != L4::icmpv6) {
    return false;
  }
  const std::uint8_t type = packet.data[packet.l4];
  return type == icmpv6_type::neighbour_solicitation || type == icmpv6_type::neighbour_advertisement;
}

std::optional<NeighbourMessage> read_neighbour_message(const Packet& packet) {
  const auto& ip = *reinterpret_cast<const Ipv6Header*>(packet.data + packet.l3);
  std::array<std::uint8_t, longest> bytes;
  const unsigned length = packet.layout.fragment() || packet.layout.options() ? 0 : copy_message(packet, bytes);
  if (length < sizeof(Header) || ip.hop_limit != hop_limit || icmp_sum(packet) != 0xffff) {
    return std::nullopt;
  }
  const auto& header = *reinterpret_cast<const Header*>(bytes.data());
  NeighbourMessage message;
  message.advertisement = header.type == icmpv6_type::neighbour_advertisement;
  message.src = ip.src;
  message.dst = ip.dst;
  message.target = header.target;
  if (message.advertisement) {
    message.router = (header.flags & router_flag) != 0;
    message.solicited = (header.flags & solicited_flag) != 0;
    message.override = (header.flags & override_flag) != 0;
  }
  if (header.code != 0 || !read_options(std::span(bytes).first(length).subspan(sizeof(Header)), message) ||
      !addresses_valid(message)) {
    return std::nullopt;
  }
  return message;
}

Packet* make_neighbour_message(PacketCache& frames, const NeighbourMessage& message, const MacAddress& from,
                               const MacAddress& to) {
  Packet* packet = frames.allocate();
  if (packet == nullptr) {
    return nullptr;
  }
  const unsigned option_bytes = message.link_address ? sizeof(LinkAddressOption) : 0;
  const unsigned icmp_bytes = sizeof(Header) + option_bytes;
  packet->length = sizeof(EthernetHeader) + sizeof(Ipv6Header) + icmp_bytes;
  packet->segment = static_cast<std::uint16_t>(packet->length);
  std::uint8_t* at = packet->data;
  std::memset(at, 0, packet->length);
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(at);
  ethernet.dst = to;
  ethernet.src = from;
  ethernet.type = ethertype::ipv6;
  at += sizeof(EthernetHeader);
  auto& ip = *reinterpret_cast<Ipv6Header*>(at);
  ip.version_class_label = 6U << 28U;
  ip.payload_length = static_cast<std::uint16_t>(icmp_bytes);
  ip.next_header = ip_protocol::icmpv6;
  ip.hop_limit = hop_limit;
  ip.src = message.src;
  ip.dst = message.dst;
  at += sizeof(Ipv6Header);
  auto& header = *reinterpret_cast<Header*>(at);
  header.type = message.advertisement ? icmpv6_type::neighbour_advertisement : icmpv6_type::neighbour_solicitation;
  header.flags =
      static_cast<std::uint8_t>((message.router ? router_flag : 0U) | (message.solicited ? solicited_flag : 0U) |
                                (message.override ? override_flag : 0U));
  header.target = message.target;
  if (message.link_address) {
    auto& option = *reinterpret_cast<LinkAddressOption*>(at + sizeof(Header));
    option.type = message.advertisement ? target_link_address : source_link_address;
    option.length = 1;
    option.address = *message.link_address;
  }
  const std::uint64_t sum = std::uint64_t{checksum::sum({at, icmp_bytes})} +
                            checksum::sum({at - 2 * sizeof(Ipv6Address), 2 * sizeof(Ipv6Address)}) + icmp_bytes +
                            ip_protocol::icmpv6;
  header.checksum = static_cast<std::uint16_t>(~checksum::fold(sum));
  return packet;
}

}  // namespace weir
