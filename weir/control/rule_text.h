#pragma once
// The rules that a node's workers hold, for people and for programs.

#include <string>
#include <vector>

#include <weir/flow/describe.h>
#include <weir/runtime/node.h>

namespace weir {

/// One cached rule in words.
struct RuleLine {
  unsigned worker;
  std::uint64_t packets, bytes;
  std::vector<std::string> match;  ///< what the decisions consulted: all that it compares
  std::vector<std::string> guards;
  std::vector<std::string> actions;
};

/// The most used of a node's rules, in that order.
struct RuleLines {
  std::vector<RuleLine> rules;
  std::size_t total;  ///< that there are
};

/// The valid rules, at most `limit`. The node runs or has run. Any thread but a worker's.
RuleLines rule_lines(Node& node, std::size_t limit = ~std::size_t{0});

/// The valid rules that take packets with this key, whatever their guards say, of all workers.
std::vector<RuleLine> rules_for(Node& node, const Key& key);

/// Names for descriptions of this node's rules.
Names names_of(Node& node);

/// For each rule its packets and actions, and on the lines below what it matches and its guards.
std::string rules_text(const RuleLines& lines);

/// From the answer of a running node (/v1/rules).
Result<RuleLines> read_rules(const std::string& json);

}  // namespace weir
