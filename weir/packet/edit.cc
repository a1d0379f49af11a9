#include <weir/packet/edit.h>

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
