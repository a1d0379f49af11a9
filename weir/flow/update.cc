#include <weir/flow/update.h>

#include <ranges>
#include <utility>

namespace weir {

namespace {

Members made_of(State& state, std::vector<Member> members, const Members& before) {
  std::vector<Paths::Alive> alive;
  if (std::ranges::any_of(members, [](const Member& member) { return member.path.has_value(); })) {
    for (const Member& member : members) {
      alive.push_back(member.path ? state.paths().alive({member.port, *member.path}) : nullptr);
    }
  }
  return {std::move(members), before, std::move(alive)};
}

}  // namespace

void Update::set_members(Group& group, std::vector<Member> members) {
  steps_.push_back([&group, members = std::move(members)](Update& update) -> Result<> {
    if (members.size() > Members::limit) {
      return error("group '{}' cannot have {} members; the limit is {}", group.name(), members.size(), Members::limit);
    }
    const Members before = group.members_.read();
    group.members_.publish(made_of(*update.state_, members, before));
    update.undo_.push_back([&group, before] { group.members_.publish(before); });
    return {};
  });
}

void Update::set_flood_domain(std::uint16_t vlan, std::vector<PortId> ports) {
  steps_.push_back([vlan, ports = std::move(ports)](Update& update) -> Result<> {
    State& state = *update.state_;
    FloodDomains domains = state.flood_.read();
    update.undo_.push_back([&state, before = domains] { state.flood_.publish(before); });
    if (ports.empty()) {
      domains.by_vlan.erase(vlan);
    } else {
      domains.by_vlan[vlan] = ports;
    }
    state.flood_.publish(std::move(domains));
    return {};
  });
}

void Update::set_flood_ports(std::vector<PortId> ports) {
  steps_.push_back([ports = std::move(ports)](Update& update) -> Result<> {
    State& state = *update.state_;
    FloodDomains domains = state.flood_.read();
    update.undo_.push_back([&state, before = domains] { state.flood_.publish(before); });
    domains.all = ports;
    state.flood_.publish(std::move(domains));
    return {};
  });
}

void Update::flood_to(PortId port) {
  steps_.push_back([port](Update& update) -> Result<> {
    State& state = *update.state_;
    FloodDomains domains = state.flood_.read();
    update.undo_.push_back([&state, before = domains] { state.flood_.publish(before); });
    if (std::ranges::find(domains.all, port) == domains.all.end()) {
      domains.all.insert(std::ranges::upper_bound(domains.all, port), port);
    }
    state.flood_.publish(std::move(domains));
    return {};
  });
}

void Update::note(std::uint64_t source, std::span<const KeyRegion> regions) {
  // Many regions are dearer to compare than rules are to decide again.
  constexpr std::size_t region_limit = 64;
  auto place = std::ranges::find(noted_, source, &Noted::source);
  if (place == noted_.end()) {
    place = noted_.insert(place, {source, {}});
  }
  if (place->regions.size() + regions.size() > region_limit) {
    place->regions.assign(1, KeyRegion{});
  } else {
    place->regions.insert(place->regions.end(), regions.begin(), regions.end());
  }
}

void Update::revoke_noted(State& state) {
  for (const Noted& noted : noted_) {
    report_.rules_cleared += state.revoke(noted.source, noted.regions);
  }
  noted_.clear();
}

void Update::forget_now(State& state, PortId port) {
  state.paths().forget(port);
  state.for_each_table([&](TableBase& table) { report_.rules_cleared += table.forget(port); });
  state.for_each_group([&](Group& group) {
    const Members before = group.members_.read();
    std::vector<Member> members = before.all();
    if (std::erase_if(members, [&](const Member& member) { return member.port == port; }) != 0) {
      group.members_.publish(made_of(state, std::move(members), before));
    }
  });
  FloodDomains domains = state.flood_.read();
  std::erase(domains.all, port);
  for (auto& [vlan, ports] : domains.by_vlan) {
    std::erase(ports, port);
  }
  state.flood_.publish(std::move(domains));
}

std::vector<Difference> Update::preview(State& state) const {
  const std::lock_guard guard(state.update_mutex_);
  std::vector<Difference> differences;
  for (const auto& preview : previews_) {
    Difference difference = preview();
    if (difference.added + difference.removed + difference.changed != 0) {
      differences.push_back(std::move(difference));
    }
  }
  return differences;
}

Result<UpdateReport> Update::commit(State& state, Nanoseconds now) {
  const std::lock_guard guard(state.update_mutex_);
  state_ = &state;
  now_ = now;
  report_ = {};
  Result<> result;
  for (const auto& step : steps_) {
    result = step(*this);
    if (!result) {
      for (const auto& undo : std::views::reverse(undo_)) {
        undo();
      }
      break;
    }
  }
  for (const Touched& touched : touched_) {
    touched.finish();
  }
  touched_.clear();
  if (result) {
    std::ranges::for_each(forgotten_, [&](PortId port) { forget_now(state, port); });
  }
  revoke_noted(state);
  steps_.clear();
  // They hold what was replaced, which workers may be using in the middle of a batch.
  state.epochs().retire([replaced = std::move(undo_)] {});
  undo_.clear();
  const auto afterwards = std::exchange(afterwards_, {});
  if (!result) {
    return std::unexpected(result.error());
  }
  for (const auto& call : afterwards) {
    call();
  }
  return report_;
}

}  // namespace weir
