#include <weir/service/firewall/firewall_state.h>

#include <unordered_map>

namespace weir {

FirewallState::FirewallState(State& state, std::uint32_t addresses)
    : state_(state),
      addresses_(state.table<IpAddress, EndpointHandle>("endpoints", {.capacity = addresses})),
      policy_changes_(state.versioned<std::uint64_t>("the policies", 0)),
      endpoint_changes_(state.versioned<std::uint64_t>("the endpoints", 0)) {
  for (unsigned port = 0; port < max_ports; ++port) {
    ports_.push_back(&state.versioned<PortGuard>("the endpoint behind its port", {}));
  }
}

const EndpointSlot* FirewallState::new_slot() {
  return &slots_.emplace_back(EndpointSlot{state_.versioned<IdentityPtr>("an endpoint's labels", {}),
                                           state_.versioned<Guarded>("an endpoint's policies", {})});
}

const EndpointSlot* FirewallState::slot_of(const EndpointKey& key, const Plan& plan) const {
  if (const auto added = plan.added.find(key); added != plan.added.end()) {
    return added->second;
  }
  const auto used = used_.find(key);
  return used == used_.end() ? nullptr : used->second;
}

void FirewallState::record(const PolicyModel& model, const PolicyModel::Draft& draft, Update& update) {
  auto plan = std::make_shared<Plan>();
  plan_ = plan;
  ++changes_;
  if (!draft.gone.empty() || !draft.fresh.empty()) {
    update.assign(policy_changes_, changes_);
  }
  std::size_t taken = 0;
  bool endpoints_differ = false;
  for (const auto& [key, after] : draft.endpoints) {
    const PolicyModel::Endpoint* before = model.find(key);
    endpoints_differ = endpoints_differ || !after || before == nullptr || after->entry != before->entry ||
                       after->identity != before->identity;
    if (!after) {
      plan->removed.push_back(key);
      continue;
    }
    const EndpointSlot* slot = slot_of(key, *plan);
    if (slot == nullptr) {
      if (taken == free_.size()) {
        free_.push_back(new_slot());
      }
      slot = free_[taken++];
      plan->added.emplace(key, slot);
    }
    if (before == nullptr || before->identity != after->identity) {
      update.set(slot->identity, after->identity);
    }
    const bool has_addresses = !after->entry->addresses.empty();
    if (before == nullptr || before->identity != after->identity || before->policies != after->policies ||
        before->entry->addresses.empty() == has_addresses) {
      update.set(slot->guarded, {after->identity, after->policies, has_addresses});
    }
  }
  if (endpoints_differ) {
    update.assign(endpoint_changes_, changes_);
    record_addresses(model, draft, *plan, update);
  }
  update.afterwards([this, plan, taken] {
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(taken));
    used_.insert(plan->added.begin(), plan->added.end());
    // They may be taken from the next update on: until this one is over, a decision may still hold what they were.
    for (const EndpointKey& key : plan->removed) {
      free_.push_back(used_.at(key));
      used_.erase(key);
    }
  });
}

// An address that goes from one endpoint to another is set, not erased and set: it is never nobody's.
void FirewallState::record_addresses(const PolicyModel& model, const PolicyModel::Draft& draft, const Plan& plan,
                                     Update& update) {
  std::map<IpAddress, const EndpointSlot*> before;
  std::map<IpAddress, const EndpointSlot*> after;
  for (const auto& [key, endpoint] : draft.endpoints) {
    if (const PolicyModel::Endpoint* was = model.find(key)) {
      for (const IpAddress& address : was->entry->addresses) {
        before[address] = used_.at(key);
      }
    }
    if (endpoint) {
      for (const IpAddress& address : endpoint->entry->addresses) {
        after[address] = slot_of(key, plan);
      }
    }
  }
  for (const auto& [address, slot] : before) {
    if (!after.contains(address)) {
      update.erase(addresses_, address);
    }
  }
  for (const auto& [address, slot] : after) {
    const auto was = before.find(address);
    if (was == before.end() || was->second != slot) {
      update.set(addresses_, address, {slot});
    }
  }
}

void FirewallState::record_ports(const PolicyModel& model, const PolicyModel::Draft& draft,
                                 std::span<const ServicePort> ports, bool check_sources, Update& update) {
  std::unordered_map<std::string_view, const EndpointSlot*> behind;
  const auto note = [&](const PolicyModel::Endpoint& endpoint) {
    if (!endpoint.entry->port.empty()) {
      behind[endpoint.entry->port] = slot_of(endpoint.entry->key, *plan_);
    }
  };
  for (const auto& [key, endpoint] : model.endpoints()) {
    if (!draft.endpoints.contains(key)) {
      note(endpoint);
    }
  }
  for (const auto& [key, endpoint] : draft.endpoints) {
    if (endpoint) {
      note(*endpoint);
    }
  }
  std::vector<PortGuard> guards(max_ports);
  for (const ServicePort& port : ports) {
    if (!port.id.valid()) {
      continue;
    }
    PortGuard& guard = guards.at(port.id.number);
    if (port.options.role != PortRole::host) {
      guard.kind = PortGuard::Kind::open;
    } else if (const auto endpoint = behind.find(port.name); endpoint != behind.end()) {
      guard = {PortGuard::Kind::guarded, endpoint->second, check_sources};
    }
  }
  for (unsigned number = 0; number < max_ports; ++number) {
    update.assign(*ports_[number], guards[number]);
  }
  // The last thing that names those that go.
  for (const EndpointKey& key : plan_->removed) {
    const EndpointSlot& slot = *used_.at(key);
    update.set(slot.identity, IdentityPtr());
    update.set(slot.guarded, Guarded());
  }
}

}  // namespace weir
