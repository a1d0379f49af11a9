#include <weir/packet/edit.h>

#include <array>
#include <utility>

#include <weir/packet/segment.h>

namespace weir::edit {

namespace {

// The headers behind the tags have moved by `bytes`.
void shift(Packet& packet, int bytes) {
  packet.l3 = static_cast<std::uint8_t>(packet.l3 + bytes);
  packet.payload = static_cast<std::uint16_t>(packet.payload + bytes);
  if (packet.l4 != 0) {
    packet.l4 = static_cast<std::uint8_t>(packet.l4 + bytes);
  }
  if ((packet.offload.flags & Offload::needs_checksum) != 0) {
    packet.offload.checksum_start = static_cast<std::uint16_t>(packet.offload.checksum_start + bytes);
  }
  if (packet.offload.gso_size != 0) {
    packet.offload.header_length = static_cast<std::uint16_t>(packet.offload.header_length + bytes);
  }
}

}  // namespace

bool push_vlan(PacketCache& frames, Packet& packet, std::uint16_t control) {
  std::uint8_t* front = frames.push_front(packet, 4);
  if (front == nullptr) {
    return false;
  }
  std::memmove(front, front + 4, 12);
  store_big<std::uint16_t>(front + 12, ethertype::vlan);
  store_big<std::uint16_t>(front + 14, control);
  packet.layout.set_tags(packet.layout.tags() + 1);
  shift(packet, 4);
  return true;
}

// The checksum of the quoted packet's own transport header, if it is quoted as far; the packet that was sent had it.
// One that covers what is not there (SCTP) cannot be brought along, and nobody could check it.
void translate_quoted(Packet& packet, const QuotedTranslation& translation) {
  if (packet.offload.gso_size == 0) {
    finish_checksum(packet);
  }
  std::uint8_t* icmp = packet.data + packet.l4;
  std::uint8_t* l3 = icmp + translation.l3;
  std::uint8_t* l4 = icmp + translation.l4;
  const auto replace = [&](std::uint8_t* at, std::span<const std::uint8_t> with, std::uint8_t* covered_by) {
    const std::span<const std::uint8_t> before(at, with.size());
    for (std::uint8_t* checksum : {covered_by, icmp + 2}) {
      if (checksum != nullptr) {
        store_big<std::uint16_t>(checksum, checksum::update(load_big<std::uint16_t>(checksum), before, with));
      }
    }
    std::ranges::copy(with, at);
  };
  const auto replace_word = [&](std::uint8_t* at, std::uint16_t with, std::uint8_t* covered_by) {
    std::uint8_t word[2];
    store_big<std::uint16_t>(word, with);
    replace(at, word, covered_by);
  };
  // Changes within the quoted packet, first of its own checksums, which the message's covers too.
  const std::uint8_t protocol = translation.protocol;
  const std::size_t field = protocol == ip_protocol::tcp   ? offsetof(TcpHeader, checksum)
                            : protocol == ip_protocol::udp ? offsetof(UdpHeader, checksum)
                                                           : 2;
  const bool summed = protocol == ip_protocol::tcp || protocol == ip_protocol::udp || protocol == ip_protocol::icmp ||
                      protocol == ip_protocol::icmpv6;
  const bool there = summed && translation.l4 - translation.l3 + field + 2 <= translation.bytes &&
                     l4 + field + 2 <= packet.data + packet.head() &&
                     !(protocol == ip_protocol::udp && load_big<std::uint16_t>(l4 + field) == 0);
  std::array<std::uint8_t, 2> transport{};  // worked on beside the packet, and put there as one change
  if (there) {
    std::copy_n(l4 + field, 2, transport.begin());
  }
  std::uint8_t* own = there ? transport.data() : nullptr;
  const bool v6 = translation.src.v6;
  const std::size_t size = v6 ? 16 : 4;
  for (const auto& [address, offset] :
       {std::pair(&translation.src, v6 ? 8U : 12U), std::pair(&translation.dst, v6 ? 24U : 16U)}) {
    const std::span<const std::uint8_t> with(address->bytes.data(), size);
    if (own != nullptr && protocol != ip_protocol::icmp) {
      store_big<std::uint16_t>(own, checksum::update(load_big<std::uint16_t>(own), {l3 + offset, size}, with));
    }
    if (!v6) {
      auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
      const std::uint16_t updated = checksum::update(ip.checksum, {l3 + offset, size}, with);
      replace_word(l3 + offsetof(Ipv4Header, checksum), updated, nullptr);
    }
    replace(l3 + offset, with, nullptr);
  }
  if (protocol == ip_protocol::icmp || protocol == ip_protocol::icmpv6) {
    replace_word(l4 + 4, translation.icmp_id, own);
  } else if (ip_protocol::has_ports(protocol)) {
    replace_word(l4, translation.src_port, own);
    replace_word(l4 + 2, translation.dst_port, own);
  }
  if (own != nullptr) {
    const std::uint16_t sum = load_big<std::uint16_t>(own);
    replace_word(l4 + field, protocol == ip_protocol::udp && sum == 0 ? 0xffff : sum, nullptr);
  }
}

void pop_vlan(Packet& packet) {
  std::memmove(packet.data + 4, packet.data, 12);
  PacketCache::pop_front(packet, 4);
  packet.layout.set_tags(packet.layout.tags() - 1);
  shift(packet, -4);
}

void enter_tunnel(Offload& offload, unsigned bytes, bool v6) {
  offload.gso_type |= v6 ? gso::tunnel6 : gso::tunnel4;
  offload.checksum_start = static_cast<std::uint16_t>(offload.checksum_start + bytes);
  offload.header_length = static_cast<std::uint16_t>(offload.header_length + bytes);
}

bool exit_tunnel(Offload& offload, unsigned bytes) {
  if ((offload.gso_type & gso::tunnel) == 0) {
    return false;
  }
  offload.gso_type &= static_cast<std::uint8_t>(~gso::tunnel);
  offload.checksum_start = static_cast<std::uint16_t>(offload.checksum_start - bytes);
  offload.header_length = static_cast<std::uint16_t>(offload.header_length - bytes);
  return true;
}

void finish_checksum(Packet& packet) {
  if ((packet.offload.flags & Offload::needs_checksum) == 0) {
    return;
  }
  packet.offload.flags = static_cast<std::uint8_t>(packet.offload.flags & ~Offload::needs_checksum);
  const unsigned start = packet.offload.checksum_start;
  const unsigned at = start + packet.offload.checksum_offset;
  if (at + 2 > packet.segment) {
    return;  // the sender's claim does not fit its frame
  }
  std::uint16_t sum = 0;
  unsigned skip = start;
  bool odd = false;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    const std::span<const std::uint8_t> bytes = segment->bytes().subspan(skip);
    // A segment that begins at an odd offset has its bytes in the other halves of the words.
    const std::uint16_t part = checksum::sum(bytes);
    sum = checksum::fold(std::uint64_t{sum} + (odd ? std::byteswap(part) : part));
    odd = odd != (bytes.size() % 2 != 0);
    skip = 0;
  }
  auto value = static_cast<std::uint16_t>(~sum);
  if (value == 0) {
    value = 0xffff;  // the same number to whoever verifies it, and not "none" to UDP
  }
  store_big<std::uint16_t>(packet.data + at, value);
}

}  // namespace weir::edit
