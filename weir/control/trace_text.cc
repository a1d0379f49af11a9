#include <fmt/ranges.h>

#include <weir/control/internal/json.h>
#include <weir/control/trace.h>

namespace weir {

namespace {

std::string listed(const char* title, const std::vector<std::string>& items, const char* none) {
  return fmt::format("    {:9} {}\n", title, items.empty() ? none : fmt::format("{}", fmt::join(items, ", ")));
}

std::string decision_text(const TracedDecision& decision) {
  std::string text;
  for (const auto& step : decision.steps) {
    text += fmt::format("  {}\n", step.stage);
    for (const std::string& event : step.events) {
      text += fmt::format("    {}\n", event);
    }
  }
  return text;
}

std::string rule_text(const TracedDecision& decision) {
  std::string text = listed("match", decision.match, "every packet");
  text += listed("guards", decision.guards, "none");
  text += listed("actions", decision.actions, "none");
  text += "    holds for as long as these do not change\n";
  for (const std::string& dependency : decision.dependencies) {
    text += fmt::format("      {}\n", dependency);
  }
  if (decision.dependencies.empty()) {
    text += "      (nothing: it holds for ever)\n";
  }
  if (!decision.not_cacheable.empty()) {
    text += fmt::format("    not kept: {}\n", decision.not_cacheable);
  }
  return text;
}

}  // namespace

std::string trace_text(const TraceReport& report) {
  std::string text = fmt::format("Packet, in by {}\n", report.port);
  for (const std::string& line : report.packet) {
    text += fmt::format("  {}\n", line);
  }
  for (const TracedDecision& decision : report.decisions) {
    text += "\nDecision\n" + decision_text(decision);
    text += "\nRule\n" + rule_text(decision);
    if (decision.not_cacheable.empty()) {
      text += fmt::format("    placed in {}\n", report.placement);
    }
  }
  if (!report.cached.empty()) {
    text += "\nRules that take such packets now\n" + rules_text({report.cached, report.cached.size()});
  }
  text += "\nFate\n";
  for (const std::string& output : report.outputs) {
    text += fmt::format("  out by {}\n", output);
  }
  for (const std::string& drop : report.drops) {
    text += fmt::format("  dropped, {}\n", drop);
  }
  if (report.outputs.empty() && report.drops.empty()) {
    text += "  held by a stage, or taken by the node itself\n";
  }
  return text;
}

std::string trace_json(const TraceReport& report) {
  Json json{{"port", report.port}, {"packet", report.packet}};
  json["decisions"] = Json::array();
  for (const TracedDecision& decision : report.decisions) {
    Json steps = Json::array();
    for (const auto& step : decision.steps) {
      steps.push_back({{"stage", step.stage}, {"events", step.events}});
    }
    json["decisions"].push_back({{"stages", steps},
                                 {"rule",
                                  {{"match", decision.match},
                                   {"guards", decision.guards},
                                   {"actions", decision.actions},
                                   {"dependencies", decision.dependencies},
                                   {"not_kept", decision.not_cacheable},
                                   {"placement", report.placement}}}});
  }
  json["outputs"] = report.outputs;
  json["drops"] = report.drops;
  json["cached"] = rules_json(report.cached);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<TraceReport> read_trace(const std::string& text) {
  using Lines = std::vector<std::string>;
  TraceReport report;
  try {
    const Json json = Json::parse(text);
    json.at("port").get_to(report.port);
    json.at("packet").get_to(report.packet);
    for (const Json& decision : json.at("decisions")) {
      TracedDecision& read = report.decisions.emplace_back();
      for (const Json& stage : decision.at("stages")) {
        read.steps.push_back({stage.at("stage").get<std::string>(), stage.at("events").get<Lines>()});
      }
      const Json& rule = decision.at("rule");
      rule.at("match").get_to(read.match);
      rule.at("guards").get_to(read.guards);
      rule.at("actions").get_to(read.actions);
      rule.at("dependencies").get_to(read.dependencies);
      rule.at("not_kept").get_to(read.not_cacheable);
      rule.at("placement").get_to(report.placement);
    }
    json.at("outputs").get_to(report.outputs);
    json.at("drops").get_to(report.drops);
  } catch (const Json::exception& wrong) {
    return error("what came back is not understood ({}); is the node of another version of weir?", wrong.what());
  }
  const auto cached = read_rules(Json{{"rules", Json::parse(text)["cached"]}, {"total", 0}}.dump());
  if (!cached) {
    return std::unexpected(cached.error());
  }
  report.cached = cached->rules;
  return report;
}

}  // namespace weir
