#include <weir/service/vswitch/switch_stage.h>

#include <weir/packet/icmpv6.h>
#include <weir/packet/vxlan.h>

namespace weir::vswitch_internal {

namespace {

constexpr DropReason no_ethernet{"no_ethernet", "too short for an Ethernet header"};
constexpr DropReason no_network{"no_network", "its port, or the VLAN of its tag there, is in no network"};
constexpr DropReason unknown_vni{"unknown_vni", "of a VXLAN network that this node does not have"};
constexpr DropReason unknown_vtep{"unknown_vtep", "from a node that its VXLAN network does not have"};
constexpr DropReason not_vxlan{"not_vxlan", "to the VXLAN port, and no VXLAN packet with a VNI"};
constexpr DropReason inner_tagged{"inner_tagged", "out of a tunnel with a VLAN tag (RFC 7348, section 6.1)"};
constexpr DropReason underlay_malformed{"underlay_malformed", "from an uplink, and its headers cannot be read"};
constexpr DropReason underlay_tagged{"underlay_tagged", "from an uplink with a VLAN tag; uplinks have none"};
constexpr DropReason not_ours{"not_ours", "from an uplink, and for another station"};
constexpr DropReason not_for_router{"not_for_router", "out of a tunnel between routers, and not for this node's"};

constexpr MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

}  // namespace

Verdict SwitchStage::decide(Flow& flow) const {
  const PortId in = flow.ingress();
  const Underlay& underlay = flow.read(tables_.underlay);
  if (const Underlay::Port* uplink = underlay.find(in)) {
    return from_uplink(flow, underlay, *uplink);
  }
  if (!flow.has(layers::ethernet)) {
    return flow.drop(no_ethernet);
  }
  const std::uint16_t vlan = flow[vlan::id].value_or(untagged);
  const Attachment* attached = flow.lookup(tables_.attachments, {in, vlan});
  if (attached == nullptr) {
    return flow.drop(no_network);
  }
  if (attached->gateway) {
    return from_gateway(flow, *attached);
  }
  if (attached->mirror.valid()) {
    flow.mirror(attached->mirror);
  }
  if (attached->meter != nullptr) {
    flow.meter(*attached->meter);
  }
  const Network* network = flow.lookup(tables_.networks, attached->vni);
  if (network == nullptr) {
    return flow.drop(no_network);
  }
  const From from{attached->vni, {in, vlan, {}}, flow.has(layers::vlan)};
  if (const DropReason* reason = learn(flow, from, *network, attached)) {
    return flow.drop(*reason);
  }
  return is_resolution(flow) ? flow.to(answers_) : forward(flow, from, *network);
}

// Both directions of the node's own port come in by it: what its host part sends, and what the switch sent there.
Verdict SwitchStage::from_gateway(Flow& flow, const Attachment& attached) const {
  const Network* network = flow.lookup(tables_.networks, attached.vni);
  if (network == nullptr) {
    return flow.drop(no_network);
  }
  return flow.test(eth::src, equals(network->router))
             ? forward(flow, {attached.vni, {network->gateway, untagged, {}}}, *network)
             : flow.to_host();
}

// RFC 7348, section 4.3, and what the node itself must hear.
Verdict SwitchStage::from_uplink(Flow& flow, const Underlay& underlay, const Underlay::Port& port) const {
  if (!flow.has(layers::well_formed)) {
    return flow.drop(underlay_malformed);
  }
  if (flow.has(layers::vlan)) {
    return flow.drop(underlay_tagged);
  }
  const bool for_us = flow.test(eth::dst, equals(port.mac));
  if (flow.has(layers::arp)) {
    return for_us || flow.test(eth::dst, equals(broadcast)) ? flow.to_host() : flow.drop(not_ours);
  }
  if (flow.has(layers::ip) && flow.test(ip::dst, multicast())) {
    return is_resolution(flow) ? flow.to_host() : flow.drop(not_ours);
  }
  if (!for_us || !flow.has(layers::ip)) {
    return flow.drop(not_ours);
  }
  const bool vxlan_port = flow.has(layers::udp) && flow.test(l4::dst_port, equals(VxlanHeader::port));
  if (!vxlan_port || !flow.test(ip::dst, equals(underlay.local))) {
    return flow.to_host();
  }
  if (!flow.has(layers::vxlan)) {
    return flow.drop(not_vxlan);
  }
  const std::vector<Vni>& vnis = flow.read(tables_.vnis);
  if (!flow.test(vxlan::vni, KnownVni{vnis})) {
    return flow.drop(unknown_vni);
  }
  const Vtep* vtep = flow.lookup(tables_.vteps, {*flow[vxlan::vni], *flow[ip::src]});
  if (vtep == nullptr) {
    return flow.drop(unknown_vtep);
  }
  flow.decapsulate(vtep->id);
  return flow.to(inside_);
}

Verdict InsideStage::decide(Flow& flow) const {
  const auto id = flow[tunnel::vni];
  const AddressKey* vtep = id ? flow.lookup(tables_.tunnels, *id) : nullptr;
  if (vtep == nullptr) {
    return flow.drop(unknown_vtep);
  }
  if (!flow.has(layers::ethernet)) {
    return flow.drop(no_ethernet);
  }
  if (flow.has(layers::vlan)) {
    return flow.drop(inner_tagged);
  }
  const Network* network = flow.lookup(tables_.networks, vtep->vni);
  if (network == nullptr) {
    return flow.drop(no_network);
  }
  const From from{vtep->vni, {.vtep = vtep->address}};
  if (network->routed_only) {
    return flow.test(eth::dst, equals(network->router)) ? route(flow, from, *network) : flow.drop(not_for_router);
  }
  if (const DropReason* reason = learn(flow, from, *network, nullptr)) {
    return flow.drop(*reason);
  }
  return is_resolution(flow) ? flow.to(answers_) : forward(flow, from, *network);
}
Verdict AfterAnswers::decide(Flow& flow) const {
  const auto from = origin(flow);
  const Network* network = from ? flow.lookup(tables_.networks, from->vni) : nullptr;
  if (network == nullptr) {
    return flow.drop(no_network);
  }
  if (!to_gateway_) {
    return forward(flow, *from, *network);
  }
  if (!network->gateway.valid()) {
    return flow.drop(no_network);
  }
  if (from->tagged) {
    flow.pop_vlan();
  }
  return flow.output(network->gateway);
}

}  // namespace weir::vswitch_internal
