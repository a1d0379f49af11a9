#include <weir/packet/parse.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr const char* v6_a = "2001:db8::1";
constexpr const char* v6_b = "2001:db8::2";

// A packet whose bytes stand in a heap block of exactly their size, so that the sanitizer finds a read beyond them.
class Parsed {
 public:
  // `readable`: bytes of the frame in the first segment.
  explicit Parsed(const Bytes& frame, std::size_t readable, std::optional<std::uint32_t> tunnel = {})
      : block_(new std::uint8_t[readable]) {
    std::copy_n(frame.begin(), readable, block_.get());
    packet.data = block_.get();
    packet.length = static_cast<std::uint32_t>(frame.size());
    packet.segment = static_cast<std::uint16_t>(readable);
    packet.tunnel = tunnel ? 1 : 0;
    packet.vni = tunnel.value_or(0);
    parse(packet, key);
  }
  explicit Parsed(const Bytes& frame) : Parsed(frame, frame.size()) {}

  Packet packet{};
  Key key;

 private:
  std::unique_ptr<std::uint8_t[]> block_;
};

unsigned number(const std::array<std::uint8_t, 2>& bytes) { return bytes[0] * 256U + bytes[1]; }

// ---- A plain parser, from the RFCs and what layout.h, key.h and parse.h promise ----

struct Expected {
  std::string layout;
  Key key;  // without `layout`
  unsigned l3 = 0;
  unsigned l4 = 0;
  unsigned payload = 0;
};

class Oracle {
 public:
  Oracle(const Bytes& frame, std::size_t readable, std::optional<std::uint32_t> tunnel)
      : frame_(frame), readable_(std::min<std::size_t>(readable, 256)), tunnel_(tunnel) {}

  Expected run() {
    if (tunnel_) {
      e_.key.vni = {static_cast<std::uint8_t>(*tunnel_ >> 16U), static_cast<std::uint8_t>(*tunnel_ >> 8U),
                    static_cast<std::uint8_t>(*tunnel_)};
    }
    content_end_ = frame_.size();
    headers_end_ = readable_;
    const std::string verdict = ethernet();
    std::string text = tunnel_ ? "tunnel " : "";
    for (unsigned i = 0; i < tags_; ++i) {
      text += "vlan ";
    }
    if (verdict != "truncated_ethernet") {
      text += l3_ + " ";
    }
    text += l4_.empty() ? "" : l4_ + " ";
    text += options_ ? (l3_ == "ipv6" ? "extensions " : "options ") : "";
    text += later_ ? "later-fragment " : fragment_ ? "first-fragment " : "";
    text += vxlan_ ? "vxlan " : "";
    text += verdict.empty() ? "" : "broken: " + verdict + " ";
    text.pop_back();
    e_.layout = text;
    return e_;
  }

 private:
  unsigned u8(std::size_t at) const { return frame_[at]; }
  unsigned u16(std::size_t at) const { return u8(at) * 256 + u8(at + 1); }
  template <std::size_t N>
  void copy(std::array<std::uint8_t, N>& to, std::size_t at, std::size_t count = N, std::size_t shift = 0) const {
    for (std::size_t i = 0; i < count; ++i) {
      to[shift + i] = frame_[at + i];
    }
  }

  // Empty, or why the header at [at, at + size) cannot be read.
  std::string check(std::size_t at, std::size_t size, const char* truncated) const {
    if (at + size > content_end_) {
      return truncated;
    }
    return at + size > headers_end_ ? "headers_too_long" : "";
  }

  std::string ethernet() {
    if (auto why = check(0, 14, "truncated_ethernet"); !why.empty()) {
      return why;
    }
    copy(e_.key.eth_dst, 0);
    copy(e_.key.eth_src, 6);
    std::size_t at = 12;  // of the type
    std::string why;
    for (; tags_ < 2 && (u16(at) == 0x8100 || u16(at) == 0x88a8); ++tags_, at += 4) {
      why = check(at + 2, 4, "truncated_vlan");
      if (!why.empty()) {
        break;
      }
      copy(tags_ == 0 ? e_.key.vlan : e_.key.vlan_inner, at + 2);
    }
    const unsigned type = u16(at);
    const std::size_t l3 = at + 2;
    e_.l3 = e_.payload = static_cast<unsigned>(l3);
    headers_end_ = std::min<std::size_t>(headers_end_, l3 + 232);
    if (why.empty()) {
      why = type == 0x0800 ? ipv4(l3) : type == 0x86dd ? ipv6(l3) : type == 0x0806 ? arp(l3) : "";
    }
    if (l3_ == "ethernet") {
      copy(e_.key.src, at, 2);
    }
    return why;
  }

  std::string arp(std::size_t at) {
    if (auto why = check(at, 28, "truncated_arp"); !why.empty()) {
      return why;
    }
    if (u16(at) != 1 || u16(at + 2) != 0x0800 || u8(at + 4) != 6 || u8(at + 5) != 4) {
      return "";
    }
    l3_ = "arp";
    copy(e_.key.src_port, at + 6);
    copy(e_.key.src, at + 14, 4);
    copy(e_.key.src, at + 8, 6, 4);
    copy(e_.key.dst, at + 24, 4);
    copy(e_.key.dst, at + 18, 6, 4);
    e_.payload = static_cast<unsigned>(at + 28);
    return "";
  }

  std::string ipv4(std::size_t at) {
    if (auto why = check(at, 20, "truncated_ipv4"); !why.empty()) {
      return why;
    }
    const unsigned header = u8(at) % 16 * 4;
    const unsigned total = u16(at + 2);
    if (u8(at) / 16 != 4 || header < 20 || total < header) {
      return "bad_ipv4";
    }
    if (auto why = check(at, header, "truncated_ipv4"); !why.empty()) {
      return why;
    }
    if (at + total > content_end_) {
      return "ipv4_length";
    }
    content_end_ = at + total;
    l3_ = "ipv4";
    options_ = header > 20;
    e_.key.tos = frame_[at + 1];
    e_.key.ttl = frame_[at + 8];
    e_.key.protocol = frame_[at + 9];
    copy(e_.key.src, at + 12, 4);
    copy(e_.key.dst, at + 16, 4);
    const bool more = (u8(at + 6) & 0x20U) != 0;
    const unsigned offset = u16(at + 6) & 0x1fffU;
    fragment_ = more || offset != 0;
    later_ = offset != 0;
    return transport(at + header, u8(at + 9));
  }

  std::string ipv6(std::size_t at) {
    if (auto why = check(at, 40, "truncated_ipv6"); !why.empty()) {
      return why;
    }
    if (u8(at) / 16 != 6) {
      return "bad_ipv6";
    }
    if (at + 40 + u16(at + 4) > content_end_) {
      return "ipv6_length";
    }
    content_end_ = at + 40 + u16(at + 4);
    l3_ = "ipv6";
    e_.key.tos = static_cast<std::uint8_t>((u16(at) >> 4U) & 0xffU);
    e_.key.ttl = frame_[at + 7];
    copy(e_.key.src, at + 8);
    copy(e_.key.dst, at + 24);
    unsigned next = u8(at + 6);
    at += 40;
    int seen = 0;
    while (next == 0 || next == 43 || next == 44 || next == 51 || next == 60) {
      options_ = true;
      e_.key.protocol = static_cast<std::uint8_t>(next);
      if (++seen > 8) {
        return "headers_too_long";
      }
      if (auto why = check(at, 8, "truncated_extension"); !why.empty()) {
        return why;
      }
      const std::size_t size = next == 44 ? 8 : next == 51 ? (u8(at + 1) + 2) * 4 : (u8(at + 1) + 1) * 8;
      if (auto why = check(at, size, "truncated_extension"); !why.empty()) {
        return why;
      }
      const unsigned current = next;
      next = u8(at);
      if (current == 44) {
        const unsigned offset = u16(at + 2) >> 3U;
        fragment_ = fragment_ || offset != 0 || u8(at + 3) % 2 == 1;
        if (offset != 0) {
          later_ = true;
          e_.key.protocol = static_cast<std::uint8_t>(next);
          e_.payload = static_cast<unsigned>(at + 8);
          return "";
        }
      }
      at += size;
    }
    e_.key.protocol = static_cast<std::uint8_t>(next);
    return transport(at, next);
  }

  std::string transport(std::size_t at, unsigned protocol) {
    e_.l4 = e_.payload = static_cast<unsigned>(at);
    if (later_) {
      return "";
    }
    const bool v6 = l3_ == "ipv6";
    const bool icmp = protocol == (v6 ? 58U : 1U);
    const unsigned size = protocol == 6 ? 20 : protocol == 17 ? 8 : protocol == 132 ? 12 : icmp ? 8 : 0;
    if (size == 0) {
      l4_ = "other";
      return "";
    }
    if (auto why = check(at, size, "truncated_l4"); !why.empty()) {
      return why;
    }
    unsigned header = size;
    if (protocol == 6) {
      header = u8(at + 12) / 16 * 4;
      if (header < 20) {
        return "bad_l4";
      }
      if (auto why = check(at, header, "bad_l4"); !why.empty()) {
        return why;
      }
      e_.key.tcp_flags = frame_[at + 13];
    }
    if (protocol == 17 && (u16(at + 4) < 8 || (!fragment_ && at + u16(at + 4) > content_end_))) {
      return "bad_l4";
    }
    l4_ = protocol == 6 ? "tcp" : protocol == 17 ? "udp" : protocol == 132 ? "sctp" : v6 ? "icmpv6" : "icmp";
    e_.payload = static_cast<unsigned>(at + header);
    copy(e_.key.src_port, at);
    copy(e_.key.dst_port, icmp ? at + 4 : at + 2);
    if (protocol == 17 && u16(at + 2) == 4789 && !fragment_ && !tunnel_) {
      content_end_ = at + u16(at + 4);
      if (auto why = check(at + 8, 8, "truncated_vxlan"); !why.empty()) {
        return why;
      }
      if ((u8(at + 8) & 0x08U) != 0) {
        vxlan_ = true;
        copy(e_.key.vni, at + 12);
        e_.payload = static_cast<unsigned>(at + 16);
      }
    }
    return "";
  }

  const Bytes& frame_;
  std::size_t readable_;
  std::optional<std::uint32_t> tunnel_;
  std::size_t content_end_ = 0;
  std::size_t headers_end_ = 0;
  unsigned tags_ = 0;
  std::string l3_ = "ethernet";
  std::string l4_;
  bool options_ = false, fragment_ = false, later_ = false, vxlan_ = false;
  Expected e_;
};

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

void expect_as_oracle(const Bytes& frame, std::size_t readable, std::optional<std::uint32_t> tunnel = {}) {
  Parsed parsed(frame, readable, tunnel);
  const Expected expected = Oracle(frame, readable, tunnel).run();
  ASSERT_EQ(parsed.packet.layout.to_string(), expected.layout) << readable << " of " << hex(frame);
  ASSERT_EQ(parsed.key.layout, parsed.packet.layout.bits);
  Key key = parsed.key;
  key.layout = 0;
  ASSERT_TRUE(key == expected.key) << expected.layout << ", " << readable << " of " << hex(frame) << "\n"
                                   << hex({key.bytes(), key.bytes() + 64}) << "\n"
                                   << hex({expected.key.bytes(), expected.key.bytes() + 64});
  ASSERT_EQ(parsed.packet.l3, expected.l3) << hex(frame);
  ASSERT_EQ(parsed.packet.l4, expected.l4) << hex(frame);
  ASSERT_EQ(parsed.packet.payload, expected.payload) << hex(frame);
  ASSERT_LE(parsed.packet.payload, 256) << hex(frame);
}

// ---- Tables ----

// Changes to a packet, by offset.
Bytes with(Bytes bytes, std::initializer_list<std::pair<std::size_t, std::uint8_t>> changes) {
  for (const auto& [at, value] : changes) {
    bytes.at(at) = value;
  }
  return bytes;
}

Bytes first(Bytes bytes, std::size_t count) {
  bytes.resize(count);
  return bytes;
}

struct Case {
  const char* description;
  Bytes bytes;
  const char* layout;
  unsigned l3 = 14;
  unsigned l4 = 0;
  unsigned payload = 0;
  int protocol = -1;
  int src_port = -1;
  int dst_port = -1;
};

std::vector<Case> cases() {
  const auto b = [] { return PacketBuilder(); };
  const auto v4 = [] { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); };
  const auto v6 = [] { return PacketBuilder().ipv6(v6_a, v6_b); };
  auto nine_extensions = v6();
  auto eight_extensions = v6();
  for (int i = 0; i < 8; ++i) {
    eight_extensions.extension(60);
    nine_extensions.extension(60);
  }
  nine_extensions.extension(60).udp(1, 2);
  eight_extensions.udp(1, 2);
  const auto inner = PacketBuilder().ipv4("192.168.0.1", "192.168.0.2").udp(5, 6).payload(4);
  return {
      {"no L3", b().payload(10).bytes(), "ethernet", 14, 0, 14},
      {"an 802.3 length for a type", b().eth_type(46).payload(46).bytes(), "ethernet", 14, 0, 14},
      {"one tag", b().vlan(100).payload(4).bytes(), "vlan ethernet", 18, 0, 18},
      {"service and customer tag", b().vlan(7, 3, 0x88a8).vlan(8).payload(4).bytes(), "vlan vlan ethernet", 22, 0, 22},
      {"three tags: two are read", b().vlan(1).vlan(2).vlan(3).payload(4).bytes(), "vlan vlan ethernet", 22, 0, 22},
      {"ARP", b().arp(1, "02:00:00:00:00:01", "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2").bytes(), "arp", 14, 0, 42, 0,
       1},
      {"ARP for something else",
       with(b().arp(1, "02:00:00:00:00:01", "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2").bytes(), {{18, 8}}),
       "ethernet", 14, 0, 14},
      {"TCP", v4().tcp(1234, 80, tcp_flag::syn).payload(5).bytes(), "ipv4 tcp", 14, 34, 54, 6, 1234, 80},
      {"TCP with options", v4().tcp(1, 2).tcp_options(40).payload(5).bytes(), "ipv4 tcp", 14, 34, 94, 6, 1, 2},
      {"tagged UDP with padding", b().vlan(5).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(1).pad_to(64).bytes(),
       "vlan ipv4 udp", 18, 38, 46, 17, 1, 2},
      {"SCTP", v4().sctp(7, 8).payload(4).bytes(), "ipv4 sctp", 14, 34, 46, 132, 7, 8},
      {"ICMP echo", v4().icmp(8, 0, 0x12340001).payload(4).bytes(), "ipv4 icmp", 14, 34, 42, 1, 0x0800, 0x1234},
      {"an IPv4 protocol that is not parsed", v4().protocol(47).payload(4).bytes(), "ipv4 other", 14, 34, 34, 47},
      {"ICMPv6 over IPv4", v4().icmpv6(128).bytes(), "ipv4 other", 14, 34, 34, 58},
      {"ICMP over IPv6", v6().icmp(8).bytes(), "ipv6 other", 14, 54, 54, 1},
      {"IPv4 without content", v4().protocol(47).bytes(), "ipv4 other", 14, 34, 34, 47},
      {"IPv4 options", v4().options(40).udp(1, 2).bytes(), "ipv4 udp options", 14, 74, 82, 17, 1, 2},
      {"first IPv4 fragment", v4().fragment(0, 16).udp(1, 2).payload(100).bytes(), "ipv4 udp first-fragment", 14, 34,
       42, 17, 1, 2},
      {"middle IPv4 fragment", v4().fragment(16, 16).udp(1, 2).payload(100).bytes(), "ipv4 later-fragment", 14, 34, 34,
       17, 0, 0},
      {"last IPv4 fragment", v4().fragment(104, 16).udp(1, 2).payload(100).bytes(), "ipv4 later-fragment", 14, 34, 34,
       17, 0, 0},
      {"IPv4, may not be fragmented", v4().dont_fragment().udp(1, 2).bytes(), "ipv4 udp", 14, 34, 42, 17, 1, 2},
      {"TCP over IPv6", v6().tcp(1, 2).payload(3).bytes(), "ipv6 tcp", 14, 54, 74, 6, 1, 2},
      {"UDP over IPv6", v6().udp(1, 2).bytes(), "ipv6 udp", 14, 54, 62, 17, 1, 2},
      {"SCTP over IPv6", v6().sctp(1, 2).bytes(), "ipv6 sctp", 14, 54, 66, 132, 1, 2},
      {"ICMPv6", v6().icmpv6(128, 0, 0xabcd0001).bytes(), "ipv6 icmpv6", 14, 54, 62, 58, 0x8000, 0xabcd},
      {"no next header", v6().protocol(59).bytes(), "ipv6 other", 14, 54, 54, 59},
      {"every extension header",
       v6().extension(0).extension(60, 16).extension(43, 24).extension(51, 12).tcp(1, 2).bytes(), "ipv6 tcp extensions",
       14, 54 + 8 + 16 + 24 + 12, 54 + 60 + 20, 6, 1, 2},
      {"atomic IPv6 fragment", v6().fragment(0, 1000).udp(1, 2).bytes(), "ipv6 udp extensions", 14, 62, 70, 17, 1, 2},
      {"first IPv6 fragment", v6().fragment(0, 16).udp(1, 2).payload(100).bytes(), "ipv6 udp extensions first-fragment",
       14, 62, 70, 17, 1, 2},
      {"first IPv6 fragment, options within", v6().fragment(0, 16).extension(60).udp(1, 2).payload(100).bytes(),
       "ipv6 udp extensions first-fragment", 14, 70, 78, 17, 1, 2},
      {"later IPv6 fragment, options within", v6().fragment(16, 16).extension(60).udp(1, 2).payload(100).bytes(),
       "ipv6 extensions later-fragment", 14, 0, 62, 60, 0, 0},
      {"eight extension headers", eight_extensions.bytes(), "ipv6 udp extensions", 14, 118, 126, 17, 1, 2},
      {"VXLAN", v4().vxlan(0x123456, inner).bytes(), "ipv4 udp vxlan", 14, 34, 50, 17, 49'152, 4789},
      {"VXLAN over IPv6", v6().vxlan(1, inner).bytes(), "ipv6 udp vxlan", 14, 54, 70, 17, 49'152, 4789},
      {"VXLAN without a VNI", with(v4().vxlan(1, inner).bytes(), {{42, 0}}), "ipv4 udp", 14, 34, 42, 17, 49'152, 4789},
      {"a fragment of VXLAN", v4().fragment(0, 32).vxlan(1, inner).bytes(), "ipv4 udp first-fragment", 14, 34, 42, 17,
       49'152, 4789},
      // What cannot be parsed.
      {"nothing", {}, "broken: truncated_ethernet", 0, 0, 0},
      {"13 bytes", first(b().payload(9).bytes(), 13), "broken: truncated_ethernet", 0, 0, 0},
      {"ends inside the tag", first(b().vlan(1).bytes(), 17), "ethernet broken: truncated_vlan", 14, 0, 14},
      {"ends inside the second tag", first(b().vlan(1).vlan(2).bytes(), 21), "vlan ethernet broken: truncated_vlan", 18,
       0, 18},
      {"ends inside ARP",
       first(b().arp(1, "02:00:00:00:00:01", "10.0.0.1", "00:00:00:00:00:00", "10.0.0.2").bytes(), 41),
       "ethernet broken: truncated_arp", 14, 0, 14},
      {"ends inside IPv4", first(v4().udp(1, 2).bytes(), 33), "ethernet broken: truncated_ipv4", 14, 0, 14},
      {"ends inside the IPv4 options", first(v4().options(8).protocol(47).bytes(), 40),
       "ethernet broken: truncated_ipv4", 14, 0, 14},
      {"IPv4 of version 5", with(v4().udp(1, 2).bytes(), {{14, 0x55}}), "ethernet broken: bad_ipv4", 14, 0, 14},
      {"IPv4 header of 16 bytes", with(v4().udp(1, 2).bytes(), {{14, 0x44}}), "ethernet broken: bad_ipv4", 14, 0, 14},
      {"IPv4 total length 19", with(v4().udp(1, 2).bytes(), {{17, 19}}), "ethernet broken: bad_ipv4", 14, 0, 14},
      {"IPv4 longer than the frame", first(v4().udp(1, 2).payload(8).bytes(), 49), "ethernet broken: ipv4_length", 14,
       0, 14},
      {"ends inside IPv6", first(v6().udp(1, 2).bytes(), 53), "ethernet broken: truncated_ipv6", 14, 0, 14},
      {"IPv6 of version 4", with(v6().udp(1, 2).bytes(), {{14, 0x40}}), "ethernet broken: bad_ipv6", 14, 0, 14},
      {"IPv6 longer than the frame", first(v6().udp(1, 2).payload(8).bytes(), 69), "ethernet broken: ipv6_length", 14,
       0, 14},
      {"extension beyond the payload", with(v6().extension(60).udp(1, 2).bytes(), {{55, 2}}),
       "ipv6 extensions broken: truncated_extension", 14, 0, 14, 60},
      {"payload ends in an extension", with(v6().extension(60).udp(1, 2).bytes(), {{19, 4}}),
       "ipv6 extensions broken: truncated_extension", 14, 0, 14, 60},
      {"AH beyond the payload", with(v6().extension(51, 12).udp(1, 2).bytes(), {{55, 200}}),
       "ipv6 extensions broken: truncated_extension", 14, 0, 14, 51},
      {"nine extension headers", nine_extensions.bytes(), "ipv6 extensions broken: headers_too_long", 14, 0, 14, 60},
      {"a header that ends at byte 232", v6().extension(60, 184).udp(1, 2).bytes(), "ipv6 udp extensions", 14, 238, 246,
       17, 1, 2},
      {"a header that ends beyond byte 232", v6().extension(60, 192).udp(1, 2).bytes(),
       "ipv6 extensions broken: headers_too_long", 14, 246, 246, 17, 0, 0},
      {"the same behind two tags: byte 232 counts from L3",
       b().vlan(1).vlan(2).ipv6(v6_a, v6_b).extension(60, 184).udp(1, 2).bytes(), "vlan vlan ipv6 udp extensions", 22,
       246, 254, 17, 1, 2},
      {"too long behind two tags", b().vlan(1).vlan(2).ipv6(v6_a, v6_b).extension(60, 192).udp(1, 2).bytes(),
       "vlan vlan ipv6 extensions broken: headers_too_long", 22, 254, 254, 17, 0, 0},
      {"payload ends inside TCP", with(v4().tcp(1, 2).bytes(), {{17, 39}}), "ipv4 broken: truncated_l4", 14, 34, 34, 6,
       0, 0},
      {"payload ends inside UDP", with(v4().udp(1, 2).bytes(), {{17, 27}}), "ipv4 broken: truncated_l4", 14, 34, 34, 17,
       0, 0},
      {"payload ends inside SCTP", with(v4().sctp(1, 2).bytes(), {{17, 31}}), "ipv4 broken: truncated_l4", 14, 34, 34,
       132, 0, 0},
      {"payload ends inside ICMP", with(v4().icmp(8).bytes(), {{17, 27}}), "ipv4 broken: truncated_l4", 14, 34, 34, 1,
       0, 0},
      {"TCP data offset 4", with(v4().tcp(1, 2).bytes(), {{46, 0x40}}), "ipv4 broken: bad_l4", 14, 34, 34, 6, 0, 0},
      {"TCP options beyond the payload", with(v4().tcp(1, 2).bytes(), {{46, 0xf0}}), "ipv4 broken: bad_l4", 14, 34, 34,
       6, 0, 0},
      {"UDP length 7", with(v4().udp(1, 2).bytes(), {{39, 7}}), "ipv4 broken: bad_l4", 14, 34, 34, 17, 0, 0},
      {"UDP beyond the payload", with(v4().udp(1, 2).bytes(), {{39, 9}}), "ipv4 broken: bad_l4", 14, 34, 34, 17, 0, 0},
      {"ends inside VXLAN", v4().udp(1, 4789).payload(7).bytes(), "ipv4 udp broken: truncated_vxlan", 14, 34, 42, 17, 1,
       4789},
      {"VXLAN behind the end of UDP", with(v4().vxlan(1, inner).bytes(), {{39, 15}}),
       "ipv4 udp broken: truncated_vxlan", 14, 34, 42, 17, 49'152, 4789},
  };
}

TEST(Parse, Table) {
  std::set<ParseVerdict> seen;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.description);
    const Parsed parsed(c.bytes);
    const Packet& packet = parsed.packet;
    EXPECT_EQ(packet.layout.to_string(), c.layout);
    EXPECT_EQ(packet.l3, c.l3);
    EXPECT_EQ(packet.l4, c.l4);
    EXPECT_EQ(packet.payload, c.payload);
    if (c.protocol >= 0) {
      EXPECT_EQ(parsed.key.protocol, c.protocol);
    }
    if (c.src_port >= 0) {
      EXPECT_EQ(number(parsed.key.src_port), static_cast<unsigned>(c.src_port));
    }
    if (c.dst_port >= 0) {
      EXPECT_EQ(number(parsed.key.dst_port), static_cast<unsigned>(c.dst_port));
    }
    seen.insert(packet.layout.verdict());
    expect_as_oracle(c.bytes, c.bytes.size());
  }
  EXPECT_EQ(seen.size(), parse_verdicts) << "a verdict without a case";
}

TEST(Parse, FillsEveryField) {
  const Parsed tcp(PacketBuilder()
                       .eth("02:00:00:00:00:0a", "02:00:00:00:00:0b")
                       .vlan(0x123, 5)
                       .vlan(0x456)
                       .ipv4("10.1.2.3", "10.4.5.6")
                       .ttl(17)
                       .tos(0xb9)
                       .tcp(0x1234, 0x5678, tcp_flag::syn | tcp_flag::ece)
                       .bytes());
  const Key& key = tcp.key;
  EXPECT_EQ(key.eth_src, MacAddress::parse("02:00:00:00:00:0a")->bytes);
  EXPECT_EQ(key.eth_dst, MacAddress::parse("02:00:00:00:00:0b")->bytes);
  EXPECT_EQ(number(key.vlan), 0xa123U);
  EXPECT_EQ(number(key.vlan_inner), 0x456U);
  EXPECT_EQ(key.src, IpAddress::parse("10.1.2.3")->bytes);
  EXPECT_EQ(key.dst, IpAddress::parse("10.4.5.6")->bytes);
  EXPECT_EQ(key.ttl, 17);
  EXPECT_EQ(key.tos, 0xb9);
  EXPECT_EQ(key.tcp_flags, tcp_flag::syn | tcp_flag::ece);
  EXPECT_EQ(number(key.src_port), 0x1234U);
  EXPECT_EQ(number(key.dst_port), 0x5678U);

  const Parsed v6(PacketBuilder().ipv6(v6_a, v6_b).ttl(3).tos(0x5a).udp(1, 2).bytes());
  EXPECT_EQ(v6.key.src, IpAddress::parse(v6_a)->bytes);
  EXPECT_EQ(v6.key.dst, IpAddress::parse(v6_b)->bytes);
  EXPECT_EQ(v6.key.ttl, 3);
  EXPECT_EQ(v6.key.tos, 0x5a);

  const Parsed arp(PacketBuilder().arp(2, "02:00:00:00:00:01", "10.0.0.1", "02:00:00:00:00:02", "10.0.0.2").bytes());
  EXPECT_EQ(arp.key.src, (std::array<std::uint8_t, 16>{10, 0, 0, 1, 2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(arp.key.dst, (std::array<std::uint8_t, 16>{10, 0, 0, 2, 2, 0, 0, 0, 0, 2}));
  EXPECT_EQ(number(arp.key.src_port), 2U);

  const Parsed other(PacketBuilder().eth_type(0x88cc).payload(4).bytes());
  EXPECT_EQ(other.key.src, (std::array<std::uint8_t, 16>{0x88, 0xcc}));

  const Parsed vxlan(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").vxlan(0x123456, PacketBuilder()).bytes());
  EXPECT_EQ(vxlan.key.vni, (std::array<std::uint8_t, 3>{0x12, 0x34, 0x56}));
}

TEST(Parse, APacketOutOfATunnelKeepsItsVni) {
  const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").vxlan(7, PacketBuilder()).bytes();
  const Parsed parsed(bytes, bytes.size(), 0x00abcdef);
  // VXLAN in VXLAN stays closed: the VNI of the key is that of the tunnel it came out of.
  EXPECT_EQ(parsed.packet.layout.to_string(), "tunnel ipv4 udp");
  EXPECT_EQ(parsed.key.vni, (std::array<std::uint8_t, 3>{0xab, 0xcd, 0xef}));
  expect_as_oracle(bytes, bytes.size(), 0x00abcdef);
  EXPECT_EQ(Parsed({}, 0, 5).packet.layout.to_string(), "tunnel broken: truncated_ethernet");
}

TEST(Parse, LeavesIngressAndStageAndClearsTheRest) {
  const Bytes tcp = PacketBuilder().vlan(1).vlan(2).ipv6(v6_a, v6_b).tcp(1, 2).bytes();
  Parsed parsed(tcp);
  const Bytes plain = PacketBuilder().bytes();
  Parsed other(plain);
  parsed.packet.data = other.packet.data;
  parsed.packet.length = other.packet.length;
  parsed.packet.segment = other.packet.segment;
  parse(parsed.packet, parsed.key);
  EXPECT_TRUE(parsed.key == other.key);
  EXPECT_EQ(parsed.packet.l4, 0);
}

TEST(Parse, EveryPrefixOfEveryCase) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.description);
    for (std::size_t length = 0; length <= c.bytes.size(); ++length) {
      // A frame that ends here, and one that goes on in a further segment.
      expect_as_oracle(first(c.bytes, length), length);
      expect_as_oracle(c.bytes, length);
      expect_as_oracle(first(c.bytes, length), length, 9);
    }
  }
}

TEST(Parse, LaterSegmentsAreNotRead) {
  // Headers are readable in the first segment; the rest of the frame lies elsewhere.
  const Bytes bytes = PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(5'000).bytes();
  const Parsed parsed(bytes, 300);
  EXPECT_EQ(parsed.packet.layout.to_string(), "ipv4 udp");
  EXPECT_FALSE(needs_pull_up(parsed.packet));
  const Parsed cut(bytes, 40);
  EXPECT_EQ(cut.packet.layout.to_string(), "ipv4 broken: headers_too_long");
  EXPECT_TRUE(needs_pull_up(cut.packet));
}

constexpr std::uint64_t seed = 20'240'601;

TEST(Parse, RandomBytes) {
  SCOPED_TRACE(seed);
  Random random(seed);
  for (int i = 0; i < 200'000; ++i) {
    Bytes bytes(random.below(300));
    for (auto& byte : bytes) {
      byte = static_cast<std::uint8_t>(random());
    }
    // Most random bytes are no IP; help them.
    if (bytes.size() > 15 && !random.one_in(4)) {
      static constexpr std::uint16_t types[] = {0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8};
      store_big<std::uint16_t>(&bytes[12], types[random.below(5)]);
      bytes[14] = random.one_in(2) ? 0x45 : 0x60;
    }
    if (bytes.size() > 20 && random.one_in(2)) {
      static constexpr std::uint8_t next[] = {0, 6, 17, 43, 44, 51, 58, 60, 132};
      bytes[20] = next[random.below(9)];
      bytes[16] = bytes[18] = 0;
    }
    ASSERT_NO_FATAL_FAILURE(expect_as_oracle(bytes, bytes.size())) << "round " << i;
  }
}

TEST(Parse, RandomMutations) {
  SCOPED_TRACE(seed);
  Random random(seed + 1);
  const std::vector<Case> all = cases();
  std::map<std::string, int> layouts;
  for (int i = 0; i < 300'000; ++i) {
    Bytes bytes = all[random.below(static_cast<std::uint32_t>(all.size()))].bytes;
    if (bytes.empty()) {
      continue;
    }
    const unsigned changes = 1 + random.below(4);
    for (unsigned change = 0; change < changes; ++change) {
      auto& byte = bytes[random.below(static_cast<std::uint32_t>(bytes.size()))];
      switch (random.below(4)) {
        case 0:
          byte = static_cast<std::uint8_t>(byte ^ (1U << random.below(8)));
          break;
        case 1:
          byte = static_cast<std::uint8_t>(byte + random.below(5) - 2);
          break;
        case 2:
          byte = random.one_in(2) ? 0 : 0xff;
          break;
        default:
          byte = static_cast<std::uint8_t>(random());
      }
    }
    if (random.one_in(4)) {
      bytes.resize(random.below(static_cast<std::uint32_t>(bytes.size() + 20)));
    }
    const std::size_t readable =
        random.one_in(4) ? random.below(static_cast<std::uint32_t>(bytes.size() + 1)) : bytes.size();
    const auto tunnel = random.one_in(4) ? std::optional<std::uint32_t>(random.below(1U << 24U)) : std::nullopt;
    ASSERT_NO_FATAL_FAILURE(expect_as_oracle(bytes, readable, tunnel)) << "round " << i;
    ++layouts[Oracle(bytes, readable, tunnel).run().layout];
  }
  EXPECT_GT(layouts.size(), 100U) << "the mutations reach few layouts";
}

TEST(L3Length, IsWhatTheHeaderSays) {
  struct L3Case {
    const char* description;
    Bytes bytes;
    std::uint32_t expected;
  };
  for (const L3Case& c : std::initializer_list<L3Case>{
           {"IPv4 without its padding", PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).pad_to(60).bytes(), 28},
           {"IPv6", PacketBuilder().ipv6(v6_a, v6_b).udp(1, 2).payload(3).pad_to(100).bytes(), 51},
           {"behind tags", PacketBuilder().vlan(1).vlan(2).ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes(), 28},
           {"not IP", PacketBuilder().vlan(1).payload(20).bytes(), 20},
           {"shorter than Ethernet", Bytes(5), 5}}) {
    const Parsed parsed(c.bytes);
    EXPECT_EQ(l3_length(parsed.packet), c.expected) << c.description;
  }
}

TEST(L3Length, OfOneSegment) {
  Parsed parsed(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).payload(3'000).bytes());
  parsed.packet.offload.gso_size = 1448;
  EXPECT_EQ(l3_length(parsed.packet), 1488U);
}

}  // namespace
}  // namespace weir
