#include <weir/engine/engine.h>

#include <fmt/format.h>

namespace weir {

std::string unfit(const Rule& rule, const Capabilities& capabilities) {
  if (rule.actions.size() > capabilities.actions) {
    return fmt::format("{} actions over the limit", rule.actions.size() - capabilities.actions);
  }
  for (const Action& action : rule.actions) {
    if ((capabilities.action_kinds >> static_cast<unsigned>(action.kind) & 1U) == 0) {
      return action.kind == ActionKind::enter ? "needs a packet stage or a second look-up"
                                              : fmt::format("cannot {}", name_of(action.kind));
    }
  }
  for (const Guard& guard : rule.guards) {
    if ((capabilities.guard_kinds >> static_cast<unsigned>(guard.kind) & 1U) == 0) {
      return fmt::format("cannot test {}", name_of(guard.kind));
    }
  }
  return {};
}

Placement place(const Rule& rule, std::span<const Capabilities> above) {
  if (!rule.not_cacheable.empty()) {
    return {"none", std::string(rule.not_cacheable)};
  }
  std::string reason = above.empty() ? "this node has no engine above it" : "";
  for (const Capabilities& engine : above) {
    std::string why = unfit(rule, engine);
    if (why.empty()) {
      return {engine.name, reason};
    }
    if (reason.empty()) {
      reason = fmt::format("{}: {}", engine.name, why);
    }
  }
  return {"core", reason};
}

}  // namespace weir
