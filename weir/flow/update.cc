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

FloodDomains& Update::edit_floods() {
  if (floods_ == nullptr) {
    State& state = *state_;
    floods_ = std::make_unique<FloodDomains>(state.flood_.read());
    at_end(&state.flood_, [this, &state] { state.flood_.publish(std::move(*std::exchange(floods_, nullptr))); });
    undo_.push_back([this, before = *floods_] { *floods_ = before; });
  }
  return *floods_;
}

void Update::set_flood_domain(std::uint16_t vlan, std::vector<PortId> ports) {
  steps_.push_back([vlan, ports = std::move(ports)](Update& update) -> Result<> {
    FloodDomains& domains = update.edit_floods();
    if (ports.empty()) {
      domains.by_vlan.erase(vlan);
    } else {
      domains.by_vlan[vlan] = ports;
    }
    return {};
  });
}

void Update::set_flood_ports(std::vector<PortId> ports) {
  steps_.push_back([ports = std::move(ports)](Update& update) -> Result<> {
    update.edit_floods().all = ports;
    return {};
  });
}

void Update::set_flood_domain(DomainId id, std::shared_ptr<const FloodDomain> domain) {
  steps_.push_back([id, domain = std::move(domain)](Update& update) -> Result<> {
    auto& numbered = update.edit_floods().numbered;
    const auto place = std::ranges::lower_bound(numbered, id, {}, &FloodDomains::Numbered::first);
    const bool there = place != numbered.end() && place->first == id;
    if (domain == nullptr) {
      if (there) {
        numbered.erase(place);
      }
    } else if (there) {
      place->second = domain;
    } else {
      numbered.insert(place, {id, domain});
    }
    return {};
  });
}

namespace {

bool same(const FloodDomains::Numbered& a, const FloodDomains::Numbered& b) {
  return a.first == b.first && (a.second == b.second || *a.second == *b.second);
}

// The part of the domains that an `assign` is about.
std::span<const FloodDomains::Numbered> between(const FloodDomains& domains, DomainId first, DomainId end) {
  const auto from = std::ranges::lower_bound(domains.numbered, first, {}, &FloodDomains::Numbered::first);
  const auto to = std::ranges::lower_bound(domains.numbered, end, {}, &FloodDomains::Numbered::first);
  return {from, to};
}

}  // namespace

void Update::assign(std::string name, DomainId first, DomainId end, std::vector<FloodDomains::Numbered> domains) {
  const auto wanted = std::make_shared<const std::vector<FloodDomains::Numbered>>(std::move(domains));
  steps_.push_back([first, end, wanted](Update& update) -> Result<> {
    const FloodDomains& now = update.floods_ != nullptr ? *update.floods_ : update.state_->flood_.read();
    if (std::ranges::equal(between(now, first, end), *wanted, same)) {
      return {};
    }
    auto& numbered = update.edit_floods().numbered;
    const auto from = std::ranges::lower_bound(numbered, first, {}, &FloodDomains::Numbered::first);
    const auto to = std::ranges::lower_bound(numbered, end, {}, &FloodDomains::Numbered::first);
    numbered.insert(numbered.erase(from, to), wanted->begin(), wanted->end());
    return {};
  });
  previews_.push_back([name = std::move(name), first, end, wanted](State& state) {
    Difference difference{name};
    const auto now = between(state.flood_domains(), first, end);
    auto before = now.begin();
    auto after = wanted->begin();
    while (before != now.end() || after != wanted->end()) {
      if (after == wanted->end() || (before != now.end() && before->first < after->first)) {
        ++difference.removed;
        ++before;
      } else if (before == now.end() || after->first < before->first) {
        ++difference.added;
        ++after;
      } else {
        difference.changed += same(*before++, *after++) ? 0 : 1;
      }
    }
    return difference;
  });
}

void Update::set_delivery(PortId port, std::uint8_t stage) {
  steps_.push_back([port, stage](Update& update) -> Result<> {
    Deliveries& deliveries = update.state_->deliveries();
    const std::uint8_t before = deliveries.stage(port.number);
    update.report_.rules_cleared += deliveries.set(port, stage);
    update.undo_.push_back([&deliveries, port, before] { deliveries.set(port, before); });
    return {};
  });
}

void Update::flood_to(PortId port) {
  steps_.push_back([port](Update& update) -> Result<> {
    std::vector<PortId>& all = update.edit_floods().all;
    if (std::ranges::find(all, port) == all.end()) {
      all.insert(std::ranges::upper_bound(all, port), port);
    }
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
  report_.rules_cleared += state.deliveries().set(port, Deliveries::nowhere);
  FloodDomains domains = state.flood_.read();
  std::erase(domains.all, port);
  for (auto& [vlan, ports] : domains.by_vlan) {
    std::erase(ports, port);
  }
  for (auto& [id, domain] : domains.numbered) {
    const auto tagged = [port](const TaggedPort& each) { return each.port == port; };
    const auto remote = [port](const Remote& each) { return each.group == nullptr && each.port == port; };
    if (std::ranges::find(domain->ports, port) != domain->ports.end() || std::ranges::any_of(domain->tagged, tagged) ||
        std::ranges::any_of(domain->remotes, remote)) {
      auto without = std::make_shared<FloodDomain>(*domain);
      std::erase(without->ports, port);
      std::erase_if(without->tagged, tagged);
      std::erase_if(without->remotes, remote);
      domain = std::move(without);
    }
  }
  state.flood_.publish(std::move(domains));
}

std::vector<Difference> Update::preview(State& state) const {
  const std::lock_guard guard(state.update_mutex_);
  std::vector<Difference> differences;
  for (const auto& preview : previews_) {
    Difference difference = preview(state);
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
