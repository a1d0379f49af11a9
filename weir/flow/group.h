#pragma once
// Named groups that actions refer to and that are resolved when the action runs: a change of members touches no rule.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/base/published.h>
#include <weir/flow/encapsulation.h>
#include <weir/flow/paths.h>
#include <weir/flow/port.h>
#include <weir/packet/address.h>

namespace weir {

/// Where a member of a select group sends a packet, and which addresses it gives it.
struct Member {
  PortId port;
  MacAddress dst;
  MacAddress src;
  bool rewrite = true;  ///< false: the packet keeps its Ethernet addresses
  /// The neighbour at `port` whose path it follows: while that is down, its flows take other members.
  std::optional<IpAddress> path{};

  bool operator==(const Member&) const = default;
};

/// Members by hash, resiliently: a member that joins or leaves moves only its own share of the flows, and so does one
/// whose path goes down or returns.
class Members {
 public:
  static constexpr std::size_t buckets = 256;
  /// More are refused by Update.
  static constexpr std::size_t limit = 128;

  Members() = default;
  /// The members to be, keeping as many of the buckets of `before` as a fair share allows. `alive`, unless it is empty,
  /// has what tells of each one's path; nullptr for those that follow none.
  Members(std::vector<Member> members, const Members& before, std::vector<Paths::Alive> alive = {});

  [[nodiscard]] const std::vector<Member>& all() const { return members_; }
  /// The member for a flow hash; nullptr if there is none, or the paths of all are down.
  [[nodiscard]] const Member* pick(std::uint64_t hash) const {
    if (members_.empty()) {
      return nullptr;
    }
    const std::uint8_t first = bucket_[hash % buckets];
    return alive(first) ? &members_[first] : pick_other(hash, first);
  }

 private:
  [[nodiscard]] bool alive(std::size_t member) const {
    return alive_.empty() || alive_[member] == nullptr || alive_[member]->load(std::memory_order_acquire);
  }
  [[nodiscard]] const Member* pick_other(std::uint64_t hash, std::size_t dead) const;

  std::vector<Member> members_;
  std::vector<Paths::Alive> alive_;
  std::array<std::uint8_t, buckets> bucket_{};
};

/// A select group. `id` is what rules carry.
class Group {
 public:
  Group(std::string name, std::uint16_t id, Epochs& epochs) : name_(std::move(name)), id_(id), members_(epochs, {}) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint16_t id() const { return id_; }
  /// For engines; until the caller's next quiescent state.
  [[nodiscard]] const Members& members() const { return members_.read(); }

 private:
  friend class Update;
  std::string name_;
  std::uint16_t id_;
  Published<Members> members_;
};

/// A route's value: the group of its next hops, and the MTU of the way there.
struct NextHops {
  std::uint16_t group = 0;
  std::uint16_t mtu = 1500;  ///< bytes of the L3 packet

  bool operator==(const NextHops&) const = default;
};

/// Names a flood domain of its own, beside the VLANs': 4,096 or more.
struct DomainId {
  std::uint32_t number = 0;
  static constexpr std::uint32_t first = 4096;

  auto operator<=>(const DomainId&) const = default;
};

/// A port whose copies get a VLAN tag.
struct TaggedPort {
  PortId port;
  std::uint16_t control = 0;  ///< as push_vlan has it

  bool operator==(const TaggedPort&) const = default;
};

/// The other end of a tunnel, and the way there: the member of a select group for the flow, or else a neighbour.
struct Remote {
  IpAddress address;
  Group* group = nullptr;
  PortId port{};         ///< without a group: the link
  IpAddress next_hop{};  ///< and who has the address there; copies are dropped while its Ethernet address is not known

  bool operator==(const Remote&) const = default;
};

/// What a flood reaches: ports, ports that want a tag, and remote ends of tunnels, in this order. A packet that came
/// out of a tunnel, or was put into one, goes to no remote (split horizon). A tag that cannot be pushed (behind two, or
/// behind what the parser does not see) drops the copy as unrewritable.
struct FloodDomain {
  std::vector<PortId> ports;
  std::vector<TaggedPort> tagged;
  Vxlan tunnel;  ///< around the copies for `remotes`, but for the destination and both Ethernet addresses
  std::vector<Remote> remotes;

  bool operator==(const FloodDomain&) const = default;
};

/// The ports that a flood reaches, by VLAN; a VLAN that was given no ports reaches all of them. And domains of their
/// own.
struct FloodDomains {
  using Numbered = std::pair<DomainId, std::shared_ptr<const FloodDomain>>;

  std::vector<PortId> all;
  std::map<std::uint16_t, std::vector<PortId>> by_vlan;

  [[nodiscard]] const std::vector<PortId>& ports(std::uint16_t vlan) const {
    const auto place = by_vlan.find(vlan);
    return place == by_vlan.end() ? all : place->second;
  }

  std::vector<Numbered> numbered;  ///< by number

  /// nullptr if there is none.
  [[nodiscard]] const FloodDomain* find(DomainId id) const {
    const auto place = std::ranges::lower_bound(numbered, id, {}, &Numbered::first);
    return place == numbered.end() || place->first != id ? nullptr : place->second.get();
  }
};

}  // namespace weir
