#include <weir/control/summary_text.h>

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weir/control/table_text.h>

namespace weir {

namespace {

double seconds(const Summary& summary) { return static_cast<double>(summary.wall_ns) / 1e9; }

double rate(std::uint64_t count, const Summary& summary) {
  return summary.wall_ns == 0 ? 0 : static_cast<double>(count) / seconds(summary);
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::uint64_t cpu_ns(const Summary& summary) {
  std::uint64_t sum = 0;
  for (const auto& worker : summary.workers) {
    sum += worker.cpu_ns;
  }
  return sum;
}

std::uint64_t wall_ns(const Summary& summary) {
  std::uint64_t sum = 0;
  for (const auto& worker : summary.workers) {
    sum += worker.wall_ns;
  }
  return sum;
}

std::string nanoseconds_text(double ns) {
  return ns < 10'000 ? fmt::format("{:.0f} ns", ns)
         : ns < 1e7  ? fmt::format("{:.1f} us", ns / 1e3)
                     : fmt::format("{:.1f} ms", ns / 1e6);
}

std::string ports_text(const Summary& summary) {
  const bool losses =
      std::ranges::any_of(summary.ports, [](const auto& port) { return port.lost + port.bad_input != 0; });
  std::vector<std::string> titles{"port", "in packets", "bytes", "packets/s", "out packets", "bytes", "packets/s"};
  if (losses) {
    titles.insert(titles.end(), {"lost", "unreadable"});
  }
  TableText table(titles);
  for (const auto& port : summary.ports) {
    std::vector<std::string> row{port.name,
                                 grouped(port.in_packets),
                                 grouped(port.in_bytes),
                                 scaled(rate(port.in_packets, summary)),
                                 grouped(port.out_packets),
                                 grouped(port.out_bytes),
                                 scaled(rate(port.out_packets, summary))};
    if (losses) {
      row.insert(row.end(), {grouped(port.lost), grouped(port.bad_input)});
    }
    table.row(std::move(row));
  }
  return table.to_string();
}

std::string stages_text(const Summary& summary) {
  TableText table({"stage", "decisions", "mean time", "handled by its rules"});
  for (const auto& stage : summary.stages) {
    const double mean = ratio(stage.decision_ns, stage.decisions);
    table.row({stage.name, stage.packet_stage ? "-" : grouped(stage.decisions),
               stage.packet_stage || mean == 0 ? "-" : nanoseconds_text(mean), grouped(stage.hits)});
  }
  return table.to_string();
}

std::string rules_text(const Summary& s) {
  const std::uint64_t lookups = s.hits() + s.misses;
  if (s.installed == 0 && s.hits() == 0) {
    return fmt::format("  not used: all {} packets were decided\n", grouped(lookups));
  }
  std::string text =
      fmt::format("  {} packets: {:.1f} % hit a cached rule ({} exact, {} masked, {} by port), {} decided\n",
                  grouped(lookups), 100 * ratio(s.hits(), lookups), grouped(s.exact_hits), grouped(s.masked_hits),
                  grouped(s.port_hits), grouped(s.misses));
  text +=
      fmt::format("  {} rules in {} masks; {} installed, {} not kept, {} revoked, {} aged, {} evicted, {} widened\n",
                  grouped(s.rules), s.masks, grouped(s.installed), grouped(s.not_installed), grouped(s.revoked),
                  grouped(s.aged), grouped(s.evicted), grouped(s.widened));
  text += fmt::format("  {} masks tried; {:.2f} for each packet\n", grouped(s.probes), ratio(s.probes, lookups));
  return text;
}

}  // namespace

std::string summary_text(const Summary& summary) {
  std::string text;
  const auto section = [&](const char* title, const std::string& body) {
    if (!body.empty()) {
      text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", title, body);
    }
  };
  section("Ports", ports_text(summary));
  section("Stages", stages_text(summary));
  TableText drops({"reason", "packets", "meaning<"});
  for (const auto& drop : summary.drops) {
    drops.row({drop.reason, grouped(drop.packets), drop.help});
  }
  section("Dropped", drops.empty() ? "  nothing\n" : drops.to_string());
  TableText counters({"counter", "packets", "bytes"});
  for (const auto& counter : summary.counters) {
    counters.row({counter.name, grouped(counter.packets), grouped(counter.bytes)});
  }
  section("Counters", counters.to_string());
  TableText tables({"table", "entries", "of", "refused"});
  for (const auto& table : summary.tables) {
    tables.row({table.name, grouped(table.size), grouped(table.capacity), grouped(table.rejected)});
  }
  section("Tables", tables.to_string());
  if (summary.hits() + summary.misses != 0) {
    section("Rule cache", rules_text(summary));
  }
  section("Time",
          fmt::format("  {} packets in {:.3f} s, {}/s; {} of processor time each, workers at {:.0f} %\n",
                      grouped(summary.in_packets()), seconds(summary), scaled(rate(summary.in_packets(), summary)),
                      nanoseconds_text(ratio(cpu_ns(summary), summary.in_packets())),
                      std::min(100.0, 100 * ratio(cpu_ns(summary), wall_ns(summary)))));
  return text;
}

std::string summary_json(const Summary& s, const std::vector<RuleLine>* rules) {
  using nlohmann::ordered_json;
  ordered_json json;
  json["ports"] = ordered_json::array();
  for (const auto& port : s.ports) {
    json["ports"].push_back({{"name", port.name},
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
  json["stages"] = ordered_json::array();
  for (const auto& stage : s.stages) {
    json["stages"].push_back({{"name", stage.name},
                              {"kind", stage.packet_stage ? "packet" : "flow"},
                              {"decisions", stage.decisions},
                              {"decision_ns", stage.decision_ns},
                              {"hits", stage.hits}});
  }
  json["drops"] = ordered_json::array();
  for (const auto& drop : s.drops) {
    json["drops"].push_back({{"reason", drop.reason}, {"packets", drop.packets}, {"help", drop.help}});
  }
  json["counters"] = ordered_json::array();
  for (const auto& counter : s.counters) {
    json["counters"].push_back({{"name", counter.name}, {"packets", counter.packets}, {"bytes", counter.bytes}});
  }
  json["tables"] = ordered_json::array();
  for (const auto& table : s.tables) {
    json["tables"].push_back(
        {{"name", table.name}, {"size", table.size}, {"capacity", table.capacity}, {"rejected", table.rejected}});
  }
  json["workers"] = ordered_json::array();
  for (const auto& worker : s.workers) {
    json["workers"].push_back({{"cpu_ns", worker.cpu_ns}, {"wall_ns", worker.wall_ns}});
  }
  json["rule_cache"] = {{"exact_hits", s.exact_hits},
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
  json["packets"] = {{"in", s.in_packets()}, {"out", s.out_packets()},     {"dropped", s.dropped()},
                     {"cloned", s.cloned},   {"originated", s.originated}, {"held", s.held}};
  json["wall_ns"] = s.wall_ns;
  json["ns_per_packet"] = ratio(cpu_ns(s), s.in_packets());
  json["cpu_share"] = ratio(cpu_ns(s), wall_ns(s));
  if (rules != nullptr) {
    json["rules"] = ordered_json::array();
    for (const RuleLine& rule : *rules) {
      json["rules"].push_back({{"worker", rule.worker},
                               {"packets", rule.packets},
                               {"bytes", rule.bytes},
                               {"match", rule.match},
                               {"guards", rule.guards},
                               {"actions", rule.actions}});
    }
  }
  // Names from files may hold any bytes.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace weir
