#pragma once
// The firewall's decisions, once for each flow: what the endpoint behind a port may send, and what it may get.

#include <span>

#include <weir/flow/stage.h>
#include <weir/service/firewall/decide.h>

namespace weir {

/// What its own port reads of an endpoint, as one: a rule has room for few dependencies.
struct Guarded {
  IdentityPtr identity;
  PolicyListPtr policies;
  bool has_addresses = false;  ///< it may send from its own addresses only

  bool operator==(const Guarded&) const = default;
};

/// What decisions read of one endpoint. Its two parts change apart: a policy about an endpoint clears the rules of its
/// own traffic at its own port, not those that others decided by its labels. Lives as long as the node; null values:
/// not in use.
struct EndpointSlot {
  Versioned<IdentityPtr>& identity;  ///< for others, whose peer it is
  Versioned<Guarded>& guarded;
};

/// Whose address it is.
struct EndpointHandle {
  const EndpointSlot* slot = nullptr;

  bool operator==(const EndpointHandle&) const = default;
};

/// What the firewall does at a port.
struct PortGuard {
  enum class Kind : std::uint8_t {
    unknown,  ///< it was never told of the port: nothing passes
    open,     ///< an uplink: everything passes
    guarded,  ///< the endpoint of `slot` is behind it
  };
  Kind kind = Kind::unknown;
  const EndpointSlot* slot = nullptr;
  bool checks_source = true;

  bool operator==(const PortGuard&) const = default;
};

struct FirewallTables {
  Table<IpAddress, EndpointHandle>& addresses;
  std::span<Versioned<PortGuard>* const> ports;  ///< by number
};

/// Where packets come in from a port: policies for egress of the endpoint behind it. Answers are judged as the
/// connection's first packet was, so that a policy change also ends connections. Passes on what is allowed.
class FirewallStage final : public FlowStage {
 public:
  explicit FirewallStage(const FirewallTables& tables) : tables_(tables) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  FirewallTables tables_;
};

/// Where packets are about to leave by a port: policies for ingress of the endpoint behind it.
class FirewallDelivery final : public FlowStage {
 public:
  explicit FirewallDelivery(const FirewallTables& tables) : tables_(tables) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  FirewallTables tables_;
};

}  // namespace weir
