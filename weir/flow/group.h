#pragma once
// Named groups that actions refer to and that are resolved when the action runs: a change of members touches no rule.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/base/published.h>
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

/// The ports that a flood reaches, by VLAN. A VLAN that was given no ports reaches all of them.
struct FloodDomains {
  std::vector<PortId> all;
  std::map<std::uint16_t, std::vector<PortId>> by_vlan;

  [[nodiscard]] const std::vector<PortId>& ports(std::uint16_t vlan) const {
    const auto place = by_vlan.find(vlan);
    return place == by_vlan.end() ? all : place->second;
  }
};

}  // namespace weir
