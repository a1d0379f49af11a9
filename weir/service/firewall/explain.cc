#include <weir/service/firewall/explain.h>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>

namespace weir {

namespace {

/// One end of the traffic.
struct End {
  std::optional<PolicyModel::Endpoint> endpoint;
  Maybe<IpAddress> address;
};

class Explainer {
 public:
  Explainer(const PolicyModel& model, const PolicyModel::Draft& draft, const Question& question)
      : model_(model), draft_(draft), question_(question) {}

  Result<Json> explain() const {
    const auto from = end_of(question_.from);
    const auto to = end_of(question_.to);
    if (!from || !to) {
      return std::unexpected(from ? to.error() : from.error());
    }
    Json egress = side(Direction::egress, *from, *to);
    Json ingress = side(Direction::ingress, *to, *from);
    const bool allowed = egress["allowed"].get<bool>() && ingress["allowed"].get<bool>();
    return Json{{"allowed", allowed}, {"egress", std::move(egress)}, {"ingress", std::move(ingress)}};
  }

 private:
  Result<End> end_of(const std::string& text) const {
    if (const auto address = IpAddress::parse(text)) {
      const PolicyModel::Endpoint* owner = model_.find(*address);
      return End{owner == nullptr ? std::nullopt : drafted(owner->entry->key), *address};
    }
    const std::size_t slash = text.find('/');
    const EndpointKey key = slash == std::string::npos ? EndpointKey{"default", text}
                                                       : EndpointKey{text.substr(0, slash), text.substr(slash + 1)};
    End end{drafted(key), {}};
    if (!end.endpoint) {
      std::vector<std::string> names;
      for (const auto& [other, endpoint] : model_.endpoints()) {
        names.push_back(other.to_string());
      }
      const std::vector<std::string_view> views(names.begin(), names.end());
      return error("'{}' is neither an endpoint nor an address{}", text, did_you_mean(key.to_string(), views));
    }
    if (!end.endpoint->entry->addresses.empty()) {
      end.address = end.endpoint->entry->addresses.front();
    }
    return end;
  }

  [[nodiscard]] std::optional<PolicyModel::Endpoint> drafted(const EndpointKey& key) const {
    const auto changed = draft_.endpoints.find(key);
    if (changed != draft_.endpoints.end()) {
      return changed->second;
    }
    const PolicyModel::Endpoint* endpoint = model_.find(key);
    return endpoint == nullptr ? std::nullopt : std::optional(*endpoint);
  }

  [[nodiscard]] Json side(Direction direction, const End& guarded, const End& peer) const {
    if (!guarded.endpoint) {
      return {{"endpoint", nullptr}, {"allowed", true}, {"why", "it is no endpoint, and nothing guards it"}};
    }
    const PolicyModel::Endpoint& endpoint = *guarded.endpoint;
    const Traffic traffic{.peer = peer.address, .protocol = question_.protocol, .port = question_.port};
    const Decision decision = decide(direction, *endpoint.identity, *endpoint.policies, traffic,
                                     peer.endpoint ? peer.endpoint->identity.get() : nullptr);
    Json json{{"endpoint", endpoint.entry->key.to_string()},
              {"allowed", decision.allowed},
              {"why", why(direction, endpoint, decision)}};
    if (decision.policy != nullptr) {
      json["policy"] = decision.policy->key.to_string();
    }
    if (decision.by == Decision::By::rule) {
      json["rule"] = decision.rule + 1;
      if (const ReadPolicy* read = read_policy(*decision.policy)) {
        json["place"] = read->rule_places[static_cast<std::size_t>(direction)][decision.rule];
      }
    } else if (decision.policy != nullptr) {
      if (const ReadPolicy* read = read_policy(*decision.policy)) {
        json["place"] = read->place;
      }
    }
    return json;
  }

  [[nodiscard]] static std::string why(Direction direction, const PolicyModel::Endpoint& endpoint,
                                       const Decision& decision) {
    switch (decision.by) {
      case Decision::By::nothing:
        return endpoint.policies->empty(direction)
                   ? fmt::format("no policy is about its {}", direction_name(direction))
                   : fmt::format("no rule of the policies about its {} matches, and none isolates it",
                                 direction_name(direction));
      case Decision::By::itself:
        return "an endpoint always reaches itself";
      case Decision::By::rule: {
        const PolicyRule& rule = decision.policy->rules_of(direction)[decision.rule];
        return fmt::format("rule {}{} of {} {} it", decision.rule + 1,
                           rule.name.empty() ? "" : fmt::format(" ('{}')", rule.name), decision.policy->key.to_string(),
                           decision.allowed ? "allows" : "denies");
      }
      case Decision::By::isolation: {
        std::vector<std::string> names;
        for (const PolicyPtr& policy : endpoint.policies->of(direction, PolicyKind::network)) {
          names.push_back(policy->key.name);
          constexpr std::size_t shown = 5;
          if (names.size() == shown && endpoint.policies->of(direction, PolicyKind::network).size() > shown) {
            names.emplace_back("...");
            break;
          }
        }
        return fmt::format("its {} is restricted by {}, and no rule there allows it", direction_name(direction),
                           fmt::join(names, ", "));
      }
    }
    return {};
  }

  [[nodiscard]] const ReadPolicy* read_policy(const Policy& policy) const {
    const auto drafted =
        std::ranges::find_if(draft_.policies, [&](const ReadPolicy& read) { return read.policy.get() == &policy; });
    if (drafted != draft_.policies.end()) {
      return &*drafted;
    }
    const auto known = model_.policies().find(policy.key);
    return known == model_.policies().end() ? nullptr : &known->second;
  }

  const PolicyModel& model_;
  const PolicyModel::Draft& draft_;
  const Question& question_;
};

}  // namespace

Result<Json> explain(const PolicyModel& model, const PolicyModel::Draft& draft, const Question& question) {
  return Explainer(model, draft, question).explain();
}

}  // namespace weir
