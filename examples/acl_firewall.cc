// A stateless firewall: the first rule of a file that matches a packet decides; what is not IP passes.

#include <examples/services.h>

#include <weir/service/acl_file.h>

namespace weir::examples {

constexpr DropReason denied_by_rule{"denied_by_rule", "a rule of the firewall denies it"};
constexpr DropReason denied_by_default{"denied_by_default", "no rule of the firewall allows it"};

struct Outcome {
  bool allow;
  std::shared_ptr<Counter> counter;
  bool operator==(const Outcome&) const = default;
  [[nodiscard]] std::string to_string() const { return (allow ? "allow, " : "deny, ") + counter->name(); }
};

static Result<std::unique_ptr<Service>> build(ServiceContext& at) {
  auto& acl = at.state().classifier<Outcome>("acl");
  auto& allow = at.state().versioned("the default of acl", true);
  const FlowStage& s = at.node.graph().stage(at.name(), [&acl, &allow](Flow& flow) {
    if (const Outcome* outcome = flow.has(layers::ip) ? flow.match(acl) : nullptr) {
      flow.count(*outcome->counter);
      return outcome->allow ? flow.next() : flow.drop(denied_by_rule);
    }
    return !flow.has(layers::ip) || flow.read(allow) ? flow.next() : flow.drop(denied_by_default);
  });
  return make_service({s, s}, [&acl, &allow](const ServiceContext& context, Update& update) {
    Errors errors;
    std::vector<std::pair<Match, Outcome>> rules;
    for (const AclRule& rule : errors.take(read_acl_file(context.path("rules")))) {
      const Outcome outcome{rule.allow, context.state().temporary_counter(rule.name)};
      for (const Match& match : rule.matches) {
        rules.emplace_back(match, outcome);
      }
    }
    update.assign(acl, std::move(rules));
    update.assign(allow, context.text("default") == "allow");
    return errors.result();
  });
}

ServiceKind acl_firewall() {
  return {"acl_firewall",
          "drops what a file of ordered rules denies",
          {live(required_setting("rules", SettingType::text, "YAML file of rules")),
           live(word_setting("default", "what happens to IP that no rule matches", {"allow", "deny"}))},
          build};
}

}  // namespace weir::examples
