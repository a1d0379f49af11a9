#pragma once
// The fields of a packet that a stage can read, test and set: `flow[eth::src]`.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>

#include <weir/packet/address.h>
#include <weir/packet/key.h>

namespace weir {

enum class FieldId : std::uint8_t {
  eth_dst,
  eth_src,
  eth_type,
  vlan_id,
  vlan_pcp,
  vlan_inner_id,
  vlan_inner_pcp,
  arp_operation,
  arp_sender_ip,
  arp_sender_mac,
  arp_target_ip,
  arp_target_mac,
  ip_src,
  ip_dst,
  ip_protocol,
  ip_dscp,
  ip_ecn,
  ip_ttl,
  l4_src_port,
  l4_dst_port,
  tcp_flags,
  icmp_type,
  icmp_code,
  icmp_id,
  vxlan_vni,
  tunnel_vni,
};
inline constexpr unsigned field_count = 26;

/// A field's value in transit: numbers right-aligned in the field's bytes, big-endian, addresses as they are.
struct FieldValue {
  std::array<std::uint8_t, 16> bytes{};
  bool v6 = false;  ///< an IP address is IPv6

  bool operator==(const FieldValue&) const = default;
};

/// Where a field stands in the Key, and when a packet has it.
struct FieldSpec {
  std::string_view name;  ///< "ip.dst"
  std::uint8_t offset;    ///< in Key, bytes
  std::uint8_t bytes;     ///< in Key; 16 for an IP address, of which IPv4 uses 4
  std::uint8_t shift;     ///< numbers only: bits below the field in its last byte
  std::uint16_t mask;     ///< numbers only: the field's bits after the shift
  bool number;
  bool settable;
};

const FieldSpec& spec(FieldId field);

/// Whether a packet of this layout has the field.
bool present(FieldId field, Layout layout);

/// Bytes of the field's value for this layout (4 or 16 for IP addresses).
inline unsigned value_bytes(FieldId field, Layout layout) {
  const FieldSpec& s = spec(field);
  return s.bytes == 16 && layout.l3() != L3::ipv6 ? 4 : s.bytes;
}

/// The field's value in a key. The field is present.
FieldValue extract(FieldId field, const Key& key);

/// Puts bits of a value into a key, each where the field's bit stands. For values and for masks alike.
void deposit(FieldId field, const FieldValue& value, Key& key);

/// A typed name for a field.
template <class T>
struct Field {
  using Value = T;
  FieldId id;
};

template <class T>
T from_field(const FieldValue& v) {
  if constexpr (std::same_as<T, std::uint8_t>) {
    return v.bytes[0];
  } else if constexpr (std::same_as<T, std::uint16_t>) {
    return load_big<std::uint16_t>(v.bytes.data());
  } else if constexpr (std::same_as<T, std::uint32_t>) {  // VNI, 24 bits
    return load_big<std::uint32_t>(v.bytes.data()) >> 8U;
  } else if constexpr (std::same_as<T, IpAddress>) {
    IpAddress address;
    address.bytes = v.bytes;
    address.v6 = v.v6;
    return address;
  } else {
    T address;
    std::copy_n(v.bytes.begin(), address.bytes.size(), address.bytes.begin());
    return address;
  }
}

template <class T>
FieldValue to_field(const T& value) {
  FieldValue v;
  if constexpr (std::same_as<T, std::uint8_t>) {
    v.bytes[0] = value;
  } else if constexpr (std::same_as<T, std::uint16_t>) {
    store_big<std::uint16_t>(v.bytes.data(), value);
  } else if constexpr (std::same_as<T, std::uint32_t>) {
    store_big<std::uint32_t>(v.bytes.data(), value << 8U);
  } else {
    std::copy(value.bytes.begin(), value.bytes.end(), v.bytes.begin());
    if constexpr (std::same_as<T, IpAddress>) {
      v.v6 = value.v6;
    }
  }
  return v;
}

namespace eth {
inline constexpr Field<MacAddress> dst{FieldId::eth_dst};
inline constexpr Field<MacAddress> src{FieldId::eth_src};
inline constexpr Field<std::uint16_t> type{FieldId::eth_type};  ///< behind all tags
}  // namespace eth

/// The outer tag, and behind it `inner`.
namespace vlan {
inline constexpr Field<std::uint16_t> id{FieldId::vlan_id};   ///< 12 bits
inline constexpr Field<std::uint8_t> pcp{FieldId::vlan_pcp};  ///< 3 bits
inline constexpr Field<std::uint16_t> inner_id{FieldId::vlan_inner_id};
inline constexpr Field<std::uint8_t> inner_pcp{FieldId::vlan_inner_pcp};
}  // namespace vlan

namespace arp {
inline constexpr Field<std::uint16_t> operation{FieldId::arp_operation};
inline constexpr Field<Ipv4Address> sender_ip{FieldId::arp_sender_ip};
inline constexpr Field<MacAddress> sender_mac{FieldId::arp_sender_mac};
inline constexpr Field<Ipv4Address> target_ip{FieldId::arp_target_ip};
inline constexpr Field<MacAddress> target_mac{FieldId::arp_target_mac};
}  // namespace arp

/// IPv4 and IPv6 alike.
namespace ip {
inline constexpr Field<IpAddress> src{FieldId::ip_src};
inline constexpr Field<IpAddress> dst{FieldId::ip_dst};
inline constexpr Field<std::uint8_t> protocol{FieldId::ip_protocol};
inline constexpr Field<std::uint8_t> dscp{FieldId::ip_dscp};  ///< 6 bits
inline constexpr Field<std::uint8_t> ecn{FieldId::ip_ecn};    ///< 2 bits
inline constexpr Field<std::uint8_t> ttl{FieldId::ip_ttl};    ///< or hop limit
}  // namespace ip

/// TCP, UDP and SCTP alike.
namespace l4 {
inline constexpr Field<std::uint16_t> src_port{FieldId::l4_src_port};
inline constexpr Field<std::uint16_t> dst_port{FieldId::l4_dst_port};
}  // namespace l4

namespace tcp {
inline constexpr Field<std::uint8_t> flags{FieldId::tcp_flags};
}  // namespace tcp

/// ICMP and ICMPv6 alike.
namespace icmp {
inline constexpr Field<std::uint8_t> type{FieldId::icmp_type};
inline constexpr Field<std::uint8_t> code{FieldId::icmp_code};
inline constexpr Field<std::uint16_t> id{FieldId::icmp_id};  ///< bytes 4 and 5 of the header
}  // namespace icmp

namespace vxlan {
inline constexpr Field<std::uint32_t> vni{FieldId::vxlan_vni};  ///< 24 bits
}  // namespace vxlan

/// Of a packet that came out of a tunnel.
namespace tunnel {
inline constexpr Field<std::uint32_t> vni{FieldId::tunnel_vni};
}  // namespace tunnel

/// What `flow.has()` can ask; all of it is in the packet's layout.
enum class Layer : std::uint8_t {
  ethernet,
  vlan,
  vlan_inner,
  arp,
  ip,
  ipv4,
  ipv6,
  tcp,
  udp,
  sctp,
  icmp,
  icmpv6,
  ports,
  vxlan,
  tunnel,
  fragment,
  later_fragment,
  options,
  well_formed,
};

bool has(Layer layer, Layout layout);

/// Layers by their usual names, for `flow.has(layers::ip)`.
namespace layers {
using enum Layer;
}

}  // namespace weir
