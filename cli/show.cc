// weir show: what a running node says of itself.

#include "command.h"
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weir/control/rule_text.h>
#include <weir/control/summary_text.h>
#include <weir/control/table_text.h>

namespace weir::cli {

namespace {

struct ShowOptions {
  std::string what;
  NodeChoice node;
  unsigned limit = 50;
  bool json = false;
};

std::string ports_table(const nlohmann::json& json) {
  TableText table(
      {"port", "role<", "state<", "in packets", "bytes", "packets/s", "out packets", "bytes", "packets/s", "lost"});
  for (const auto& port : json.at("ports")) {
    const auto count = [&](const char* key) { return grouped(port.at(key).get<std::uint64_t>()); };
    const auto rate = [&](const char* key) { return scaled(port.at(key).get<double>()); };
    table.row({port.at("name").get<std::string>(), port.at("role").get<std::string>(),
               port.at("up").get<bool>() ? "up" : "down", count("in_packets"), count("in_bytes"), rate("in_rate"),
               count("out_packets"), count("out_bytes"), rate("out_rate"), count("lost")});
  }
  return "Ports\n" + table.to_string();
}

std::string connections_table(const nlohmann::json& json) {
  TableText table({"connection<", "answers<", "state<", "zone<", "ingress<", "idle s"});
  for (const auto& each : json.at("connections")) {
    const auto text = [&](const char* key) {
      const auto value = each.at(key).get<std::string>();
      return value.empty() ? std::string("-") : value;
    };
    table.row({text("connection"), text("answers"), text("state"), text("zone"), text("ingress"),
               fmt::format("{:.1f}", each.at("idle_ns").get<double>() / 1e9)});
  }
  return fmt::format("Connections: {} of at most {}\n{}", grouped(json.at("total").get<std::uint64_t>()),
                     grouped(json.at("limit").get<std::uint64_t>()), table.to_string());
}

std::string chains_table(const nlohmann::json& json) {
  const auto words = [](const nlohmann::json& list) {
    return list.empty() ? std::string("-") : fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), ", "));
  };
  TableText table({"chain<", "labels<", "services<", "ports<"});
  for (const auto& chain : json.at("chains")) {
    std::vector<std::string> labels;
    for (const auto& [name, value] : chain.at("selector").items()) {
      labels.push_back(fmt::format("{}={}", name, value.get<std::string>()));
    }
    table.row({chain.at("name").get<std::string>(), labels.empty() ? "any" : fmt::format("{}", fmt::join(labels, " ")),
               words(chain.at("services")), words(chain.at("ports"))});
  }
  return "Chains\n" + table.to_string();
}

std::string services_text(const nlohmann::json& json) {
  std::string text = "Services\n";
  for (const auto& service : json.at("services")) {
    text += fmt::format("  {}: {}\n", service.at("name").get<std::string>(), service.at("help").get<std::string>());
    for (const auto& call : service.at("calls")) {
      text += fmt::format("    can be asked to {}: {}\n", call.at("name").get<std::string>(),
                          call.at("help").get<std::string>());
    }
    for (const auto& [name, value] : service.at("state").items()) {
      text += fmt::format("    {}: {}\n", name, value.dump());
    }
  }
  return text;
}

/// What is no summary, in words.
Result<std::string> state_text(const std::string& what, const std::string& answer) {
  try {
    const auto json = nlohmann::json::parse(answer);
    return what == "chains"        ? chains_table(json)
           : what == "services"    ? services_text(json)
           : what == "connections" ? connections_table(json)
                                   : ports_table(json);
  } catch (const nlohmann::json::exception& wrong) {
    return error("what came back is not understood ({}); is the node of another version of weir?", wrong.what());
  }
}

/// The answer in words.
Result<std::string> text_of(const std::string& what, const std::string& answer) {
  if (what == "ports" || what == "chains" || what == "services" || what == "connections") {
    return state_text(what, answer);
  }
  if (what == "rules") {
    const auto rules = read_rules(answer);
    return rules ? Result<std::string>("Rules\n" + rules_text(*rules)) : std::unexpected(rules.error());
  }
  const auto summary = read_summary(answer);
  if (!summary) {
    return std::unexpected(summary.error());
  }
  return what == "stages" ? "Stages\n" + stages_text(*summary) : summary_text(*summary);
}

Result<std::string> show(const ShowOptions& options) {
  const bool limited = options.what == "rules" || options.what == "connections";
  const std::string query = limited ? fmt::format("?limit={}", options.limit) : "";
  const auto answer = options.node.ask({.target = fmt::format("/v1/{}{}", options.what, query)});
  if (!answer || options.json) {
    return answer;
  }
  return text_of(options.what, *answer);
}

}  // namespace

void add_show(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "show", "Show what a running node says of itself",
                                 "weir show ports\n"
                                 "  weir show rules --node edge-1 --limit 10\n"
                                 "  weir show stats --json");
  auto options = std::make_shared<ShowOptions>();
  command
      .add_option("WHAT", options->what,
                  "ports, rules, stages, chains, services, connections, or stats: all that is counted")
      ->required()
      ->check(CLI::IsMember({"ports", "rules", "stages", "chains", "services", "connections", "stats"}).description(""))
      ->type_name("ports|rules|stages|chains|services|connections|stats");
  options->node.add_to(command);
  command.add_option("--limit", options->limit, "So many rules, the most used, or connections, the last used (50)")
      ->check(CLI::Range(1, 100'000).description(""))
      ->type_name("N");
  command.add_flag("--json", options->json, "Print the node's answer, which is JSON");
  command.callback([options, &status] {
    const auto shown = show(*options);
    shown ? print(*shown, status) : print_error(shown.error(), status);
  });
}

}  // namespace weir::cli
