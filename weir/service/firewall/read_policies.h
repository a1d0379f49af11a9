#pragma once
// Policies from files, as Kubernetes has them.

#include <span>

#include <weir/base/config.h>
#include <weir/service/firewall/policy.h>

namespace weir {

/// A policy, and where its parts stand.
struct ReadPolicy {
  PolicyPtr policy;
  std::string place;
  std::array<std::vector<std::string>, 2> rule_places;  ///< by direction, of each rule
};

/// The most policies of one reading.
inline constexpr std::size_t policy_limit = 100'000;

/// NetworkPolicy (networking.k8s.io/v1), AdminNetworkPolicy and BaselineAdminNetworkPolicy (policy.networking.k8s.io/
/// v1alpha1) objects, each a document or an item of a List; no two of the same kind, namespace and name. Errors name
/// every mistake, a line each.
Result<std::vector<ReadPolicy>> read_policies(std::span<const Config> documents, Names& names);

/// A file's text, read.
struct FileText {
  std::string path;
  std::string text;

  bool operator==(const FileText&) const = default;
};
Result<std::vector<FileText>> read_texts(std::span<const std::string> paths);

/// The files' policies together.
Result<std::vector<ReadPolicy>> read_policy_files(std::span<const FileText> files, Names& names);

}  // namespace weir
