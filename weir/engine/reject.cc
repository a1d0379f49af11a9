#include <weir/engine/reject.h>

#include <algorithm>

#include <weir/packet/icmp_error.h>

namespace weir {

namespace {

IcmpErrorKind kind_of(const RejectNumber& what, bool v6) {
  switch (what.error) {
    case IcmpError::time_exceeded:
      return v6 ? IcmpErrorKind{3, 0, 0} : IcmpErrorKind{11, 0, 0};
    case IcmpError::no_route:
      return v6 ? IcmpErrorKind{1, 0, 0} : IcmpErrorKind{3, 0, 0};
    case IcmpError::prohibited:
      return v6 ? IcmpErrorKind{1, 1, 0} : IcmpErrorKind{3, 13, 0};
    case IcmpError::port_unreachable:
      return v6 ? IcmpErrorKind{1, 4, 0} : IcmpErrorKind{3, 3, 0};
    case IcmpError::host_unreachable:
      return v6 ? IcmpErrorKind{1, 3, 0} : IcmpErrorKind{3, 1, 0};
    case IcmpError::too_big:
      return v6 ? IcmpErrorKind{2, 0, what.mtu} : IcmpErrorKind{3, 4, what.mtu};
  }
  return {};
}

IpAddress destination_of(const Packet& packet) {
  IpAddress address;
  address.v6 = packet.layout.l3() == L3::ipv6;
  std::copy_n(packet.data + packet.l3 + (address.v6 ? 24 : 16), address.v6 ? 16 : 4, address.bytes.begin());
  return address;
}

}  // namespace

Packet* make_reject(State& state, const PortTable& ports, PacketCache& frames, const Packet& packet,
                    const RejectNumber& what, Nanoseconds now) {
  // There is no way back but by the tunnel that it came out of.
  if (!packet.layout.ip() || packet.tunnel != 0 || !ports.known(packet.ingress)) {
    return nullptr;
  }
  const bool v6 = packet.layout.l3() == L3::ipv6;
  const std::uint16_t named = ports.known(what.as.number) ? what.as.number : packet.ingress;
  const auto& addresses = ports.ports[named].addresses;
  const auto own = std::ranges::find_if(addresses, [v6](const PortAddress& each) { return each.address.v6 == v6; });
  IpAddress source;
  if (own != addresses.end()) {
    source = own->address;
  } else if (what.error == IcmpError::too_big) {
    source = destination_of(packet);  // else the path's MTU could not be found across a switch
  } else {
    return nullptr;
  }
  Packet* message = make_icmp_error(frames, packet, kind_of(what, v6), source);
  if (message != nullptr && !state.icmp_errors().conforms(message->length, now)) {
    frames.free(message);
    return nullptr;
  }
  return message;
}

}  // namespace weir
