#include <array>
#include <string>

#include "traffic.h"

#include <weir/engine/testing/conversations.h>
#include <weir/packet/packet_builder.h>

namespace weir::property {

namespace {

template <class T, std::size_t N>
const T& pick(Random& random, const std::array<T, N>& from) {
  return from[random.below(N)];
}

constexpr std::array<const char*, 7> macs{"02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03",
                                          "02:00:00:00:00:04", "02:00:00:00:01:01", "ff:ff:ff:ff:ff:ff",
                                          "01:00:5e:00:00:01"};
// The last but one of each are the node's own.
constexpr std::array<const char*, 9> v4{"10.0.0.1", "10.0.0.2",    "10.0.0.3",   "10.0.1.1", "10.0.1.2",
                                        "10.1.0.1", "192.168.0.1", "10.0.0.254", "224.0.0.1"};
constexpr std::array<const char*, 8> v6{"2001:db8::1",   "2001:db8::2", "2001:db8::3",  "2001:db8:1::1",
                                        "2001:db8:1::2", "fe80::1",     "2001:db8::fe", "ff02::1"};
constexpr std::array<std::uint16_t, 6> ports{53, 80, 1000, 1024, 5000, 40000};
constexpr std::array<std::uint16_t, 3> vlans{1, 2, 100};
constexpr std::array<std::uint8_t, 8> ttls{64, 64, 64, 64, 1, 2, 0, 255};
constexpr std::array<std::uint8_t, 6> flag_sets{
    tcp_flag::ack, tcp_flag::syn,       tcp_flag::syn | tcp_flag::ack, tcp_flag::fin | tcp_flag::ack,
    tcp_flag::rst, tcp_flag::ack | 0xc0};

// A neighbour solicitation or advertisement.
PacketBuilder neighbour_message(Random& random, PacketBuilder builder) {
  const bool advertisement = random.one_in(2);
  const IpAddress target = *IpAddress::parse(pick(random, v6));
  std::vector<std::uint8_t> content(target.bytes.begin(), target.bytes.end());
  if (!random.one_in(4)) {
    const MacAddress mac = *MacAddress::parse(pick(random, macs));
    content.insert(content.end(), {static_cast<std::uint8_t>(advertisement ? 2 : 1), 1});
    content.insert(content.end(), mac.bytes.begin(), mac.bytes.end());
  }
  builder.ipv6(pick(random, v6), pick(random, v6)).ttl(random.one_in(16) ? 64 : 255);
  return builder.icmpv6(advertisement ? 136 : 135, 0, random.below(8) << 29U).payload(content);
}

PacketBuilder random_packet(Random& random, bool inner) {
  PacketBuilder builder;
  builder.eth(pick(random, macs), pick(random, macs));
  if (random.one_in(4)) {
    builder.vlan(pick(random, vlans), static_cast<std::uint8_t>(random.below(8)));
    if (random.one_in(4)) {
      builder.vlan(pick(random, vlans), 0, random.one_in(2) ? 0x8100 : 0x88a8);
      if (random.one_in(8)) {
        builder.vlan(pick(random, vlans));
      }
    }
  }
  const std::uint32_t kind = random.below(16);
  if (kind == 2) {
    return neighbour_message(random, builder);
  }
  if (kind == 0) {
    return builder.payload(random.below(60));
  }
  if (kind == 1 || kind == 3) {
    return builder.arp(static_cast<std::uint16_t>(1 + random.below(2)), pick(random, macs), pick(random, v4),
                       pick(random, macs), pick(random, v4));
  }
  const bool six = random.one_in(3);
  if (six) {
    builder.ipv6(pick(random, v6), pick(random, v6));
  } else {
    builder.ipv4(pick(random, v4), pick(random, v4)).id(random.below(4));
  }
  builder.ttl(pick(random, ttls)).tos(random.one_in(3) ? static_cast<std::uint8_t>(random.below(256)) : 0);
  if (six && random.one_in(8)) {
    static constexpr std::array<std::uint8_t, 4> types{0, 43, 60, 51};
    builder.extension(pick(random, types), random.one_in(3) ? 24 : 16);
  } else if (!six && random.one_in(12)) {
    builder.options(4 * (1 + random.below(10)));
  }
  const bool fragment = random.one_in(12);
  if (fragment) {
    builder.fragment(random.one_in(2) ? 0 : 24, 24);
  }
  switch (random.below(inner ? 6 : 7)) {
    case 0:
    case 1:
      builder.udp(pick(random, ports), pick(random, ports));
      break;
    case 2:
      builder.sctp(pick(random, ports), pick(random, ports));
      break;
    case 3:
      if (six) {
        builder.icmpv6(random.one_in(2) ? 128 : 1, 0, random.below(3) << 16U);
      } else {
        builder.icmp(random.one_in(2) ? 8 : 3, 0, random.below(3) << 16U);
      }
      break;
    case 4:
      builder.protocol(random.one_in(2) ? 47 : 50);
      break;
    case 5:
      builder.tcp(pick(random, ports), pick(random, ports), pick(random, flag_sets));
      break;
    default:
      builder.vxlan(random.below(3), random_packet(random, true));
      return builder;
  }
  static constexpr std::array<std::size_t, 6> sizes{0, 1, 24, 100, 600, 1500};
  return builder.payload(fragment ? std::size_t{64} : pick(random, sizes));
}

}  // namespace

Frame random_frame(Random& random) {
  Frame frame{random.one_in(4) ? testing::conversation_packet(random) : random_packet(random, false).bytes()};
  if (random.one_in(10)) {
    // Broken: some bytes among the headers, or the end cut off.
    if (random.one_in(2)) {
      frame.bytes.resize(1 + random.below(static_cast<std::uint32_t>(frame.bytes.size())));
    } else {
      for (unsigned i = 0; i < 1 + random.below(3); ++i) {
        const auto limit = std::min<std::uint32_t>(static_cast<std::uint32_t>(frame.bytes.size()), 90);
        frame.bytes[random.below(limit)] = static_cast<std::uint8_t>(random());
      }
    }
  }
  frame.partial_checksum = random.one_in(10);
  if (frame.partial_checksum && random.one_in(2)) {
    frame.segment = static_cast<std::uint16_t>(10 + random.below(60));
  }
  return frame;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

}  // namespace weir::property
