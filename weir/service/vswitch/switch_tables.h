#pragma once
// What the switch knows: state that its stages look up.

#include <string>
#include <vector>

#include <weir/flow/predicate.h>
#include <weir/flow/state.h>

namespace weir::vswitch_internal {

using Vni = std::uint32_t;

inline constexpr std::uint16_t untagged = 0;
inline constexpr std::uint32_t vni_limit = 1U << 24U;

/// How frames come in: by a port, with a VLAN tag or without.
struct AttachKey {
  PortId port;
  std::uint16_t vlan = untagged;

  bool operator==(const AttachKey&) const = default;
  auto operator<=>(const AttachKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return hash_value(vlan, port.hash(seed)); }
  [[nodiscard]] bool mentions(PortId other) const { return port == other; }
  [[nodiscard]] std::string to_string() const;
};

/// In a network.
struct MacKey {
  Vni vni = 0;
  MacAddress mac;

  bool operator==(const MacKey&) const = default;
  auto operator<=>(const MacKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mac.hash(hash_value(vni, seed)); }
  [[nodiscard]] std::string to_string() const;
};

/// Where an Ethernet address is: behind a port, or behind another node.
struct Place {
  PortId port;  ///< not valid: behind `vtep`
  std::uint16_t vlan = untagged;
  IpAddress vtep;

  bool operator==(const Place&) const = default;
  auto operator<=>(const Place&) const = default;
  [[nodiscard]] bool mentions(PortId other) const { return port == other; }
  [[nodiscard]] std::string to_string() const;
};

/// An IP address in a network: a host's there, or that of another node which has the network.
struct AddressKey {
  Vni vni = 0;
  IpAddress address;

  bool operator==(const AddressKey&) const = default;
  auto operator<=>(const AddressKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return address.hash(hash_value(vni, seed)); }
  [[nodiscard]] std::string to_string() const;
};

/// The Ethernet address of a host's IP address.
struct Binding {
  MacAddress mac;
  bool configured = false;  ///< else its host was heard to have it
  bool gateway = false;     ///< it is the node's own

  bool operator==(const Binding&) const = default;
  [[nodiscard]] std::string to_string() const { return mac.to_string(); }
};

/// A port's Ethernet addresses of a network, and IP addresses: so many as the port may have.
using LearnedMacs = Table<MacKey, std::uint8_t>;
using LearnedBindings = Table<AddressKey, std::uint8_t>;

/// What a port, or one VLAN of it, is attached to.
struct Attachment {
  Vni vni = 0;
  LearnedMacs* learned = nullptr;
  LearnedBindings* bound = nullptr;
  Meter* meter = nullptr;  ///< of what comes in; nullptr: no limit
  PortId mirror;           ///< valid: gets a copy of what comes in
  bool gateway = false;    ///< the port is the network's gateway

  bool operator==(const Attachment&) const = default;
  auto operator<=>(const Attachment&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// What becomes of packets to a prefix that are routed between networks.
struct VrfRoute {
  enum class Kind : std::uint8_t {
    local,      ///< the gateway's own address
    network,    ///< hosts of the network `vni`
    node,       ///< hosts behind the node `vtep`, by the network `vni` that routed packets have for themselves
    blackhole,  ///< dropped, as configured
    broadcast,  ///< all hosts of a network
    martian,    ///< addresses that no packet on a link may have
  };
  Kind kind = Kind::blackhole;
  Vni vni = 0;
  IpAddress vtep{};
  MacAddress mac{};  ///< that node's own, as a router

  bool operator==(const VrfRoute&) const = default;
  [[nodiscard]] std::string to_string() const;
};

using VrfRoutes = Prefixes<VrfRoute>;

struct Network {
  bool remotes = false;         ///< other nodes have it, too
  bool flood_unknown = true;    ///< frames to an address that is not known go everywhere
  bool suppress = true;         ///< ARP requests and neighbour solicitations are answered for hosts that are known
  bool routed_only = false;     ///< it carries packets from router to router, and has no hosts
  PortId gateway{};             ///< the node's own port there, if it is valid
  MacAddress router{};          ///< to this Ethernet address packets are routed, if there are `routes`
  std::uint16_t mtu = 0;        ///< bytes of the longest packet that is routed into it
  VrfRoutes* routes = nullptr;  ///< of packets that are routed out of it

  bool operator==(const Network&) const = default;
  [[nodiscard]] bool mentions(PortId port) const { return gateway == port; }
};

/// Another node, as far as one network is concerned.
struct Vtep {
  std::uint32_t id = 0;    ///< what packets that come out of its tunnel are known by
  Group* group = nullptr;  ///< the next hops to it; nullptr: it is on a link, that of `port`
  PortId port;

  bool operator==(const Vtep&) const = default;
  auto operator<=>(const Vtep&) const = default;
  [[nodiscard]] bool mentions(PortId other) const { return group == nullptr && port == other; }
};

/// The node's own side of all tunnels.
struct Underlay {
  struct Port {
    PortId id;
    MacAddress mac;

    bool operator==(const Port&) const = default;
  };
  IpAddress local;
  bool tunnels = false;         ///< there is a local address
  std::uint16_t inner_mtu = 0;  ///< bytes of the longest L3 packet that fits into a tunnel packet
  std::vector<Port> ports;      ///< uplinks

  bool operator==(const Underlay&) const = default;
  [[nodiscard]] const Port* find(PortId id) const;
};

/// The VNIs there are, as a question about a field: a packet of none of them proves it by its leading bytes, so that a
/// storm of unknown VNIs makes some hundred rules and not one for each.
struct KnownVni {
  const std::vector<Vni>& sorted;
  [[nodiscard]] Tested test(const FieldValue& value, unsigned bytes) const;
};

struct SwitchTables {
  Table<AttachKey, Attachment>& attachments;
  Table<MacKey, Place>& macs;
  Table<AddressKey, Binding>& bindings;
  Table<Vni, Network>& networks;
  Table<AddressKey, Vtep>& vteps;
  Table<std::uint32_t, AddressKey>& tunnels;  ///< by Vtep::id
  Versioned<std::vector<Vni>>& vnis;
  Versioned<Underlay>& underlay;
  Counter& too_big_to_flood;
};

/// The domain that frames of a network are flooded to; `local`: its ports alone.
constexpr DomainId domain_of(Vni vni, bool local) { return {0x4000000U + 2 * vni + (local ? 1U : 0U)}; }
inline constexpr DomainId first_domain = domain_of(0, false);
inline constexpr DomainId end_domain = domain_of(vni_limit, false);

}  // namespace weir::vswitch_internal
