#pragma once
// The router's decision, once for each flow.

#include <weir/flow/stage.h>
#include <weir/service/router/route.h>

namespace weir {

/// By port number.
struct Interfaces {
  struct Interface {
    MacAddress mac;
    std::uint32_t mtu = 1500;

    bool operator==(const Interface&) const = default;
  };
  std::vector<Interface> ports;

  bool operator==(const Interfaces&) const = default;
};

/// Forwards IPv4 and IPv6 by the longest prefix (RFC 1812; RFC 8200), gives the node what is for it, and lets packets
/// wait for the Ethernet address of their next hop. Of several next hops a flow takes the one that its hash picks among
/// all; if the path there is down, or no Ethernet address is known, the one that its hash and the lost one pick among
/// the others: so that a next hop that fails moves only its own flows, and only those back when it returns. Always ends
/// the chain.
class RouterStage final : public FlowStage {
 public:
  struct Tables {
    Prefixes<Route>& routes;
    Prefixes<Source>& sources;
    Versioned<Interfaces>& interfaces;
  };

  explicit RouterStage(const Tables& tables) : tables_(tables) {}

  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  [[nodiscard]] Verdict forward(Flow& flow, const Route& route, const Interfaces& interfaces) const;

  Tables tables_;
};

}  // namespace weir
