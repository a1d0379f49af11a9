#include <weir/packet/segment.h>

#include <algorithm>
#include <cstring>

#include <weir/packet/checksum.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/parse.h>
#include <weir/packet/pull_up.h>
#include <weir/packet/tcp.h>
#include <weir/packet/udp.h>

namespace weir {

namespace {

// Reads a chain from front to end.
class Reader {
 public:
  Reader(const Packet& packet, unsigned from) : at_(&packet), offset_(from) {}

  void read(std::uint8_t* to, std::size_t bytes) {
    while (bytes != 0) {
      while (offset_ == at_->segment) {
        at_ = at_->next;
        offset_ = 0;
      }
      const std::size_t part = std::min<std::size_t>(bytes, at_->segment - offset_);
      std::memcpy(to, at_->data + offset_, part);
      to += part;
      offset_ += static_cast<unsigned>(part);
      bytes -= part;
    }
  }

 private:
  const Packet* at_;
  unsigned offset_;
};

// What the segments of one packet have in common.
struct Plan {
  bool tcp;
  bool v6;
  unsigned outer;     // bytes of the tunnel's headers; 0: none
  unsigned outer_l3;  // in these
  unsigned outer_l4;
  bool outer_v6;
  unsigned l3;
  unsigned l4;
  unsigned headers;  // bytes, up to the payload
  std::uint32_t payload;
  std::uint32_t size;  // payload of each segment but the last
};

// Looks behind the tunnel's headers: parses `packet` without them, and leaves it so.
bool enter_tunnel(PacketCache& frames, Packet& packet, Plan& plan) {
  const bool v6 = (packet.offload.gso_type & gso::tunnel) == gso::tunnel6;
  if ((packet.offload.gso_type & gso::tunnel) == gso::tunnel || !packet.layout.vxlan() ||
      packet.layout.l3() != (v6 ? L3::ipv6 : L3::ipv4)) {
    return false;
  }
  plan.outer = packet.payload;
  plan.outer_l3 = packet.l3;
  plan.outer_l4 = packet.l4;
  plan.outer_v6 = v6;
  PacketCache::pop_front(packet, plan.outer);
  Key key;
  pull_up_and_parse(frames, packet, key);
  return true;
}

void leave_tunnel(Packet& packet, const Plan& plan) {
  packet.data -= plan.outer;
  packet.length += plan.outer;
  packet.segment = static_cast<std::uint16_t>(packet.segment + plan.outer);
}

// Whether the offload state says what the headers say. `packet` is parsed, without the tunnel's headers.
bool make_plan(const Packet& packet, Plan& plan) {
  const std::uint8_t type = packet.offload.gso_type & static_cast<std::uint8_t>(~(gso::ecn | gso::tunnel));
  const L3 l3 = packet.layout.l3();
  const L4 l4 = packet.layout.l4();
  const bool fits = (type == gso::tcp4 && l3 == L3::ipv4 && l4 == L4::tcp) ||
                    (type == gso::tcp6 && l3 == L3::ipv6 && l4 == L4::tcp) || (type == gso::udp && l4 == L4::udp);
  if (!fits || packet.offload.gso_size == 0 || (packet.offload.flags & Offload::needs_checksum) == 0 ||
      packet.offload.checksum_start != plan.outer + packet.l4) {
    return false;
  }
  plan.tcp = l4 == L4::tcp;
  plan.v6 = l3 == L3::ipv6;
  plan.l3 = packet.l3;
  plan.l4 = packet.l4;
  // The payload of VXLAN begins further in than that of UDP.
  plan.headers = packet.l4 + static_cast<unsigned>(
                                 plan.tcp ? reinterpret_cast<const TcpHeader*>(packet.data + packet.l4)->header_length()
                                          : sizeof(UdpHeader));
  const std::uint8_t* const ip = packet.data + packet.l3;
  const std::uint32_t length =
      plan.v6 ? sizeof(Ipv6Header) + std::uint32_t{reinterpret_cast<const Ipv6Header*>(ip)->payload_length}
              : std::uint32_t{reinterpret_cast<const Ipv4Header*>(ip)->total_length};
  const std::uint32_t end = packet.l3 + length;
  if (plan.headers >= end || end > packet.length || plan.headers > packet.segment) {
    return false;
  }
  plan.payload = end - plan.headers;
  plan.size = packet.offload.gso_size;
  plan.headers += plan.outer;
  plan.l3 += plan.outer;
  plan.l4 += plan.outer;
  return true;
}

// An empty frame for `bytes` bytes, as a chain if need be.
Packet* allocate(PacketCache& frames, std::uint32_t bytes) {
  Packet* first = nullptr;
  Packet** link = &first;
  for (std::uint32_t left = bytes; left != 0;) {
    Packet* part = frames.allocate();
    if (part == nullptr) {
      frames.free(first);
      return nullptr;
    }
    part->segment = static_cast<std::uint16_t>(std::min(left, FramePool::segment_bytes));
    part->length = part->segment;
    left -= part->segment;
    *link = part;
    link = &part->next;
  }
  first->length = bytes;
  return first;
}

void set_l3_length(std::uint8_t* l3, bool v6, std::size_t length) {
  if (v6) {
    reinterpret_cast<Ipv6Header*>(l3)->payload_length = static_cast<std::uint16_t>(length - sizeof(Ipv6Header));
    return;
  }
  auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
  ip.total_length = static_cast<std::uint16_t>(length);
  ip.checksum = 0;
  ip.checksum = static_cast<std::uint16_t>(~checksum::sum({l3, ip.header_length()}));
}

// Makes the copied headers those of the segment that begins `offset` bytes into the payload.
void adapt(Packet& segment, const Plan& plan, std::uint32_t offset, std::uint32_t payload, std::uint32_t index) {
  std::uint8_t* const l3 = segment.data + plan.l3;
  std::uint8_t* const l4 = segment.data + plan.l4;
  const bool last = offset + payload == plan.payload;
  if (!plan.v6) {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    ip.id = static_cast<std::uint16_t>(ip.id + index);
  }
  set_l3_length(l3, plan.v6, plan.headers - plan.l3 + payload);
  if (plan.outer != 0) {
    // The tunnel's UDP has no checksum (RFC 7348, section 5), its packets no identification: they are never fragmented.
    set_l3_length(segment.data + plan.outer_l3, plan.outer_v6, plan.headers - plan.outer_l3 + payload);
    reinterpret_cast<UdpHeader*>(segment.data + plan.outer_l4)->length =
        static_cast<std::uint16_t>(plan.headers - plan.outer_l4 + payload);
  }
  // The checksum field holds the pseudo-header's sum, in which only the length changes.
  const std::uint32_t before = plan.headers - plan.l4 + plan.payload;
  const std::uint32_t after = plan.headers - plan.l4 + payload;
  const auto lengths = std::uint64_t{after} + static_cast<std::uint16_t>(~checksum::fold(before));
  if (plan.tcp) {
    auto& tcp = *reinterpret_cast<TcpHeader*>(l4);
    tcp.sequence = tcp.sequence + offset;
    if (!last) {
      tcp.flags &= static_cast<std::uint8_t>(~(tcp_flag::fin | tcp_flag::psh));
    }
    if (index != 0) {
      tcp.flags &= static_cast<std::uint8_t>(~tcp_flag::cwr);
    }
    tcp.checksum = checksum::fold(tcp.checksum + lengths);
  } else {
    auto& udp = *reinterpret_cast<UdpHeader*>(l4);
    udp.length = static_cast<std::uint16_t>(after);
    udp.checksum = checksum::fold(udp.checksum + lengths);
  }
}

}  // namespace

Segmented segment(PacketCache& frames, Packet& packet, std::vector<Packet*>& out) {
  Key key;
  pull_up_and_parse(frames, packet, key);
  Plan plan{};
  bool possible = true;
  if ((packet.offload.gso_type & gso::tunnel) != 0) {
    possible = enter_tunnel(frames, packet, plan);
    possible = possible && make_plan(packet, plan);
    leave_tunnel(packet, plan);
    parse(packet, key);
  } else {
    possible = make_plan(packet, plan);
  }
  if (!possible) {
    return Segmented::not_possible;
  }
  const std::size_t first = out.size();
  Reader reader(packet, plan.headers);
  std::uint32_t index = 0;
  for (std::uint32_t offset = 0; offset < plan.payload; offset += plan.size, ++index) {
    const std::uint32_t payload = std::min(plan.size, plan.payload - offset);
    Packet* made = allocate(frames, plan.headers + payload);
    if (made == nullptr) {
      frames.free_many(std::span(out).subspan(first));
      out.resize(first);
      return Segmented::no_frames;
    }
    made->timestamp = packet.timestamp;
    made->ingress = packet.ingress;
    made->stage = packet.stage;
    made->tunnel = packet.tunnel;
    made->vni = packet.vni;
    made->layout = packet.layout;
    made->payload = packet.payload;
    made->l3 = packet.l3;
    made->l4 = packet.l4;
    made->vlan = packet.vlan;
    made->offload = packet.offload;
    made->offload.gso_type = gso::none;
    made->offload.gso_size = 0;
    made->offload.header_length = 0;
    std::memcpy(made->data, packet.data, plan.headers);
    unsigned skip = plan.headers;
    for (Packet* part = made; part != nullptr; part = part->next) {
      reader.read(part->data + skip, part->segment - skip);
      skip = 0;
    }
    adapt(*made, plan, offset, payload, index);
    out.push_back(made);
  }
  frames.free(&packet);
  return Segmented::done;
}

}  // namespace weir
