#pragma once
// What an ordered rule asks of a packet.

#include <utility>
#include <vector>

#include <weir/base/error.h>
#include <weir/flow/field.h>
#include <weir/flow/port.h>
#include <weir/flow/region.h>

namespace weir {

/// A conjunction of conditions on fields; empty, it matches every packet.
///
///     Match().with(ip::dst, *IpPrefix::parse("10.0.0.0/8")).with(layers::tcp).with(l4::dst_port, 80)
class Match {
 public:
  Match() = default;

  /// The field is present and equals `value`. Setting the same field twice keeps the later value. A match is one mask,
  /// so that presence is narrower than `flow.has` for two fields: vlan.id and vlan.pcp ask for exactly one tag,
  /// the inner ones for two; and eth.type of IP or ARP asks for a header that could be parsed.
  template <class T>
  Match& with(Field<T> field, std::type_identity_t<T> value) {
    FieldValue all;
    all.bytes.fill(0xff);
    return set(field.id, to_field<T>(value), all);
  }
  /// The address lies in `prefix`, which also says whether it is IPv4 or IPv6.
  Match& with(Field<IpAddress> field, const IpPrefix& prefix);
  /// The number lies in [value, value + 2^free_bits - 1]; `value` is a multiple of 2^free_bits. See port_ranges.
  Match& with_block(Field<std::uint16_t> field, std::uint16_t value, unsigned free_bits);
  /// One of ipv4, ipv6, arp, tcp, udp, sctp, icmp, icmpv6, ip, ports, fragment, vlan (exactly one tag), vxlan.
  Match& with(Layer layer);
  Match& with_ingress(PortId port);
  /// In a delivery stage: packets that are about to leave by the port.
  Match& with_egress(PortId port);

  [[nodiscard]] const KeyRegion& region() const { return region_; }
  [[nodiscard]] const Key& value() const { return region_.value; }
  [[nodiscard]] const Key& mask() const { return region_.mask; }

  bool operator==(const Match& other) const {
    return region_.value == other.region_.value && region_.mask == other.region_.mask;
  }

 private:
  Match& set(FieldId field, const FieldValue& value, const FieldValue& mask);
  Match& require(std::uint16_t value, std::uint16_t mask);

  KeyRegion region_;
};

/// The blocks of numbers (first, free bits) that together make up [low, high].
std::vector<std::pair<std::uint16_t, unsigned>> port_ranges(std::uint16_t low, std::uint16_t high);

}  // namespace weir
