#include <weir/service/acl_file.h>

#include <map>

#include <weir/service/read_match.h>

namespace weir {

Result<std::vector<AclRule>> read_acl_file(const std::string& path) {
  const auto config = Config::read_file(path);
  return config ? read_acl(*config) : std::unexpected(config.error());
}

Result<std::vector<AclRule>> read_acl(const Config& rules) {
  const auto items = rules.list("a list of rules");
  if (!items) {
    return std::unexpected(items.error());
  }
  std::vector<std::string_view> keys{"action", "name"};
  keys.insert(keys.end(), match_keys().begin(), match_keys().end());
  Errors errors;
  std::vector<AclRule> read;
  std::map<std::string, std::string> names;  // and where they are
  std::size_t matches = 0;
  for (const Config& item : *items) {
    AclRule rule;
    if (auto checked = item.check_keys(keys); !checked) {
      errors.take(checked);
      continue;
    }
    if (const Config* action = item.find("action")) {
      rule.allow = errors.take(action->one_of({"deny", "allow"})) == 1;
    } else {
      errors.take(item.error("a rule without 'action'; it is allow or deny"));
    }
    if (const Config* name = item.find("name")) {
      rule.name = errors.take(name->string("a name"));
      const auto [first, fresh] = names.try_emplace(rule.name, name->place());
      if (!fresh) {
        errors.take(name->error("two rules are named '{}'; the first is at {}", rule.name, first->second));
      }
    }
    if (rule.name.empty()) {
      rule.name = fmt::format("rule {} ({})", read.size() + 1, rule.allow ? "allow" : "deny");
    }
    rule.matches = errors.take(read_match(item));
    matches += rule.matches.size();
    if (matches > acl_limit) {
      return item.error("more than {} rules, with what port ranges expand to; use fewer or wider ones", acl_limit);
    }
    read.push_back(std::move(rule));
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return read;
}

}  // namespace weir
