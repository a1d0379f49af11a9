#pragma once
// Ordered allow and deny rules from a YAML file.

#include <string>
#include <vector>

#include <weir/base/config.h>
#include <weir/flow/match.h>

namespace weir {

struct AclRule {
  bool allow = false;
  std::string name;            ///< "rule 3 (deny)" if it was given none
  std::vector<Match> matches;  ///< a packet that any of them matches is the rule's
};

/// The most rules of one file, with what port ranges expand to.
inline constexpr std::size_t acl_limit = 100'000;

/// A list of rules, the first that matches decides. Each is a map with `action` (allow or deny), optionally `name`, and
/// the conditions of read_match:
///
///     - {name: no telnet, action: deny, protocol: tcp, dst_port: 23}
///
/// Errors name every mistake, a line each.
Result<std::vector<AclRule>> read_acl_file(const std::string& path);
Result<std::vector<AclRule>> read_acl(const Config& rules);

}  // namespace weir
