#pragma once
// What the switch's stages do with a frame once they know its network.

#include <weir/flow/stage.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// Where a frame came from.
struct From {
  Vni vni = 0;
  Place place;
  bool tagged = false;  ///< the frame has a tag, if only for its priority
  [[nodiscard]] bool tunnel() const { return !place.port.valid(); }
};

class Forwarding {
 public:
  explicit Forwarding(const SwitchTables& tables) : tables_(tables) {}

 protected:
  /// Where the flow's frames come from: a port, with a tag or without, or a tunnel. Nothing: of no network.
  [[nodiscard]] std::optional<From> origin(Flow& flow) const;

  /// Notes the source address, and the IP address that ARP and neighbour discovery say goes with it. `attached`: what
  /// the frame's port is attached to, if it came by one. Nothing, or why the frame is dropped.
  [[nodiscard]] const DropReason* learn(Flow& flow, const From& from, const Network& network,
                                        const Attachment* attached) const;

  /// To where its destination is; to all, if that is not known; by the gateway, if it is for its Ethernet address.
  [[nodiscard]] Verdict forward(Flow& flow, const From& from, const Network& network) const;

  /// What is for the node as the router of a network (routing.cc).
  [[nodiscard]] Verdict route(Flow& flow, const From& from, const Network& network) const;

  SwitchTables tables_;

 private:
  [[nodiscard]] const DropReason* bind(Flow& flow, const From& from, LearnedBindings* limited) const;
  [[nodiscard]] Verdict deliver(Flow& flow, const From& from, const Network& network) const;
  [[nodiscard]] Verdict flood(Flow& flow, const From& from, const Network& network) const;
  [[nodiscard]] Verdict send_into_tunnel(Flow& flow, const From& from, const IpAddress& to, const Vtep& vtep) const;
  [[nodiscard]] Verdict route_to_network(Flow& flow, const From& from, const Network& by, Vni vni) const;
  [[nodiscard]] Verdict route_to_node(Flow& flow, const From& from, const Network& by, const VrfRoute& route) const;
};

/// ARP, or a neighbour solicitation or advertisement.
bool is_resolution(Flow& flow);

}  // namespace weir::vswitch_internal
