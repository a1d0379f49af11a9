#include <array>

#include "service_traffic.h"

#include <weir/engine/testing/conversations.h>
#include <weir/packet/packet_builder.h>

namespace weir::property {

namespace {

template <class T, std::size_t N>
const T& pick(Random& random, const std::array<T, N>& from) {
  return from[random.below(N)];
}

constexpr const char* everybody = "ff:ff:ff:ff:ff:ff";
constexpr const char* nobody = "00:00:00:00:00:00";
constexpr const char* vtep_mac = "02:00:00:00:bb:02";
constexpr std::array<const char*, 3> vteps{"192.0.2.2", "192.0.2.3", "192.0.2.9"};
constexpr std::uint16_t uplink = 5;

/// A host: the last byte of its address, in the first network or the second; from 5 on it is behind a tunnel.
struct Host {
  bool second = false;
  unsigned number = 1;

  [[nodiscard]] std::string mac() const { return fmt::format("02:00:00:00:{:02x}:{:02x}", second ? 1 : 0, number); }
  [[nodiscard]] std::string v4() const { return fmt::format("10.0.{}.{}", second ? 1 : 0, number); }
  [[nodiscard]] std::string v6() const { return fmt::format("2001:db8:{}:{}", second ? "1:" : "", number); }
  [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(second ? 2 + number : number - 1); }
  [[nodiscard]] bool here() const { return number <= (second ? 2U : 3U); }
  [[nodiscard]] std::uint32_t vni() const { return second ? 200 : 100; }
};

Host random_host(Random& random) {
  const bool second = random.one_in(2);
  return {second, random.one_in(4) ? 5 + random.below(2) : 1 + random.below(second ? 2 : 3)};
}

void put_mac(Bytes& frame, std::size_t at, const std::string& mac) {
  const MacAddress address = *MacAddress::parse(mac);
  std::ranges::copy(address.bytes, frame.begin() + static_cast<std::ptrdiff_t>(at));
}

/// The host whose address lies there, if it is one's.
std::optional<Host> host_at(const Bytes& frame, std::size_t at, bool v6) {
  const bool ours = v6 ? frame[at] == 0x20 : frame[at] == 10 && frame[at + 1] == 0;
  const unsigned net = v6 ? frame[at + 5] : frame[at + 2];
  const unsigned number = frame[at + (v6 ? 15 : 3)];
  return ours && net <= 1 && number >= 1 && number <= 6 ? std::optional(Host{net == 1, number}) : std::nullopt;
}

Bytes tunnelled(std::uint32_t vni, const Bytes& inner, const char* from) {
  PacketBuilder outer;
  Bytes bytes = outer.eth(vtep_mac, uplink_mac).ipv4(from, "192.0.2.1").vxlan(vni, PacketBuilder()).bytes();
  // The builder makes the inner packet: its bytes are put in its place, and the lengths follow.
  bytes.resize(50);
  bytes.insert(bytes.end(), inner.begin(), inner.end());
  store_big<std::uint16_t>(&bytes[16], static_cast<std::uint16_t>(bytes.size() - 14));
  store_big<std::uint16_t>(&bytes[38], static_cast<std::uint16_t>(bytes.size() - 34));
  store_big<std::uint16_t>(&bytes[24], 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) {
    sum += load_big<std::uint16_t>(&bytes[i]);
  }
  sum = (sum & 0xffffU) + (sum >> 16U);
  store_big<std::uint16_t>(&bytes[24], static_cast<std::uint16_t>(~(sum + (sum >> 16U))));
  return bytes;
}

/// As it arrives from a host, at its port or out of a tunnel.
Event from_host(Random& random, const Host& host, Bytes frame) {
  const bool moved = random.one_in(24);
  if (host.here() && !moved) {
    if (host.second && host.number == 1 && random.one_in(4)) {  // p4 may be a trunk
      frame.insert(frame.begin() + 12, {0x81, 0, 0, static_cast<std::uint8_t>(random.one_in(3) ? 5 : 6)});
    }
    return {.kind = Event::Kind::packet, .number = host.port(), .bytes = std::move(frame)};
  }
  if (moved && random.one_in(2)) {
    return {
        .kind = Event::Kind::packet, .number = static_cast<std::uint16_t>(random.below(5)), .bytes = std::move(frame)};
  }
  const std::uint32_t vni = random.one_in(24) ? random.below(6000) : host.vni();
  return {.kind = Event::Kind::packet, .number = uplink, .bytes = tunnelled(vni, frame, pick(random, vteps))};
}

std::string next_mac(Random& random, const std::optional<Host>& from, const std::optional<Host>& to) {
  if (random.one_in(16)) {
    return random.one_in(2) ? everybody : random_host(random).mac();
  }
  return from && to && from->second == to->second ? to->mac() : gateway_mac;
}

Event conversation(Random& random) {
  Bytes frame = testing::conversation_packet(random);
  if (frame[12] == 0x81) {
    frame.erase(frame.begin() + 12, frame.begin() + 16);
  }
  const bool v6 = frame[12] == 0x86;
  const auto from = host_at(frame, v6 ? 22 : 26, v6);
  const auto to = host_at(frame, v6 ? 38 : 30, v6);
  put_mac(frame, 0, next_mac(random, from, to));
  if (from) {
    put_mac(frame, 6, from->mac());
    return from_host(random, *from, std::move(frame));
  }
  // From behind another node's router, or from whoever.
  if (random.one_in(2)) {
    put_mac(frame, 0, uplink_mac);
    put_mac(frame, 6, their_router);
    return {.kind = Event::Kind::packet, .number = uplink, .bytes = tunnelled(5000, frame, "192.0.2.2")};
  }
  const Host host = random_host(random);
  put_mac(frame, 6, host.mac());
  return from_host(random, host, std::move(frame));
}

Event about_addresses(Random& random) {
  const Host host = random_host(random);
  Host about{host.second, 1 + random.below(7)};
  const std::string claimed =
      random.one_in(12) ? (random.one_in(2) ? random_host(random).v4() : "10.0.0.254") : host.v4();
  const std::string target = random.one_in(4) ? (host.second ? "10.0.1.254" : "10.0.0.254") : about.v4();
  PacketBuilder frame;
  switch (random.below(5)) {
    case 0:
      frame.eth(host.mac(), everybody).arp(1, host.mac(), claimed, nobody, target);
      break;
    case 1:
      frame.eth(host.mac(), random.one_in(2) ? gateway_mac : about.mac())
          .arp(2, host.mac(), claimed, gateway_mac, host.second ? "10.0.1.254" : "10.0.0.254");
      break;
    case 2:
      frame.eth(host.mac(), everybody).arp(2, host.mac(), claimed, everybody, claimed);
      break;
    default: {
      const bool advertisement = random.one_in(2);
      const std::string of = random.one_in(4) ? "2001:db8::fe" : (advertisement ? host.v6() : about.v6());
      const IpAddress subject = *IpAddress::parse(of);
      Bytes body(subject.bytes.begin(), subject.bytes.end());
      if (!random.one_in(8)) {
        body.insert(body.end(), {static_cast<std::uint8_t>(advertisement ? 2 : 1), 1});
        const MacAddress own = *MacAddress::parse(host.mac());
        body.insert(body.end(), own.bytes.begin(), own.bytes.end());
      }
      frame.eth(host.mac(), random.one_in(2) ? gateway_mac : "33:33:ff:00:00:01")
          .ipv6(host.v6(), advertisement ? "2001:db8::fe" : "ff02::1:ff00:1")
          .ttl(255)
          .icmpv6(advertisement ? 136 : 135, 0, advertisement ? 0x60000000 : 0)
          .payload(body);
    }
  }
  return from_host(random, host, frame.bytes());
}

/// The second and third fragment may come before the first, or overlap it.
Event fragment(Random& random) {
  const Host from = random_host(random);
  const Host to = random_host(random);
  PacketBuilder frame;
  frame.eth(from.mac(), from.second == to.second ? to.mac() : gateway_mac);
  static constexpr std::array<unsigned, 4> offsets{0, 0, 24, 16};
  frame.ipv4(from.v4(), random.one_in(4) ? "203.0.113.1" : to.v4()).id(1 + random.below(3)).udp(1024, 80).payload(40);
  frame.fragment(pick(random, offsets), 24);
  return from_host(random, from, frame.bytes());
}

Event of_the_underlay(Random& random) {
  const char* vtep = pick(random, vteps);
  PacketBuilder frame;
  switch (random.below(4)) {
    case 0:
      frame.eth(vtep_mac, everybody).arp(1, vtep_mac, vtep, nobody, "192.0.2.1");
      break;
    case 1:
      frame.eth(vtep_mac, uplink_mac).arp(2, vtep_mac, vtep, uplink_mac, "192.0.2.1");
      break;
    case 2:
      frame.eth(vtep_mac, uplink_mac).ipv4(vtep, "192.0.2.1").icmp(8, 0, 1).payload(8);
      break;
    default:
      frame.eth(vtep_mac, random.one_in(2) ? uplink_mac : everybody)
          .ipv4(vtep, "192.0.2.1")
          .udp(50'000, 4789)
          .payload(12);
  }
  return {.kind = Event::Kind::packet, .number = uplink, .bytes = frame.bytes()};
}

}  // namespace

Event random_arrival(Random& random) {
  const std::uint32_t kind = random.below(20);
  Event event = kind < 12   ? conversation(random)
                : kind < 16 ? about_addresses(random)
                : kind < 17 ? fragment(random)
                            : of_the_underlay(random);
  if (random.one_in(40)) {
    event.bytes[random.below(static_cast<std::uint32_t>(event.bytes.size()))] ^=
        static_cast<std::uint8_t>(1U << random.below(8));
  }
  if (random.one_in(80)) {
    event.bytes.resize(1 + random.below(static_cast<std::uint32_t>(event.bytes.size())));
  }
  return event;
}

}  // namespace weir::property
