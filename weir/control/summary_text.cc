#include <weir/control/summary_text.h>

#include <algorithm>

#include <fmt/format.h>

#include <weir/control/internal/ratio.h>
#include <weir/control/table_text.h>

namespace weir {

namespace {

double seconds(const Summary& summary) { return static_cast<double>(summary.wall_ns) / 1e9; }

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

}  // namespace

std::string stages_text(const Summary& summary) {
  TableText table({"stage", "decisions", "mean time", "handled by its rules"});
  for (const auto& stage : summary.stages) {
    const double mean = ratio(stage.decision_ns, stage.decisions);
    table.row({stage.name, stage.packet_stage ? "-" : grouped(stage.decisions),
               stage.packet_stage || mean == 0 ? "-" : nanoseconds_text(mean), grouped(stage.hits)});
  }
  return table.to_string();
}

namespace {

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

}  // namespace weir
