#include <weir/engine/host/arp.h>

#include <cstring>

namespace weir {

namespace {

constexpr std::uint16_t request = 1;
constexpr std::uint16_t reply = 2;
constexpr std::uint32_t shortest_frame = 60;  // without the check sequence

}  // namespace

std::optional<ArpMessage> read_arp(const Packet& packet) {
  const auto& arp = *reinterpret_cast<const ArpHeader*>(packet.data + packet.l3);
  if ((arp.operation != request && arp.operation != reply) || arp.sender_mac.multicast() ||
      arp.sender_mac == MacAddress{}) {
    return std::nullopt;
  }
  return ArpMessage{arp.operation == reply, arp.sender_mac, arp.sender_ip, arp.target_mac, arp.target_ip};
}

Packet* make_arp(PacketCache& frames, const ArpMessage& message, const MacAddress& to) {
  Packet* packet = frames.allocate();
  if (packet == nullptr) {
    return nullptr;
  }
  packet->length = shortest_frame;
  packet->segment = shortest_frame;
  std::memset(packet->data, 0, shortest_frame);
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(packet->data);
  ethernet.dst = to;
  ethernet.src = message.sender_mac;
  ethernet.type = ethertype::arp;
  auto& arp = *reinterpret_cast<ArpHeader*>(packet->data + sizeof(EthernetHeader));
  arp.hardware = 1;
  arp.protocol = ethertype::ipv4;
  arp.hardware_length = sizeof(MacAddress);
  arp.protocol_length = sizeof(Ipv4Address);
  arp.operation = message.reply ? reply : request;
  arp.sender_mac = message.sender_mac;
  arp.sender_ip = message.sender;
  arp.target_mac = message.target_mac;
  arp.target_ip = message.target;
  return packet;
}

}  // namespace weir
