#pragma once
// ARP for IPv4 over Ethernet (RFC 826).

#include <weir/packet/ethernet.h>

namespace weir {

struct ArpHeader {
  Big16 hardware;  ///< 1: Ethernet
  Big16 protocol;  ///< EtherType of IPv4
  std::uint8_t hardware_length;
  std::uint8_t protocol_length;
  Big16 operation;  ///< 1 request, 2 reply
  MacAddress sender_mac;
  Ipv4Address sender_ip;
  MacAddress target_mac;
  Ipv4Address target_ip;
};
static_assert(sizeof(ArpHeader) == 28);

}  // namespace weir
