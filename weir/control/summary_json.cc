#include <fmt/format.h>

#include <weir/control/internal/json.h>
#include <weir/control/internal/ratio.h>
#include <weir/control/summary_text.h>

namespace weir {

namespace {

Json drops_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& drop : s.drops) {
    json.push_back({{"reason", drop.reason}, {"packets", drop.packets}, {"help", drop.help}});
  }
  return json;
}

Json counters_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& counter : s.counters) {
    json.push_back({{"name", counter.name}, {"packets", counter.packets}, {"bytes", counter.bytes}});
  }
  return json;
}

Json tables_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& table : s.tables) {
    json.push_back(
        {{"name", table.name}, {"size", table.size}, {"capacity", table.capacity}, {"rejected", table.rejected}});
  }
  return json;
}

Json workers_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& worker : s.workers) {
    json.push_back({{"cpu_ns", worker.cpu_ns}, {"wall_ns", worker.wall_ns}});
  }
  return json;
}

Json rule_cache_json(const Summary& s) {
  return {{"exact_hits", s.exact_hits},
          {"masked_hits", s.masked_hits},
          {"port_hits", s.port_hits},
          {"misses", s.misses},
          {"probes", s.probes},
          {"rules", s.rules},
          {"masks", s.masks},
          {"installed", s.installed},
          {"not_installed", s.not_installed},
          {"widened", s.widened},
          {"evicted", s.evicted},
          {"aged", s.aged},
          {"revoked", s.revoked},
          {"hints_evicted", s.hints_evicted},
          {"hit_ratio", ratio(s.hits(), s.hits() + s.misses)}};
}

}  // namespace

Json ports_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& port : s.ports) {
    json.push_back({{"name", port.name},
                    {"in_packets", port.in_packets},
                    {"in_bytes", port.in_bytes},
                    {"in_rate", rate(port.in_packets, s)},
                    {"out_packets", port.out_packets},
                    {"out_bytes", port.out_bytes},
                    {"out_rate", rate(port.out_packets, s)},
                    {"lost", port.lost},
                    {"bad_input", port.bad_input},
                    {"digest", fmt::format("{:016x}", port.digest)}});
  }
  return json;
}

Json stages_json(const Summary& s) {
  Json json = Json::array();
  for (const auto& stage : s.stages) {
    json.push_back({{"name", stage.name},
                    {"kind", stage.packet_stage ? "packet" : "flow"},
                    {"decisions", stage.decisions},
                    {"decision_ns", stage.decision_ns},
                    {"hits", stage.hits}});
  }
  return json;
}

Json rules_json(const std::vector<RuleLine>& rules) {
  Json json = Json::array();
  for (const RuleLine& rule : rules) {
    json.push_back({{"worker", rule.worker},
                    {"packets", rule.packets},
                    {"bytes", rule.bytes},
                    {"match", rule.match},
                    {"guards", rule.guards},
                    {"actions", rule.actions}});
  }
  return json;
}

Json stats_json(const Summary& s) {
  return {{"ports", ports_json(s)},
          {"stages", stages_json(s)},
          {"drops", drops_json(s)},
          {"counters", counters_json(s)},
          {"tables", tables_json(s)},
          {"workers", workers_json(s)},
          {"rule_cache", rule_cache_json(s)},
          {"packets",
           {{"in", s.in_packets()},
            {"out", s.out_packets()},
            {"dropped", s.dropped()},
            {"cloned", s.cloned},
            {"originated", s.originated},
            {"consumed", s.consumed},
            {"held", s.held}}},
          {"wall_ns", s.wall_ns},
          {"ns_per_packet", ratio(cpu_ns(s), s.in_packets())},
          {"cpu_share", ratio(cpu_ns(s), wall_ns(s))}};
}

std::string summary_json(const Summary& summary, const std::vector<RuleLine>* rules) {
  Json json = stats_json(summary);
  if (rules != nullptr) {
    json["rules"] = rules_json(*rules);
  }
  return text_of(json) + "\n";
}

}  // namespace weir
