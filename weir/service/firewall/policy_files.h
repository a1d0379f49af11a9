#pragma once
// The files that the node file names, read again only when they have changed.

#include <map>

#include <weir/service/firewall/policy_model.h>
#include <weir/service/firewall/read_endpoints.h>

namespace weir {

/// What files say. One thread.
class PolicyFiles {
 public:
  explicit PolicyFiles(Names& names) : names_(names) {}

  /// Reads files of policies, and one of endpoints unless its path is empty. On an error nothing is different.
  Result<> read(std::span<const std::string> policies, const std::string& endpoints);

  /// As of the latest `read`.
  [[nodiscard]] const std::vector<ReadPolicy>& policies() const { return policies_; }
  [[nodiscard]] const Endpoints& endpoints() const { return endpoints_; }

  /// By key.
  using Said = std::map<PolicyKey, PolicyPtr>;

  /// What has changed since files said what `before` is: only that is taken over. What a command did to a policy stands
  /// until a file says something else about it than it did.
  [[nodiscard]] PolicyModel::Change change_since(const Said& before, const PolicyModel& model) const;
  [[nodiscard]] Said said() const;

 private:
  Names& names_;
  std::vector<FileText> policy_texts_;
  std::vector<FileText> endpoint_texts_;
  std::vector<ReadPolicy> policies_;
  Endpoints endpoints_;
};

}  // namespace weir
