#include <weir/flow/region.h>

#include <array>

namespace weir {

namespace rewritten {

namespace {

template <class Bytes>
void fill(Bytes& bytes) {
  bytes.fill(0xff);
}

std::array<Key, combinations> all_combinations() {
  std::array<Key, combinations> masks;
  for (unsigned parts = 0; parts < combinations; ++parts) {
    Key& key = masks[parts];
    if ((parts & eth) != 0) {
      fill(key.eth_dst);
      fill(key.eth_src);
    }
    if ((parts & tags) != 0) {
      fill(key.vlan);
      fill(key.vlan_inner);
      key.layout = Layout::tags_mask;
    }
    key.ttl = (parts & ttl) != 0 ? 0xff : 0;
    key.tos = (parts & tos) != 0 ? 0xff : 0;
    if ((parts & src) != 0) {
      fill(key.src);
    }
    if ((parts & dst) != 0) {
      fill(key.dst);
    }
    if ((parts & ports) != 0) {
      fill(key.src_port);
      fill(key.dst_port);
    }
  }
  return masks;
}

}  // namespace

const Key& bits(std::uint8_t parts) {
  static const std::array<Key, combinations> masks = all_combinations();
  return masks[parts];
}

}  // namespace rewritten

KeyRegion region_of(FieldId field, const IpPrefix& prefix) {
  KeyRegion region;
  FieldValue value;
  value.bytes = prefix.address.bytes;
  FieldValue mask;
  mask.bytes.fill(0xff);
  mask.bytes = IpPrefix(Ipv6Address{mask.bytes}, prefix.length).address.bytes;
  deposit(field, value, region.value);
  deposit(field, mask, region.mask);
  Layout layout;
  layout.set_l3(prefix.address.v6 ? L3::ipv6 : L3::ipv4);
  region.value.layout = layout.bits;
  region.mask.layout = Layout::l3_mask;
  return region;
}

}  // namespace weir
