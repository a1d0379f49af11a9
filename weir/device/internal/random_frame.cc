#include <algorithm>
#include <cstring>

#include <weir/device/internal/generator.h>
#include <weir/packet/arp.h>
#include <weir/packet/checksum.h>
#include <weir/packet/icmp.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/sctp.h>
#include <weir/packet/tcp.h>
#include <weir/packet/udp.h>
#include <weir/packet/vxlan.h>

namespace weir::device_internal {

namespace {

// The frame is random bits already; what would keep it from being parsed is put right from the front to the back.
class RandomFrame {
 public:
  RandomFrame(std::span<std::uint8_t> frame, std::uint64_t choices) : frame_(frame), choices_(choices) {}

  void write() {
    frame_[0] &= 0xfeU;  // addresses of stations, not of groups
    frame_[6] &= 0xfeU;
    std::size_t type_at = offsetof(EthernetHeader, type);
    const unsigned tags = one_in(8) ? 1 + (one_in(4) ? 1U : 0U) : 0;
    for (unsigned tag = 0; tag < tags; ++tag) {
      store_big<std::uint16_t>(&frame_[type_at], tags == 2 && tag == 0 ? ethertype::service_vlan : ethertype::vlan);
      type_at += sizeof(VlanTag);
    }
    const std::size_t l3 = type_at + 2;
    if (one_in(16)) {
      store_big<std::uint16_t>(&frame_[type_at], ethertype::arp);
      arp(l3);
    } else if (one_in(4)) {
      store_big<std::uint16_t>(&frame_[type_at], ethertype::ipv6);
      ipv6(l3);
    } else {
      store_big<std::uint16_t>(&frame_[type_at], ethertype::ipv4);
      ipv4(l3);
    }
  }

 private:
  // True with probability 1 / n, for n a power of two; uses up as many of the choice bits.
  bool one_in(unsigned n) {
    const bool chosen = (choices_ & (n - 1)) == 0;
    choices_ >>= static_cast<unsigned>(__builtin_ctz(n));
    return chosen;
  }

  void arp(std::size_t at) {
    store_big<std::uint16_t>(&frame_[at], 1);
    store_big<std::uint16_t>(&frame_[at + 2], ethertype::ipv4);
    frame_[at + 4] = 6;
    frame_[at + 5] = 4;
    store_big<std::uint16_t>(&frame_[at + 6], one_in(2) ? 1 : 2);
  }

  void ipv4(std::size_t at) {
    const std::size_t options = one_in(16) && frame_.size() >= at + 24 + sizeof(UdpHeader) ? 4 : 0;
    const std::size_t l4 = at + sizeof(Ipv4Header) + options;
    frame_[at] = static_cast<std::uint8_t>(0x45U + options / 4);
    store_big<std::uint16_t>(&frame_[at + offsetof(Ipv4Header, total_length)],
                             static_cast<std::uint16_t>(frame_.size() - at));
    std::uint16_t fragment = one_in(2) ? Ipv4Header::dont_fragment : std::uint16_t{0};
    if (one_in(16)) {
      // Half of them first ones; `choices_` gives a later one its offset.
      fragment = one_in(2) ? Ipv4Header::more_fragments : static_cast<std::uint16_t>(1 + (choices_ & 0xffU));
    }
    store_big<std::uint16_t>(&frame_[at + offsetof(Ipv4Header, fragment)], fragment);
    std::uint8_t& ttl = frame_[at + offsetof(Ipv4Header, ttl)];
    ttl = std::max<std::uint8_t>(ttl, 2);
    if (options != 0) {
      std::fill_n(&frame_[at + sizeof(Ipv4Header)], options, std::uint8_t{1});  // no operation
    }
    frame_[at + offsetof(Ipv4Header, protocol)] = l4_header(l4, ip_protocol::icmp);
    store_big<std::uint16_t>(&frame_[at + offsetof(Ipv4Header, checksum)], 0);
    const std::uint16_t sum = checksum::sum(frame_.subspan(at, l4 - at));
    store_big<std::uint16_t>(&frame_[at + offsetof(Ipv4Header, checksum)], static_cast<std::uint16_t>(~sum));
  }

  void ipv6(std::size_t at) {
    const std::size_t l4 = at + sizeof(Ipv6Header);
    frame_[at] = static_cast<std::uint8_t>(0x60U | (frame_[at] & 0x0fU));
    store_big<std::uint16_t>(&frame_[at + offsetof(Ipv6Header, payload_length)],
                             static_cast<std::uint16_t>(frame_.size() - l4));
    std::uint8_t& hops = frame_[at + offsetof(Ipv6Header, hop_limit)];
    hops = std::max<std::uint8_t>(hops, 2);
    frame_[at + offsetof(Ipv6Header, src)] = 0x20;  // global unicast
    frame_[at + offsetof(Ipv6Header, dst)] = 0x20;
    frame_[at + offsetof(Ipv6Header, next_header)] = l4_header(l4, ip_protocol::icmpv6);
  }

  // Makes the header at `at` one that fits; returns its protocol.
  std::uint8_t l4_header(std::size_t at, std::uint8_t icmp) {
    const std::size_t room = frame_.size() - at;
    switch (choices_ & 7U) {
      case 0:
        if (room >= sizeof(SctpHeader)) {
          return ip_protocol::sctp;
        }
        break;
      case 1:
        if (room >= sizeof(IcmpHeader)) {
          return icmp;
        }
        break;
      case 2:
      case 3:
      case 4:
        if (room >= sizeof(UdpHeader)) {
          std::uint8_t& port = frame_[at + offsetof(UdpHeader, dst_port)];
          if (port == VxlanHeader::port >> 8U) {
            port = 0;  // not VXLAN, whose header may not fit
          }
          store_big<std::uint16_t>(&frame_[at + offsetof(UdpHeader, length)], static_cast<std::uint16_t>(room));
          store_big<std::uint16_t>(&frame_[at + offsetof(UdpHeader, checksum)], 0);
          return ip_protocol::udp;
        }
        break;
      case 5:
      case 6:
        if (room >= sizeof(TcpHeader)) {
          std::uint8_t& offset = frame_[at + offsetof(TcpHeader, data_offset)];
          offset = static_cast<std::uint8_t>((sizeof(TcpHeader) / 4) << 4U | (offset & 0x0fU));
          return ip_protocol::tcp;
        }
        break;
      default:
        break;
    }
    return static_cast<std::uint8_t>(200 + (choices_ >> 3U) % 50);  // unassigned ones
  }

  std::span<std::uint8_t> frame_;
  std::uint64_t choices_;
};

}  // namespace

void write_random_frame(std::span<std::uint8_t> frame, Random& random) {
  // Headers end within the first 128 bytes; the rest need not be random.
  const std::size_t fresh = std::min<std::size_t>(frame.size(), 128);
  for (std::size_t i = 0; i < fresh; i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(&frame[i], &bits, std::min<std::size_t>(8, fresh - i));
  }
  std::fill(frame.begin() + static_cast<std::ptrdiff_t>(fresh), frame.end(), std::uint8_t{0});
  RandomFrame(frame, random()).write();
}

}  // namespace weir::device_internal
