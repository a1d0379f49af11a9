// What a node has told, read back.

#include <weir/control/internal/json.h>
#include <weir/control/summary_text.h>

namespace weir {

namespace {

/// Calls read(item) for the items of `json[key]`, if there are any.
template <class Read>
void each(const Json& json, const char* key, Read read) {
  if (const auto list = json.find(key); list != json.end()) {
    for (const Json& item : *list) {
      read(item);
    }
  }
}

std::uint64_t number(const Json& json, const char* key) { return json.at(key).get<std::uint64_t>(); }
std::string text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

void read_rule_cache(const Json& json, Summary& s) {
  s.exact_hits = number(json, "exact_hits");
  s.masked_hits = number(json, "masked_hits");
  s.port_hits = number(json, "port_hits");
  s.misses = number(json, "misses");
  s.probes = number(json, "probes");
  s.rules = number(json, "rules");
  s.masks = number(json, "masks");
  s.installed = number(json, "installed");
  s.not_installed = number(json, "not_installed");
  s.widened = number(json, "widened");
  s.evicted = number(json, "evicted");
  s.aged = number(json, "aged");
  s.revoked = number(json, "revoked");
  s.hints_evicted = number(json, "hints_evicted");
}

Summary summary_of(const Json& json) {
  Summary s;
  each(json, "ports", [&](const Json& port) {
    s.ports.push_back({text(port, "name"), number(port, "in_packets"), number(port, "in_bytes"),
                       number(port, "out_packets"), number(port, "out_bytes"), number(port, "lost"),
                       std::stoull(text(port, "digest"), nullptr, 16), number(port, "bad_input")});
  });
  each(json, "stages", [&](const Json& stage) {
    s.stages.push_back({text(stage, "name"), text(stage, "kind") == "packet", number(stage, "decisions"),
                        number(stage, "decision_ns"), number(stage, "hits")});
  });
  each(json, "drops", [&](const Json& drop) {
    s.drops.push_back({text(drop, "reason"), text(drop, "help"), number(drop, "packets")});
  });
  each(json, "counters", [&](const Json& counter) {
    s.counters.push_back({text(counter, "name"), number(counter, "packets"), number(counter, "bytes")});
  });
  each(json, "tables", [&](const Json& table) {
    s.tables.push_back(
        {text(table, "name"), number(table, "size"), number(table, "capacity"), number(table, "rejected")});
  });
  each(json, "workers",
       [&](const Json& worker) { s.workers.push_back({number(worker, "cpu_ns"), number(worker, "wall_ns")}); });
  if (const auto cache = json.find("rule_cache"); cache != json.end()) {
    read_rule_cache(*cache, s);
  }
  if (const auto packets = json.find("packets"); packets != json.end()) {
    s.cloned = number(*packets, "cloned");
    s.originated = number(*packets, "originated");
    s.consumed = number(*packets, "consumed");
    s.held = number(*packets, "held");
  }
  s.wall_ns = json.value("wall_ns", std::uint64_t{0});
  return s;
}

RuleLines rules_of(const Json& json) {
  RuleLines lines{.rules = {}, .total = json.at("total").get<std::size_t>()};
  each(json, "rules", [&](const Json& rule) {
    lines.rules.push_back({rule.at("worker").get<unsigned>(), number(rule, "packets"), number(rule, "bytes"),
                           rule.at("match").get<std::vector<std::string>>(),
                           rule.at("guards").get<std::vector<std::string>>(),
                           rule.at("actions").get<std::vector<std::string>>()});
  });
  return lines;
}

/// The library reports what it did not expect by exceptions.
template <class Read>
auto read_json(const std::string& json, Read read) -> Result<decltype(read(Json()))> {
  try {
    return read(Json::parse(json));
  } catch (const std::exception& wrong) {
    return error("what came back is not understood ({}); is the node of another version of weir?", wrong.what());
  }
}

}  // namespace

Result<Summary> read_summary(const std::string& json) { return read_json(json, summary_of); }
Result<RuleLines> read_rules(const std::string& json) { return read_json(json, rules_of); }

}  // namespace weir
