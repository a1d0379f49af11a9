#include <weir/service/firewall/policy_model.h>

#include <algorithm>
#include <utility>

namespace weir {

namespace {

/// What becomes of one endpoint's list; `without` is sorted.
struct Edit {
  std::vector<PolicyPtr> without;
  std::vector<PolicyPtr> with;

  auto operator<=>(const Edit&) const = default;
};

PolicyList edited(const PolicyList& before, const Edit& edit) {
  PolicyList list;
  for (const Direction direction : both_directions) {
    for (std::size_t kind = 0; kind < policy_kinds; ++kind) {
      const auto& old = before.of(direction, static_cast<PolicyKind>(kind));
      auto& policies = list.all[static_cast<std::size_t>(direction)][kind];
      std::vector<PolicyPtr> kept;
      kept.reserve(old.size());
      std::ranges::remove_copy_if(old, std::back_inserter(kept), [&](const PolicyPtr& policy) {
        return std::ranges::binary_search(edit.without, policy);
      });
      std::vector<PolicyPtr> added;
      std::ranges::copy_if(edit.with, std::back_inserter(added), [&](const PolicyPtr& policy) {
        return policy->applies_to(direction) && policy->key.kind == static_cast<PolicyKind>(kind);
      });
      const auto order = [](const PolicyPtr& x, const PolicyPtr& y) { return asked_before(*x, *y); };
      std::ranges::sort(added, order);
      policies.reserve(kept.size() + added.size());
      std::ranges::merge(kept, added, std::back_inserter(policies), order);
    }
  }
  return list;
}

bool same(const PolicyModel::Endpoint& a, const PolicyModel::Endpoint& b) {
  return a.entry == b.entry && a.identity == b.identity && a.policies == b.policies;
}

}  // namespace

/// The lists that a draft makes. Endpoints that shared one before, and whose policies change in the same way, share one
/// afterwards: a policy that is about a thousand endpoints then makes one new list, not a thousand.
class PolicyModel::Lists {
 public:
  PolicyListPtr edit(const PolicyListPtr& before, Edit edit) {
    auto [place, fresh] = edited_.try_emplace({before, std::move(edit)});
    if (fresh) {
      place->second = share(edited(*before, place->first.second));
    }
    return place->second;
  }

  PolicyListPtr share(PolicyList list) {
    const auto known = shared_.find(list.all);
    if (known != shared_.end()) {
      return known->second;
    }
    auto made = std::make_shared<const PolicyList>(std::move(list));
    shared_.emplace(made->all, made);
    return made;
  }

 private:
  std::map<std::pair<PolicyListPtr, Edit>, PolicyListPtr> edited_;
  std::map<decltype(PolicyList::all), PolicyListPtr> shared_;
};

template <class Visit>
void PolicyModel::for_each_selected(const Policy& policy, Visit visit) const {
  const bool everywhere = policy.key.in_namespace.empty();
  for (auto place = endpoints_.lower_bound({policy.key.in_namespace, ""});
       place != endpoints_.end() && (everywhere || place->first.in_namespace == policy.key.in_namespace); ++place) {
    if (selects(policy, *place->second.identity)) {
      visit(place->first, place->second);
    }
  }
}

PolicyModel::Draft PolicyModel::draft(Change change) const {
  Draft draft;
  std::set<PolicyKey> stay;
  if (!change.removed.empty()) {
    std::ranges::transform(change.policies, std::inserter(stay, stay.end()),
                           [](const auto& r) { return r.policy->key; });
  }
  for (const PolicyKey& key : change.removed) {
    if (const auto known = policies_.find(key); known != policies_.end() && !stay.contains(key)) {
      draft.gone.push_back(known->second.policy);
    }
  }
  for (ReadPolicy& read : change.policies) {
    const auto known = policies_.find(read.policy->key);
    if (known != policies_.end() && *known->second.policy == *read.policy) {
      read.policy = known->second.policy;  // the places may differ
    } else {
      if (known != policies_.end()) {
        draft.gone.push_back(known->second.policy);
      }
      draft.fresh.push_back(read.policy);
    }
  }
  draft.policies = std::move(change.policies);
  std::ranges::sort(draft.gone);
  Lists lists;
  if (change.endpoints) {
    replace_endpoints(*change.endpoints, draft, lists);
  }
  edit_lists(draft, lists);
  std::erase_if(draft.endpoints, [&](const auto& each) {
    const Endpoint* before = find(each.first);
    return each.second ? before != nullptr && same(*before, *each.second) : before == nullptr;
  });
  return draft;
}

PolicyList PolicyModel::list_for(const Identity& identity, const Draft& draft) const {
  Edit edit;
  const auto take = [&](const PolicyPtr& policy) {
    if (selects(*policy, identity)) {
      edit.with.push_back(policy);
    }
  };
  const auto take_unless_gone = [&](const PolicyPtr& policy) {
    if (!std::ranges::binary_search(draft.gone, policy)) {
      take(policy);
    }
  };
  std::ranges::for_each(everywhere_, take_unless_gone);
  if (const auto known = by_namespace_.find(identity.in_namespace); known != by_namespace_.end()) {
    std::ranges::for_each(known->second, take_unless_gone);
  }
  std::ranges::for_each(draft.fresh, take);
  return edited({}, edit);
}

void PolicyModel::replace_endpoints(const Endpoints& wanted, Draft& draft, Lists& lists) const {
  for (const auto& [key, endpoint] : endpoints_) {
    draft.endpoints[key] = std::nullopt;
  }
  for (const EndpointEntry& wish : wanted.entries) {
    IdentityPtr identity = identity_of(wish, wanted.namespaces, names_);
    const Endpoint* before = find(wish.key);
    const auto entry =
        before != nullptr && *before->entry == wish ? before->entry : std::make_shared<const EndpointEntry>(wish);
    if (before != nullptr && *before->identity == *identity) {
      draft.endpoints[wish.key] = Endpoint{entry, before->identity, before->policies};
    } else {
      PolicyListPtr policies = lists.share(list_for(*identity, draft));
      if (before != nullptr && before->policies->all == policies->all) {
        policies = before->policies;
      }
      draft.endpoints[wish.key] = Endpoint{entry, std::move(identity), std::move(policies)};
    }
  }
}

void PolicyModel::edit_lists(Draft& draft, Lists& lists) const {
  std::map<EndpointKey, Edit> edits;
  for (const PolicyPtr& policy : draft.gone) {
    for_each_selected(*policy, [&](const EndpointKey& key, const Endpoint&) { edits[key].without.push_back(policy); });
  }
  for (const PolicyPtr& policy : draft.fresh) {
    for_each_selected(*policy, [&](const EndpointKey& key, const Endpoint&) { edits[key].with.push_back(policy); });
  }
  for (auto& [key, edit] : edits) {
    const Endpoint& before = endpoints_.at(key);
    auto [place, unchanged] = draft.endpoints.try_emplace(key, before);
    if (unchanged || (place->second && place->second->identity == before.identity)) {
      place->second->policies = lists.edit(before.policies, std::move(edit));
    }
  }
}

void PolicyModel::commit(Draft draft) {
  const auto set_of = [this](const Policy& policy) -> std::set<PolicyPtr>& {
    return policy.in_namespace ? by_namespace_[*policy.in_namespace] : everywhere_;
  };
  for (const PolicyPtr& policy : draft.gone) {
    set_of(*policy).erase(policy);
    policies_.erase(policy->key);
  }
  for (const PolicyPtr& policy : draft.fresh) {
    set_of(*policy).insert(policy);
  }
  for (ReadPolicy& read : draft.policies) {
    const PolicyKey key = read.policy->key;
    policies_.insert_or_assign(key, std::move(read));
  }
  // All that go first: another may have the address now.
  for (const auto& [key, after] : draft.endpoints) {
    if (const Endpoint* before = find(key); before != nullptr && !(after && after->entry == before->entry)) {
      for (const IpAddress& address : before->entry->addresses) {
        by_address_.erase(address);
      }
    }
  }
  for (auto& [key, after] : draft.endpoints) {
    if (!after) {
      endpoints_.erase(key);
      continue;
    }
    Endpoint& endpoint = endpoints_[key];
    if (endpoint.entry != after->entry) {
      for (const IpAddress& address : after->entry->addresses) {
        by_address_[address] = key;
      }
    }
    endpoint = std::move(*after);
  }
}

const PolicyModel::Endpoint* PolicyModel::find(const EndpointKey& key) const {
  const auto place = endpoints_.find(key);
  return place == endpoints_.end() ? nullptr : &place->second;
}

const PolicyModel::Endpoint* PolicyModel::find(const IpAddress& address) const {
  const auto place = by_address_.find(address);
  return place == by_address_.end() ? nullptr : find(place->second);
}

}  // namespace weir
