#pragma once
// What a node has counted, for people and for programs.

#include <string>

#include <weir/control/rule_text.h>
#include <weir/runtime/summary.h>

namespace weir {

/// Aligned tables: ports, stages, drops with their meaning, counters, tables, the rule cache, and time per packet
/// beside the workers' share of their processors.
std::string summary_text(const Summary& summary);
/// Its table of stages, without a title.
std::string stages_text(const Summary& summary);

/// The same as one JSON object, with the rules if they are given.
std::string summary_json(const Summary& summary, const std::vector<RuleLine>* rules = nullptr);
/// And back; what the object does not hold stays empty.
Result<Summary> read_summary(const std::string& json);

}  // namespace weir
