#include <weir/engine/engine.h>

#include <fmt/format.h>

namespace weir {

std::string unfit(const Rule& rule, const Capabilities& capabilities) {
  if (!rule.not_cacheable.empty()) {
    return std::string(rule.not_cacheable);
  }
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

}  // namespace weir
