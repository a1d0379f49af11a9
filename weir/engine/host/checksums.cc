#include <weir/engine/host/checksums.h>

#include <algorithm>
#include <bit>

#include <weir/packet/checksum.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>

namespace weir {

std::uint16_t sum_of(const Packet& packet, unsigned from, unsigned bytes) {
  std::uint64_t total = 0;
  bool odd = false;
  for (const Packet* segment = &packet; segment != nullptr && bytes > 0; segment = segment->next) {
    if (from >= segment->segment) {
      from -= segment->segment;
      continue;
    }
    const unsigned part = std::min<unsigned>(segment->segment - from, bytes);
    const std::uint16_t sum = checksum::sum({segment->data + from, part});
    // A segment that begins at an odd offset has its bytes in the other halves of the words.
    total += odd ? std::byteswap(sum) : sum;
    odd = odd != (part % 2 != 0);
    bytes -= part;
    from = 0;
  }
  return checksum::fold(total);
}

unsigned ip_bytes(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  if (packet.layout.l3() == L3::ipv6) {
    return sizeof(Ipv6Header) + reinterpret_cast<const Ipv6Header*>(l3)->payload_length;
  }
  return reinterpret_cast<const Ipv4Header*>(l3)->total_length;
}

bool ipv4_checksum_right(const Packet& packet) {
  const auto& ip = *reinterpret_cast<const Ipv4Header*>(packet.data + packet.l3);
  return sum_of(packet, packet.l3, ip.header_length()) == 0xffff;
}

std::uint16_t icmp_sum(const Packet& packet) {
  const unsigned bytes = packet.l3 + ip_bytes(packet) - packet.l4;
  std::uint64_t sum = sum_of(packet, packet.l4, bytes);
  if (packet.layout.l4() == L4::icmpv6) {
    sum += sum_of(packet, packet.l3 + offsetof(Ipv6Header, src), 2 * sizeof(Ipv6Address));
    sum += bytes + ip_protocol::icmpv6;
  }
  return checksum::fold(sum);
}

}  // namespace weir
