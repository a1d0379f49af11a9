#pragma once
// The pieces of JSON that answers are made of: each is produced in one place, and named as docs/openapi.yaml names it.

#include <string>
#include <string_view>

#include <weir/control/rule_text.h>
#include <weir/runtime/summary.h>
#include <weir/service/service.h>

namespace weir {

Json ports_json(const Summary& summary);
Json stages_json(const Summary& summary);
Json rules_json(const std::vector<RuleLine>& rules);
/// All that was counted: ports, stages, drops, counters, tables, workers, rule_cache, packets, and the times.
Json stats_json(const Summary& summary);

/// What a client sent; `is_discarded` if it is no JSON.
inline Json read_json(std::string_view text) {
  // The parser takes a zero byte for the end of its input, whatever follows.
  return text.find('\0') == std::string_view::npos ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

/// As text; names from files may hold any bytes, and those that are no UTF-8 are replaced. Negative: on one line.
inline std::string text_of(const Json& json, int indent = 2) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace weir
