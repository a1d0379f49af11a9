#include <weir/engine/testing/conversations.h>

#include <algorithm>
#include <array>
#include <string>

#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/packet_builder.h>
#include <weir/packet/sctp.h>

namespace weir::testing {

namespace {

template <class T, std::size_t N>
const T& pick(Random& random, const std::array<T, N>& from) {
  return from[random.below(N)];
}

struct Ends {
  bool v6;
  bool forth;
  std::string src, dst;
};

Ends ends(Random& random) {
  Ends ends;
  ends.v6 = random.one_in(4);
  ends.forth = random.one_in(2);
  const std::string client_host = std::to_string(1 + random.below(3));
  const std::string server_host = std::to_string(1 + random.below(2));
  std::string client = (ends.v6 ? "2001:db8::" : "10.0.0.") + client_host;
  std::string server = (ends.v6 ? "2001:db8:1::" : "10.0.1.") + server_host;
  if (ends.forth && random.one_in(8)) {
    server = ends.v6 ? "2001:db8:1::9" : "10.0.1.9";
  }
  if (!ends.forth && random.one_in(2)) {
    client = ends.v6 ? "2001:db8:9::1" : "203.0.113.1";
  }
  ends.src = ends.forth ? client : server;
  ends.dst = ends.forth ? server : client;
  return ends;
}

PacketBuilder ip(const Ends& ends) {
  PacketBuilder builder;
  return ends.v6 ? builder.ipv6(ends.src, ends.dst) : builder.ipv4(ends.src, ends.dst);
}

// Numbers of a client whose SYN is 999 and a server whose SYN is 4999, or near.
void tcp(Random& random, const Ends& ends, PacketBuilder& builder, std::uint16_t client, std::uint16_t server) {
  constexpr std::uint8_t S = tcp_flag::syn, A = tcp_flag::ack, F = tcp_flag::fin, R = tcp_flag::rst;
  const std::uint32_t mine = ends.forth ? 1000 : 5000;
  const std::uint32_t theirs = ends.forth ? 5000 : 1000;
  std::uint8_t flags = 0;
  std::uint32_t sequence = mine;
  std::uint32_t acknowledgment = theirs;
  std::size_t bytes = 0;
  switch (random.below(14)) {
    case 0:
    case 1:
    case 2:
      flags = ends.forth || random.one_in(8) ? S : S | A;
      sequence = mine - 1;
      break;
    case 3:
      flags = S | A;
      sequence = mine - 1;
      break;
    case 4:
      flags = F | A;
      break;
    case 5:
      flags = R;
      sequence = mine + (random.one_in(2) ? random.below(200) : 0);
      break;
    case 6:
      flags = random.one_in(2) ? R | A : static_cast<std::uint8_t>(random.below(64));
      break;
    default:
      flags = A;
      bytes = random.below(3) * 50;
      sequence = mine + random.below(3) * 50;
      acknowledgment = theirs + (random.one_in(2) ? random.below(3) * 50 : 0);
  }
  builder.tcp(ends.forth ? client : server, ends.forth ? server : client, flags).sequence(sequence, acknowledgment);
  if ((flags & S) != 0) {
    builder.tcp_options(4);
  }
  builder.payload(bytes);
}

PacketBuilder plain(Random& random) {
  static constexpr std::array<std::uint16_t, 3> client_ports{1024, 1025, 40'000};
  static constexpr std::array<std::uint16_t, 2> server_ports{80, 53};
  const Ends way = ends(random);
  const std::uint16_t client =
      !way.forth && random.one_in(2) ? static_cast<std::uint16_t>(1024 + random.below(4)) : pick(random, client_ports);
  const std::uint16_t server = pick(random, server_ports);
  PacketBuilder builder = ip(way);
  if (random.one_in(40)) {
    builder.vlan(5);
  }
  switch (random.below(10)) {
    case 0:
    case 1:
      builder.udp(way.forth ? client : server, way.forth ? server : client).payload(random.below(30));
      break;
    case 2: {
      const std::uint8_t type = random.one_in(2) ? 128 : 129;
      const std::uint32_t rest = std::uint32_t{client} << 16U | 1;
      way.v6 ? builder.icmpv6(type, 0, rest) : builder.icmp(type == 128 ? 8 : 0, 0, rest);
      break;
    }
    case 3: {
      static constexpr std::array<std::uint8_t, 8> chunks{sctp_chunk::init,        sctp_chunk::init_ack,   0, 0,
                                                          sctp_chunk::cookie_echo, sctp_chunk::cookie_ack, 3, 7};
      const std::uint8_t chunk = way.forth && random.one_in(3) ? sctp_chunk::init : pick(random, chunks);
      const std::uint8_t tag = way.forth ? 1 : 2;
      builder.sctp(way.forth ? client : server, way.forth ? server : client)
          .payload(Bytes{chunk, 0, 0, 8, 0, 0, 0, tag});
      break;
    }
    case 4:
      builder.protocol(47).payload(8);
      break;
    default:
      tcp(random, way, builder, client, server);
  }
  return builder;
}

}  // namespace

Bytes conversation_packet(Random& random) {
  Bytes bytes;
  PacketBuilder inner = plain(random);
  bytes = inner.bytes();
  const bool v6 = bytes[12] == 0x86;
  const bool tagged = bytes[12] == 0x81;
  const bool sctp = !tagged && bytes[14 + (v6 ? 6 : 9)] == 132;
  if (sctp) {
    bytes[14 + (v6 ? 40 : 20) + 7] = bytes[14 + (v6 ? 40 : 20) + 12] == sctp_chunk::init ? 0
                                     : bytes[14 + (v6 ? 40 : 20)] == 0                   ? 1
                                                                                         : 2;
  }
  if (random.one_in(8) && !tagged) {
    const std::size_t quoted = random.one_in(3) ? bytes.size() - 14 : (v6 ? 48 : 28);
    const Bytes quote(bytes.begin() + 14,
                      bytes.begin() + static_cast<std::ptrdiff_t>(std::min(bytes.size(), 14 + quoted)));
    const auto address = [&](std::size_t at, std::size_t size) {
      IpAddress found;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, found.bytes.begin());
      found.v6 = v6;
      return found.to_string();
    };
    const std::string sender = v6 ? address(22, 16) : address(26, 4);
    const std::string target = v6 ? address(38, 16) : address(30, 4);
    const std::string router = v6 ? "2001:db8:5::5" : "10.9.9.9";
    const std::string from = random.one_in(2) ? target : router;
    PacketBuilder error;
    bytes = v6 ? error.ipv6(from, sender).icmpv6(icmpv6_type::packet_too_big, 0, 1280).payload(quote).bytes()
               : error.ipv4(from, sender).icmp(icmp_type::unreachable, 4, 1280).payload(quote).bytes();
  }
  return bytes;
}

}  // namespace weir::testing
