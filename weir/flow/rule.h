#pragma once
// What a trace compiles to.

#include <cstdint>
#include <string_view>
#include <vector>

#include <weir/flow/action.h>
#include <weir/flow/dependency.h>
#include <weir/flow/region.h>

namespace weir {

/// Match, guards, actions, and what the decision depended on. Reused from trace to trace so that deciding allocates
/// nothing once warm.
struct Rule {
  static constexpr std::size_t guard_limit = 4;
  static constexpr std::size_t keyed_limit = 24;

  Key value;  ///< zero where `mask` is
  Key mask;
  std::vector<Guard> guards;
  std::vector<Action> actions;
  std::vector<Vxlan> tunnels;
  std::vector<QuotedTranslation> quoted;
  std::vector<KeyedDependency> keyed;
  std::vector<RegionDependency> regions;
  std::uint64_t stages = 0;          ///< bit i: flow stage i took part (stage 63 and beyond share a bit)
  std::string_view not_cacheable{};  ///< if not empty, why the rule is for this packet alone

  void clear() {
    value = mask = Key{};
    guards.clear();
    actions.clear();
    tunnels.clear();
    quoted.clear();
    keyed.clear();
    regions.clear();
    stages = 0;
    not_cacheable = {};
  }
};

}  // namespace weir
