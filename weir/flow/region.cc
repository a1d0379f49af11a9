#include <weir/flow/region.h>

namespace weir {

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
