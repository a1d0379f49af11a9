#include <weir/engine/host/echo.h>

#include <algorithm>

#include <weir/engine/host/checksums.h>
#include <weir/packet/edit.h>
#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>

namespace weir {

namespace {

constexpr std::uint8_t first_ttl = 64;

}  // namespace

bool is_echo_request(const Packet& packet) {
  const auto& icmp = *reinterpret_cast<const IcmpHeader*>(packet.data + packet.l4);
  const bool v6 = packet.layout.l3() == L3::ipv6;
  return icmp.type == (v6 ? icmpv6_type::echo : icmp_type::echo) && icmp.code == 0 &&
         packet.layout.l4() == (v6 ? L4::icmpv6 : L4::icmp);
}

void turn_into_reply(Packet& packet) {
  const bool v6 = packet.layout.l3() == L3::ipv6;
  auto& ethernet = *reinterpret_cast<EthernetHeader*>(packet.data);
  std::swap(ethernet.dst, ethernet.src);
  std::uint8_t* l3 = packet.data + packet.l3;
  // The sums over both addresses stay the same.
  if (v6) {
    auto& ip = *reinterpret_cast<Ipv6Header*>(l3);
    std::swap(ip.src, ip.dst);
  } else {
    auto& ip = *reinterpret_cast<Ipv4Header*>(l3);
    std::swap(ip.src, ip.dst);
  }
  edit::set_ttl(packet, first_ttl);
  auto& icmp = *reinterpret_cast<IcmpHeader*>(packet.data + packet.l4);
  icmp.type = v6 ? icmpv6_type::echo_reply : icmp_type::echo_reply;
  // An update would not do: a message all of zeros has another checksum than it comes to.
  icmp.checksum = 0;
  icmp.checksum = static_cast<std::uint16_t>(~icmp_sum(packet));
  packet.offload.flags = packet.offload.flags & Offload::has_vlan;
}

}  // namespace weir
