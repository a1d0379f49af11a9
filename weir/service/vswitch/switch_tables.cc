#include <weir/service/vswitch/switch_tables.h>

#include <algorithm>

#include <weir/flow/predicate.h>

namespace weir::vswitch_internal {

std::string AttachKey::to_string() const {
  return vlan == untagged ? fmt::format("port {}", port.number) : fmt::format("VLAN {} of port {}", vlan, port.number);
}

std::string MacKey::to_string() const { return fmt::format("{} in network {}", mac.to_string(), vni); }

std::string Place::to_string() const {
  return port.valid() ? AttachKey{port, vlan}.to_string() : "behind " + vtep.to_string();
}

std::string Attachment::to_string() const { return fmt::format("network {}", vni); }

std::string AddressKey::to_string() const { return fmt::format("{} of network {}", address.to_string(), vni); }

std::string VrfRoute::to_string() const {
  switch (kind) {
    case Kind::local:
      return "the gateway itself";
    case Kind::network:
      return fmt::format("a host of network {}", vni);
    case Kind::node:
      return fmt::format("behind {} by network {}", vtep.to_string(), vni);
    case Kind::blackhole:
      return "a black hole";
    case Kind::broadcast:
      return "all hosts of a network";
    case Kind::martian:
      return "no host's address";
  }
  return {};
}

const Underlay::Port* Underlay::find(PortId id) const {
  const auto place = std::ranges::find(ports, id, &Port::id);
  return place == ports.end() ? nullptr : &*place;
}

Tested KnownVni::test(const FieldValue& value, unsigned /*bytes*/) const {
  const Vni vni = static_cast<Vni>(value.bytes[0] << 16U | value.bytes[1] << 8U | value.bytes[2]);
  Tested tested{std::ranges::binary_search(sorted, vni), {}};
  // Whether some VNI has its first byte, its first two: the first that none has is the proof.
  for (unsigned byte = 0; byte < 3; ++byte) {
    tested.proof.bytes[byte] = 0xff;
    const unsigned below = 16 - 8 * byte;
    const Vni lowest = vni >> below << below;
    const auto next = std::ranges::lower_bound(sorted, lowest);
    if (next == sorted.end() || *next >> below != vni >> below) {
      break;
    }
  }
  return tested;
}

}  // namespace weir::vswitch_internal
