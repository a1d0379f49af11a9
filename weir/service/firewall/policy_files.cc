#include <weir/service/firewall/policy_files.h>

namespace weir {

Result<> PolicyFiles::read(std::span<const std::string> policies, const std::string& endpoints) {
  Errors errors;
  auto policy_texts = errors.take(read_texts(policies));
  const std::vector<std::string> endpoint_paths(endpoints.empty() ? 0 : 1, endpoints);
  auto endpoint_texts = errors.take(read_texts(endpoint_paths));
  const bool new_policies = policy_texts != policy_texts_;
  const bool new_endpoints = endpoint_texts != endpoint_texts_;
  std::vector<ReadPolicy> read_policies;
  Endpoints read_endpoints_;
  if (errors.empty() && new_policies) {
    read_policies = errors.take(read_policy_files(policy_texts, names_));
  }
  if (errors.empty() && new_endpoints && !endpoint_texts.empty()) {
    const auto file = Config::parse(endpoint_texts[0].text, endpoint_texts[0].path);
    if (file) {
      read_endpoints_ = errors.take(read_endpoints(*file, names_));
    } else {
      errors.add(file.error());
    }
  }
  if (!errors.empty()) {
    return errors.result();
  }
  if (new_policies) {
    policy_texts_ = std::move(policy_texts);
    policies_ = std::move(read_policies);
  }
  if (new_endpoints) {
    endpoint_texts_ = std::move(endpoint_texts);
    endpoints_ = std::move(read_endpoints_);
  }
  return {};
}

PolicyModel::Change PolicyFiles::change_since(const Said& before, const PolicyModel& model) const {
  PolicyModel::Change change;
  Said gone = before;
  for (const ReadPolicy& read : policies_) {
    const auto was = before.find(read.policy->key);
    gone.erase(read.policy->key);
    const bool says_something_else = was == before.end() || *was->second != *read.policy;
    const auto now = model.policies().find(read.policy->key);
    const bool stands = now != model.policies().end() && *now->second.policy == *read.policy;
    if (says_something_else || stands) {  // the latter for its place, which may be another
      change.policies.push_back(read);
    }
  }
  for (const auto& [key, policy] : gone) {
    change.removed.push_back(key);
  }
  return change;
}

PolicyFiles::Said PolicyFiles::said() const {
  Said said;
  for (const ReadPolicy& read : policies_) {
    said.emplace(read.policy->key, read.policy);
  }
  return said;
}

}  // namespace weir
