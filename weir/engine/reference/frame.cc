#include <weir/engine/reference/frame.h>

#include <weir/engine/reference/headers.h>

namespace weir::reference {

Frame read(const Packet& packet) {
  Frame frame;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    frame.bytes.insert(frame.bytes.end(), segment->data, segment->data + segment->segment);
  }
  frame.timestamp = packet.timestamp;
  frame.ingress = packet.ingress;
  frame.egress = packet.egress;
  frame.stage = packet.stage;
  frame.waits = packet.waits;
  frame.tunnel = packet.tunnel != 0;
  frame.vni = packet.vni;
  frame.vlan = packet.vlan;
  frame.offload = packet.offload;
  return frame;
}

Packet* write(const Frame& frame, PacketCache& frames) {
  Packet* packet = frames.allocate(frame.bytes);
  if (packet == nullptr) {
    return nullptr;
  }
  packet->timestamp = frame.timestamp;
  packet->ingress = frame.ingress;
  packet->egress = frame.egress;
  packet->stage = frame.stage;
  packet->waits = frame.waits & 0x7fU;
  packet->tunnel = frame.tunnel ? 1 : 0;
  packet->vni = frame.vni;
  packet->vlan = frame.vlan;
  packet->offload = frame.offload;
  const Headers headers = parse(frame);
  packet->layout = headers.layout;
  packet->l3 = static_cast<std::uint8_t>(headers.l3);
  packet->l4 = static_cast<std::uint8_t>(headers.l4);
  packet->payload = static_cast<std::uint16_t>(headers.payload);
  return packet;
}

}  // namespace weir::reference
