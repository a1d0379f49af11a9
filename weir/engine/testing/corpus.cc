#include <weir/engine/testing/corpus.h>

#include <algorithm>

#include <weir/engine/reference/checksums.h>
#include <weir/engine/reference/headers.h>

namespace weir::testing {

namespace {

constexpr std::uint16_t first_fragment = 0x2000;
constexpr std::uint16_t later_fragment = 0x2010;

reference::Headers headers_of(const Bytes& bytes) {
  reference::Frame frame;
  frame.bytes = bytes;
  return reference::parse(frame);
}

// The TCP or UDP checksum at `l4` is left to the device: its field holds the sum of the pseudo-header.
TestPacket unfinished(Bytes bytes, std::size_t l3, std::size_t l4) {
  const bool v6 = bytes[l3] >> 4U == 6;
  const bool udp = bytes[v6 ? l3 + 6 : l3 + 9] == 17;
  const auto addresses = std::span(bytes).subspan(v6 ? l3 + 8 : l3 + 12, v6 ? 32 : 8);
  std::uint16_t sum = reference::sum(addresses);
  sum = reference::add(sum, udp ? 17 : 6);
  sum = reference::add(sum, static_cast<std::uint16_t>(bytes.size() - l4));
  const std::size_t field = l4 + (udp ? 6 : 16);
  bytes[field] = static_cast<std::uint8_t>(sum >> 8U);
  bytes[field + 1] = static_cast<std::uint8_t>(sum);
  TestPacket packet{std::move(bytes)};
  packet.offload.flags = Offload::needs_checksum;
  packet.offload.checksum_start = static_cast<std::uint16_t>(l4);
  packet.offload.checksum_offset = static_cast<std::uint16_t>(field - l4);
  return packet;
}

TestPacket unfinished(const Bytes& bytes) {
  const reference::Headers headers = headers_of(bytes);
  return unfinished(bytes, headers.l3, headers.l4);
}

class Corpus {
 public:
  std::vector<Specimen> all() {
    ipv4_packets();
    ipv6_packets();
    fragments();
    ethernet_packets();
    tunnels();
    congestion_marks();
    offloads();
    broken();
    return std::move(specimens_);
  }

 private:
  void add(std::string name, Bytes bytes, bool sound = true) {
    specimens_.push_back({std::move(name), {std::move(bytes)}, sound});
  }
  void add(std::string name, TestPacket packet, bool sound = true) {
    specimens_.push_back({std::move(name), std::move(packet), sound});
  }

  void ipv4_packets() {
    add("ipv4 tcp", ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(31)))));
    add("ipv4 tcp syn", ethernet(ipv4({}, tcp(40'000, 80, 0x02, {}, {2, 4, 5, 180}))));
    add("ipv4 tcp reply", ethernet(ipv4({.src = "10.0.1.1", .dst = "10.0.0.1"}, tcp(443, 40'000, 0x12, {}))));
    add("ipv4 udp", ethernet(ipv4({}, udp(5'000, 53, payload(20)))));
    add("ipv4 udp unsummed", ethernet(ipv4({}, udp_unsummed(5'000, 53, payload(21)))));
    add("ipv4 sctp", ethernet(ipv4({}, sctp(7'000, 36'412, payload(37)))));
    add("ipv4 icmp echo", ethernet(ipv4({}, icmp(8, 0, 77, payload(16)))));
    add("ipv4 icmp error", ethernet(ipv4({}, icmp(3, 1, 0, payload(28)))));
    add("ipv4 gre", ethernet(ipv4({}, {47, payload(24)})));
    add("ipv4 empty", ethernet(ipv4({}, {59, {}})));
    add("ipv4 icmpv6", ethernet(ipv4({}, {58, payload(24)})));
    add("ipv4 options", ethernet(ipv4({.options = {0x94, 4, 0, 0, 1, 1, 1, 0}}, tcp(40'000, 22, 0x10, payload(5)))));
    add("ipv4 multicast", ethernet(ipv4({.dst = "224.0.0.5"}, udp(1'000, 1'001, payload(9)))));
    add("ipv4 elsewhere", ethernet(ipv4({.dst = "172.16.9.9"}, udp(1'000, 1'001, payload(9)))));
    for (const std::uint8_t ttl : {0, 1, 2, 3, 4, 5, 8, 9, 255}) {
      add(fmt::format("ipv4 ttl {}", ttl), ethernet(ipv4({.ttl = ttl}, udp(9, 10, payload(4)))));
    }
    add("ipv4 tos", ethernet(ipv4({.tos = 0xb9}, tcp(1, 2, 0x10, {}))));
    add("ipv4 padded", [] {
      Bytes bytes = ethernet(ipv4({}, tcp(40'000, 443, 0x10, {})));
      bytes.resize(60, 0x55);
      return bytes;
    }());
    add("ipv4 long", ethernet(ipv4({}, udp(5'000, 6'000, payload(1'472)))));
    add("ipv4 longer", ethernet(ipv4({}, udp(5'000, 6'000, payload(1'473)))));
    add("ipv4 chain", ethernet(ipv4({}, tcp(40'000, 443, 0x10, payload(6'001)))));
    add("ipv4 sctp chain", ethernet(ipv4({}, sctp(40'000, 443, payload(6'001)))));
    add("ipv4 short segments", TestPacket{ethernet(ipv4({}, tcp(40'000, 443, 0x10, payload(300)))), {}, {10, 7, 64}});
  }

  void ipv6_packets() {
    add("ipv6 tcp", ethernet(ipv6({}, tcp(40'000, 443, 0x18, payload(31)))));
    add("ipv6 udp", ethernet(ipv6({}, udp(5'000, 53, payload(20)))));
    add("ipv6 udp unsummed", ethernet(ipv6({}, udp_unsummed(5'000, 53, payload(20)))));
    add("ipv6 sctp", ethernet(ipv6({}, sctp(7'000, 36'412, payload(37)))));
    add("ipv6 icmpv6 echo", ethernet(ipv6({}, icmpv6(128, 0, 77, payload(16)))));
    add("ipv6 icmpv6 error", ethernet(ipv6({}, icmpv6(1, 0, 0, payload(48)))));
    add("ipv6 neighbor", ethernet(ipv6({.dst = "ff02::1:ff00:1"}, icmpv6(135, 0, 0, payload(24)))));
    add("ipv6 icmpv4", ethernet(ipv6({}, {1, payload(24)})));
    add("ipv6 no next header", ethernet(ipv6({}, {59, {}})));
    for (const std::uint8_t hops : {0, 1, 2, 255}) {
      add(fmt::format("ipv6 hop limit {}", hops), ethernet(ipv6({.hop_limit = hops}, udp(9, 10, payload(4)))));
    }
    add("ipv6 class", ethernet(ipv6({.traffic_class = 0xb9}, tcp(1, 2, 0x10, {}))));
    const Bytes options = {0, 1, 4, 0, 0, 0, 0};
    add("ipv6 hop by hop", ethernet(ipv6({.extensions = {{0, options}}}, tcp(40'000, 443, 0x10, payload(3)))));
    add("ipv6 routing", ethernet(ipv6({.extensions = {{43, {0, 4, 0, 0, 0, 0, 0}}}}, udp(1, 2, payload(3)))));
    add("ipv6 authentication",
        ethernet(ipv6({.extensions = {{51, Bytes{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}}}, udp(1, 2, payload(3)))));
    add("ipv6 several", ethernet(ipv6({.extensions = {{0, options}, {60, options}, {43, options}, {60, options}}},
                                      icmpv6(128, 0, 3, payload(8)))));
    const std::pair<std::uint8_t, Bytes> extension{60, options};
    add("ipv6 eight", ethernet(ipv6({.extensions = std::vector(8, extension)}, udp(1, 2, payload(3)))));
    add("ipv6 nine", ethernet(ipv6({.extensions = std::vector(9, extension)}, udp(1, 2, payload(3)))));
    for (const unsigned units : {21U, 22U, 23U, 24U}) {  // around the longest headers
      Bytes body(units * 8 + 7);
      body[0] = static_cast<std::uint8_t>(units);
      add(fmt::format("ipv6 long extension {}", units),
          ethernet(ipv6({.extensions = {{60, body}}}, udp(1, 2, payload(80)))));
      add(fmt::format("ipv6 long extension {}, tcp", units),
          ethernet(ipv6({.extensions = {{60, body}}}, tcp(1, 2, 0x10, payload(80)))));
    }
    add("ipv6 chain", ethernet(ipv6({}, tcp(40'000, 443, 0x10, payload(6'001)))));
    add("ipv6 short segments", TestPacket{ethernet(ipv6({}, udp(4'000, 443, payload(300)))), {}, {60, 1, 1}});
  }

  void fragments() {
    const Bytes data = payload(24);
    for (const std::uint16_t fragment : {first_fragment, later_fragment, std::uint16_t{0x0010}}) {
      const std::string name = fragment == first_fragment ? "first" : "later";
      add(fmt::format("ipv4 tcp {} fragment {:x}", name, fragment),
          ethernet(ipv4({.fragment = fragment}, tcp(40'000, 443, 0x10, data))));
      add(fmt::format("ipv4 udp {} fragment {:x}", name, fragment),
          ethernet(ipv4({.fragment = fragment}, udp(5'000, 4'789, data))));
      add(fmt::format("ipv4 sctp {} fragment {:x}", name, fragment),
          ethernet(ipv4({.fragment = fragment}, sctp(5'000, 53, data))));
      add(fmt::format("ipv4 icmp {} fragment {:x}", name, fragment),
          ethernet(ipv4({.fragment = fragment}, icmp(8, 0, 5, data))));
    }
    const Bytes atomic = {0, 0, 0, 1, 2, 3, 4};
    const Bytes first = {0, 0, 1, 1, 2, 3, 4};
    const Bytes later = {0, 0, 0x11, 1, 2, 3, 4};
    for (const auto& [name, header] :
         {std::pair("atomic", atomic), std::pair("first", first), std::pair("later", later)}) {
      const Ipv6Options options{.extensions = {{44, header}}};
      add(fmt::format("ipv6 tcp {} fragment", name), ethernet(ipv6(options, tcp(40'000, 443, 0x10, data))));
      add(fmt::format("ipv6 udp {} fragment", name), ethernet(ipv6(options, udp(5'000, 4'789, data))), false);
      add(fmt::format("ipv6 sctp {} fragment", name), ethernet(ipv6(options, sctp(5'000, 53, data))));
    }
  }

  void ethernet_packets() {
    add("arp request", ethernet(arp(1)));
    add("arp reply", ethernet(arp(2), {0x0007}));
    add("arp of another kind", [] {
      Bytes bytes = ethernet(arp(1));
      bytes[15] = 6;
      return bytes;
    }());
    add("ethernet other", ethernet({0x88cc, payload(30)}));
    add("ethernet length", ethernet({0x0026, payload(38)}));
    for (const std::vector<std::uint16_t>& tags : {std::vector<std::uint16_t>{0x2064}, {0x0064, 0xe0c8}}) {
      add(fmt::format("{} tags, ipv4 tcp", tags.size()), ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(31))), tags));
      add(fmt::format("{} tags, ipv4 sctp", tags.size()), ethernet(ipv4({}, sctp(4'000, 443, payload(31))), tags));
      add(fmt::format("{} tags, ipv6 udp", tags.size()), ethernet(ipv6({}, udp(5'000, 53, payload(20))), tags));
      add(fmt::format("{} tags, ipv6 icmpv6", tags.size()), ethernet(ipv6({}, icmpv6(128, 0, 9, payload(8))), tags));
      add(fmt::format("{} tags, arp", tags.size()), ethernet(arp(1), tags));
      add(fmt::format("{} tags, other", tags.size()), ethernet({0x88cc, payload(30)}, tags));
    }
    // One flow but for its tags.
    for (const std::uint16_t tag : {0x0064, 0x0065, 0x0165, 0x2064, 0x0fff, 0x0000}) {
      add(fmt::format("tag {:x}", tag), ethernet(ipv4({}, udp(1, 2, payload(3))), {tag}));
      add(fmt::format("tags {:x} and 1", tag), ethernet(ipv4({}, udp(1, 2, payload(3))), {tag, 1}));
      add(fmt::format("tags 1 and {:x}", tag), ethernet(ipv4({}, udp(1, 2, payload(3))), {1, tag}));
    }
    add("three tags", ethernet(ipv4({}, udp(1, 2, payload(3))), {1, 2, 3}));
    add("service tag", [] {
      Bytes bytes = ethernet(ipv4({}, udp(1, 2, payload(3))), {0x0064});
      bytes[12] = 0x88;
      bytes[13] = 0xa8;
      return bytes;
    }());
    add("from a group address", [] {
      Bytes bytes = ethernet(ipv4({}, udp(1, 2, payload(3))));
      bytes[0] = 0xff;
      bytes[6] = 0x03;
      return bytes;
    }());
  }

  void tunnels() {
    const Bytes inner_v4 =
        ethernet(ipv4({.src = "192.168.0.1", .dst = "192.168.0.2"}, tcp(1'234, 80, 0x10, payload(9))));
    const Bytes inner_v6 = ethernet(ipv6({.src = "fd00::1", .dst = "fd00::2"}, udp(1'234, 80, payload(9))));
    add("vxlan ipv4 in ipv4", ethernet(ipv4({}, vxlan(0x123456, inner_v4))));
    add("vxlan ipv6 in ipv4", ethernet(ipv4({}, vxlan(7, inner_v6)), {0x0005}));
    add("vxlan ipv4 in ipv6", ethernet(ipv6({}, vxlan(7, inner_v4))));
    add("vxlan ipv6 in ipv6", ethernet(ipv6({}, vxlan(8, inner_v6)), {0x0005, 0x0006}));
    add("vxlan arp", ethernet(ipv4({}, vxlan(9, ethernet(arp(1))))));
    add("vxlan arp, congestion", ethernet(ipv4({.tos = 3}, vxlan(9, ethernet(arp(1))))));
    add("vxlan tags", ethernet(ipv4({}, vxlan(9, ethernet(ipv4({}, udp(1, 2, payload(5))), {0x0111})))));
    add("vxlan in vxlan", ethernet(ipv4({}, vxlan(9, ethernet(ipv4({}, vxlan(10, inner_v4)))))));
    add("vxlan without a VNI", [&] {
      Bytes bytes = ethernet(ipv4({}, vxlan(9, inner_v4)));
      bytes[42] = 0;
      return bytes;
    }());
    add("vxlan around nothing", ethernet(ipv4({}, vxlan(9, {}))));
    add("vxlan around a stub", ethernet(ipv4({}, vxlan(9, payload(6)))));
    add("vxlan cut short", ethernet(ipv4({}, udp(5'000, 4'789, payload(7)))));
    const Bytes unsummed = vxlan(5, inner_v4).bytes;
    add("vxlan summed", ethernet(ipv4({}, udp(5'000, 4'789, {unsummed.begin() + 8, unsummed.end()}))));
    add("vxlan long", ethernet(ipv4({}, vxlan(9, ethernet(ipv4({}, udp(1, 2, payload(5'000))))))));
    add("vxlan behind long headers",
        TestPacket{ethernet(ipv4({}, vxlan(9, ethernet(ipv4({}, tcp(1, 2, 0x10, payload(300))))))), {}, {80, 30}});
  }

  void congestion_marks() {
    for (std::uint8_t outer = 0; outer < 4; ++outer) {
      for (std::uint8_t inner = 0; inner < 4; ++inner) {
        const auto tos = static_cast<std::uint8_t>(0x28U | inner);
        const auto traffic_class = static_cast<std::uint8_t>(0x48U | outer);
        const Bytes v4 = ethernet(ipv4({.tos = tos}, udp(1, 2, payload(5))));
        const Bytes v6 = ethernet(ipv6({.traffic_class = tos}, udp(1, 2, payload(5))));
        add(fmt::format("marks {} in {}, ipv4 in ipv4", inner, outer),
            ethernet(ipv4({.tos = traffic_class}, vxlan(5, v4))));
        add(fmt::format("marks {} in {}, ipv6 in ipv6", inner, outer),
            ethernet(ipv6({.traffic_class = traffic_class}, vxlan(5, v6))));
        add(fmt::format("marks {} in {}, ipv4 in ipv6", inner, outer),
            ethernet(ipv6({.traffic_class = traffic_class}, vxlan(5, v4))));
      }
    }
  }

  void offloads() {
    add("unfinished ipv4 tcp", unfinished(ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(31))))), false);
    add("unfinished ipv4 udp", unfinished(ethernet(ipv4({}, udp(40'000, 443, payload(31))))), false);
    add("unfinished ipv6 udp, tag", unfinished(ethernet(ipv6({}, udp(40'000, 443, payload(32))), {0x0064})), false);
    add("unfinished ipv6 tcp chain", unfinished(ethernet(ipv6({}, tcp(40'000, 443, 0x10, payload(6'001))))), false);
    const Bytes inner = ethernet(ipv4({}, tcp(1'234, 80, 0x10, payload(10))));
    add("unfinished inside vxlan", unfinished(ethernet(ipv4({}, vxlan(5, inner))), 50 + 14, 50 + 34), false);
    Bytes outer = ethernet(ipv4({}, vxlan(5, inner)));
    outer[40] = 0x12;  // an outer checksum, right or wrong
    add("unfinished inside summed vxlan", unfinished(outer, 50 + 14, 50 + 34), false);
    TestPacket beyond{ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(31))))};
    beyond.offload = {.flags = Offload::needs_checksum, .checksum_start = 84, .checksum_offset = 16};
    add("unfinished beyond its end", beyond, false);
    TestPacket segmented = unfinished(ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(5'000)))));
    segmented.offload.gso_type = 1;
    segmented.offload.gso_size = 1'446;
    add("segmented", segmented, false);
    segmented.offload.gso_size = 1'447;
    add("segmented, one more", segmented, false);
    const Bytes large = ethernet(ipv4({}, tcp(1'234, 80, 0x10, payload(5'000))));
    TestPacket tunnelled = unfinished(ethernet(ipv4({}, vxlan(5, large))), 50 + 14, 50 + 34);
    tunnelled.offload.gso_type = 0x21;
    tunnelled.offload.gso_size = 1'446;
    tunnelled.offload.header_length = 50 + 54;
    add("segmented inside vxlan", tunnelled, false);
    tunnelled.offload.gso_type = 1;
    add("segmented vxlan", tunnelled, false);
  }

  void broken() {
    const auto spoil = [](Bytes bytes, std::size_t at, unsigned with) {
      bytes[at] = static_cast<std::uint8_t>(with);
      return bytes;
    };
    const Bytes tcp4 = ethernet(ipv4({}, tcp(40'000, 443, 0x18, payload(31))));
    const Bytes udp4 = ethernet(ipv4({}, udp(5'000, 53, payload(20))));
    const Bytes tcp6 = ethernet(ipv6({}, tcp(40'000, 443, 0x18, payload(31))));
    add("nothing", Bytes{}, false);
    add("ipv4 version", spoil(tcp4, 14, 0x65), false);
    add("ipv4 header length 4", spoil(tcp4, 14, 0x44), false);
    add("ipv4 header length 15", spoil(tcp4, 14, 0x4f), false);
    add("ipv4 total length 0", spoil(spoil(tcp4, 16, 0), 17, 0), false);
    add("ipv4 total length 19", spoil(spoil(tcp4, 16, 0), 17, 19), false);
    add("ipv4 total length beyond", spoil(tcp4, 16, 1), false);
    add("ipv4 header checksum", spoil(tcp4, 24, tcp4[24] ^ 0x40U), false);
    add("ipv4 header checksum ffff", spoil(spoil(tcp4, 24, 0xff), 25, 0xff), false);
    add("tcp checksum", spoil(tcp4, 51, tcp4[51] ^ 0x03U), false);
    add("tcp checksum ffff", spoil(spoil(tcp4, 50, 0xff), 51, 0xff), false);
    add("tcp checksum 0", spoil(spoil(tcp4, 50, 0), 51, 0), false);
    add("tcp data offset 4", spoil(tcp4, 46, 0x40), false);
    add("tcp data offset 15", spoil(tcp4, 46, 0xf0), false);
    add("udp checksum", spoil(udp4, 41, udp4[41] ^ 0x03U), false);
    add("udp checksum ffff", spoil(spoil(udp4, 40, 0xff), 41, 0xff), false);
    add("udp length 7", spoil(udp4, 39, 7), false);
    add("udp length beyond", spoil(udp4, 38, 1), false);
    add("sctp checksum", spoil(ethernet(ipv4({}, sctp(7'000, 9, payload(30)))), 44, 0x99), false);
    add("ipv6 version", spoil(tcp6, 14, 0x50), false);
    add("ipv6 payload length 0", spoil(tcp6, 19, 0), false);
    add("ipv6 payload length beyond", spoil(tcp6, 18, 2), false);
    add("ipv6 header of unknown length", spoil(tcp6, 20, 0), false);
  }

  std::vector<Specimen> specimens_;
};

}  // namespace

std::vector<Specimen> corpus() { return Corpus().all(); }

std::vector<TestPacket> truncations(const TestPacket& packet) {
  constexpr std::size_t longest = 400;
  std::vector<TestPacket> cuts;
  const std::size_t length = std::min(packet.bytes.size(), longest);
  const reference::Headers headers = headers_of(packet.bytes);
  const bool v6 = headers.layout.l3() == L3::ipv6;
  const std::size_t l3 = headers.l3;
  for (std::size_t bytes = 0; bytes < length; ++bytes) {
    TestPacket cut = packet;
    cut.bytes.resize(bytes);
    cuts.push_back(cut);
    if (!headers.layout.ip() || bytes < l3 + (v6 ? 40 : 20)) {
      continue;
    }
    const std::size_t field = l3 + (v6 ? 4 : 2);
    const std::size_t value = bytes - l3 - (v6 ? 40 : 0);
    cut.bytes[field] = static_cast<std::uint8_t>(value >> 8U);
    cut.bytes[field + 1] = static_cast<std::uint8_t>(value);
    cuts.push_back(cut);
  }
  return cuts;
}

TestPacket mutation(const TestPacket& packet, Random& random) {
  TestPacket changed = packet;
  const auto reach = static_cast<std::uint32_t>(std::min<std::size_t>(changed.bytes.size(), 120));
  for (std::uint32_t changes = reach == 0 ? 0 : 1 + random.below(4); changes > 0; --changes) {
    std::uint8_t& byte = changed.bytes[random.below(reach)];
    switch (random.below(4)) {
      case 0:
        byte = static_cast<std::uint8_t>(random());
        break;
      case 1:
        byte = random.one_in(2) ? 0 : 0xff;
        break;
      default:
        byte = static_cast<std::uint8_t>(byte ^ 1U << random.below(8));
        break;
    }
  }
  return changed;
}

}  // namespace weir::testing
