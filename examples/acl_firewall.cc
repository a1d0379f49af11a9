// A stateless firewall: the first rule of a file that matches a packet decides; what is not IP passes.

#include <examples/services.h>

#include <weir/service/acl_file.h>

namespace weir::examples {

constexpr DropReason denied_by_rule{"denied_by_rule", "a rule of the firewall denies it"};
constexpr DropReason denied_by_default{"denied_by_default", "no rule of the firewall allows it"};

struct Outcome {
  bool allow;
  Counter* counter;
  [[nodiscard]] std::string to_string() const { return (allow ? "allow, " : "deny, ") + counter->name(); }
};

class AclFirewall final : public FlowStage {
 public:
  AclFirewall(const Classifier<Outcome>& rules, bool allow) : rules_(rules), allow_(allow) {}

  Verdict decide(Flow& flow) const override {
    if (const Outcome* outcome = flow.has(layers::ip) ? flow.match(rules_) : nullptr) {
      flow.count(*outcome->counter);
      return outcome->allow ? flow.next() : flow.drop(denied_by_rule);
    }
    return allow_ || !flow.has(layers::ip) ? flow.next() : flow.drop(denied_by_default);
  }

 private:
  const Classifier<Outcome>& rules_;
  bool allow_;
};

static Result<ServiceStages> build(ServiceContext& context) {
  auto& acl = context.node.state().classifier<Outcome>("acl");
  Errors errors;
  const auto rules = errors.take(read_acl_file(context.path("rules")));
  errors.take(context.node.update([&](Update& update) {
    for (std::uint32_t order = 0; const AclRule& rule : rules) {
      Counter& counter = context.node.state().counter(rule.name);
      for (const Match& match : rule.matches) {
        update.set(acl, order++, match, {rule.allow, &counter});
      }
    }
  }));
  const FlowStage& s = context.node.graph().add<AclFirewall>(context.name(), acl, context.text("default") == "allow");
  return errors.empty() ? Result<ServiceStages>({s, s}) : std::unexpected(errors.result().error());
}

ServiceKind acl_firewall() {
  return {"acl_firewall",
          "drops what a file of ordered rules denies",
          {required_setting("rules", SettingType::text, "YAML file of rules"),
           word_setting("default", "what happens to IP that no rule matches", {"allow", "deny"})},
          build};
}

}  // namespace weir::examples
