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

/// The valid rules, the most used first. The node runs or has run. Any thread.
std::vector<RuleLine> rule_lines(Node& node);

/// Names for descriptions of this node's rules.
Names names_of(Node& node);

/// For each rule its packets and actions, and on the lines below what it matches and its guards.
std::string rules_text(Node& node);

}  // namespace weir
