#include <weir/control/metrics_text.h>

#include <fmt/format.h>

namespace weir {

namespace {

using Labels = std::initializer_list<std::pair<const char*, std::string_view>>;

/// A label's value: names from files may hold anything.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (byte == '\n') {
      result += "\\n";
    } else {
      result += byte == '\\' || byte == '"' ? "\\" : "";
      result += byte;
    }
  }
  return result;
}

class Writer {
 public:
  explicit Writer(const std::string& node) : node_(escaped(node)) {}

  /// The samples that follow are this metric's.
  void metric(const std::string& name, const char* type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void counter(const char* name, const char* help) { metric(name, "counter", help); }
  void gauge(const char* name, const char* help) { metric(name, "gauge", help); }

  template <class Number>
  void sample(Labels labels, Number value) {
    text_ += fmt::format("{}{{node=\"{}\"", name_, node_);
    for (const auto& [name, label] : labels) {
      text_ += fmt::format(",{}=\"{}\"", name, escaped(label));
    }
    text_ += fmt::format("}} {}\n", value);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string node_;
  std::string name_;
  std::string text_;
};

double in_seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

void write_ports(Writer& out, const Summary& s) {
  using Line = Summary::PortLine;
  const struct {
    const char* name;
    const char* help;
    std::uint64_t Line::* value;
  } metrics[] = {
      {"weir_port_in_packets_total", "Packets that came in by the port.", &Line::in_packets},
      {"weir_port_in_bytes_total", "Bytes that came in by the port.", &Line::in_bytes},
      {"weir_port_out_packets_total", "Packets that went out by the port.", &Line::out_packets},
      {"weir_port_out_bytes_total", "Bytes that went out by the port.", &Line::out_bytes},
      {"weir_port_lost_packets_total", "Packets that the device lost before the node took them.", &Line::lost},
      {"weir_port_unreadable_total", "Records of the port's input that could not be read.", &Line::bad_input},
  };
  for (const auto& metric : metrics) {
    out.counter(metric.name, metric.help);
    for (const Line& port : s.ports) {
      out.sample({{"port", port.name}}, port.*metric.value);
    }
  }
}

void write_stages(Writer& out, const Summary& s) {
  out.counter("weir_stage_decisions_total", "Decisions that a flow stage made.");
  for (const auto& stage : s.stages) {
    out.sample({{"stage", stage.name}}, stage.decisions);
  }
  out.counter("weir_stage_decision_seconds_total", "Time of the decisions that began at the stage.");
  for (const auto& stage : s.stages) {
    out.sample({{"stage", stage.name}}, in_seconds(stage.decision_ns));
  }
  out.counter("weir_stage_packets_total", "Packets handled by rules of a flow stage, or by a packet stage.");
  for (const auto& stage : s.stages) {
    out.sample({{"stage", stage.name}}, stage.hits);
  }
}

void write_rule_cache(Writer& out, const Summary& s) {
  out.counter("weir_rule_cache_hits_total", "Packets that found a cached rule, by how it was found.");
  out.sample({{"found", "exact"}}, s.exact_hits);
  out.sample({{"found", "masked"}}, s.masked_hits);
  out.sample({{"found", "port"}}, s.port_hits);
  const struct {
    const char* name;
    const char* help;
    std::uint64_t value;
  } counters[] = {
      {"weir_rule_cache_misses_total", "Packets that found no rule and were decided.", s.misses},
      {"weir_rule_cache_probes_total", "Masks tried.", s.probes},
      {"weir_rule_cache_installed_total", "Rules installed.", s.installed},
      {"weir_rule_cache_not_installed_total", "Decisions of which no rule was kept.", s.not_installed},
      {"weir_rule_cache_widened_total", "Rules widened to an existing mask.", s.widened},
      {"weir_rule_cache_evicted_total", "Rules evicted by others.", s.evicted},
      {"weir_rule_cache_aged_total", "Rules that aged out.", s.aged},
      {"weir_rule_cache_revoked_total", "Rules revoked by a change of what they depended on.", s.revoked},
      {"weir_rule_cache_hints_evicted_total", "Hints of the exact cache that were overwritten.", s.hints_evicted},
  };
  for (const auto& metric : counters) {
    out.counter(metric.name, metric.help);
    out.sample({}, metric.value);
  }
  out.gauge("weir_rule_cache_rules", "Rules that are cached.");
  out.sample({}, s.rules);
  out.gauge("weir_rule_cache_masks", "Masks that the cached rules have, of the worker with the most.");
  out.sample({}, s.masks);
}

void write_workers(Writer& out, const Summary& s) {
  out.counter("weir_worker_cpu_seconds_total", "Processor time of the worker.");
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    out.sample({{"worker", std::to_string(i)}}, in_seconds(s.workers[i].cpu_ns));
  }
  out.counter("weir_worker_wall_seconds_total", "Time that the worker has run.");
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    out.sample({{"worker", std::to_string(i)}}, in_seconds(s.workers[i].wall_ns));
  }
}

void write_state(Writer& out, const Summary& s) {
  out.counter("weir_counter_packets_total", "Packets counted by a counter of a stage.");
  for (const auto& counter : s.counters) {
    out.sample({{"counter", counter.name}}, counter.packets);
  }
  out.counter("weir_counter_bytes_total", "Bytes counted by a counter of a stage.");
  for (const auto& counter : s.counters) {
    out.sample({{"counter", counter.name}}, counter.bytes);
  }
  out.gauge("weir_table_entries", "Entries of a table.");
  for (const auto& table : s.tables) {
    out.sample({{"table", table.name}}, table.size);
  }
  out.gauge("weir_table_capacity", "Entries that a table can hold.");
  for (const auto& table : s.tables) {
    out.sample({{"table", table.name}}, table.capacity);
  }
  out.counter("weir_table_rejected_total", "Entries that a full table refused.");
  for (const auto& table : s.tables) {
    out.sample({{"table", table.name}}, table.rejected);
  }
}

void write_services(Writer& out, const std::vector<ServiceMetrics>& services) {
  for (const auto& [service, metrics] : services) {
    for (const ServiceMetric& metric : metrics) {
      out.metric(fmt::format("weir_{}_{}", service, metric.name), metric.counter ? "counter" : "gauge", metric.help);
      out.sample({}, metric.value);
    }
  }
}

}  // namespace

std::string metrics_text(const Summary& s, const std::vector<ServiceMetrics>& services, const std::string& node,
                         const std::string& version) {
  Writer out(node);
  out.gauge("weir_info", "Always 1; the label names the version.");
  out.sample({{"version", version}}, 1);
  out.gauge("weir_uptime_seconds", "Since the node started.");
  out.sample({}, in_seconds(s.wall_ns));
  write_ports(out, s);
  out.counter("weir_dropped_packets_total", "Packets dropped, by the reason.");
  for (const auto& drop : s.drops) {
    out.sample({{"reason", drop.reason}}, drop.packets);
  }
  out.counter("weir_cloned_packets_total", "Copies made of packets.");
  out.sample({}, s.cloned);
  out.counter("weir_originated_packets_total", "Packets that the node made itself.");
  out.sample({}, s.originated);
  out.counter("weir_consumed_packets_total", "Packets that were for the node itself.");
  out.sample({}, s.consumed);
  write_stages(out, s);
  write_rule_cache(out, s);
  write_workers(out, s);
  write_state(out, s);
  write_services(out, services);
  return out.take();
}

}  // namespace weir
