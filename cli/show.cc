// weir show: what a running node says of itself.

#include "command.h"
#include <nlohmann/json.hpp>

#include <weir/control/control_client.h>
#include <weir/control/control_socket.h>
#include <weir/control/rule_text.h>
#include <weir/control/summary_text.h>
#include <weir/control/table_text.h>

namespace weir::cli {

namespace {

struct ShowOptions {
  std::string what;
  std::string node;
  std::string control;
  unsigned limit = 50;
  bool json = false;
};

std::string ports_table(const std::string& answer) {
  TableText table(
      {"port", "role<", "state<", "in packets", "bytes", "packets/s", "out packets", "bytes", "packets/s", "lost"});
  const auto json = nlohmann::json::parse(answer);
  for (const auto& port : json.at("ports")) {
    const auto count = [&](const char* key) { return grouped(port.at(key).get<std::uint64_t>()); };
    const auto rate = [&](const char* key) { return scaled(port.at(key).get<double>()); };
    table.row({port.at("name").get<std::string>(), port.at("role").get<std::string>(),
               port.at("up").get<bool>() ? "up" : "down", count("in_packets"), count("in_bytes"), rate("in_rate"),
               count("out_packets"), count("out_bytes"), rate("out_rate"), count("lost")});
  }
  return table.to_string();
}

Result<std::string> ports_text(const std::string& answer) {
  try {
    return "Ports\n" + ports_table(answer);
  } catch (const nlohmann::json::exception& wrong) {
    return error("what came back is not understood ({}); is the node of another version of weir?", wrong.what());
  }
}

/// The answer in words.
Result<std::string> text_of(const std::string& what, const std::string& answer) {
  if (what == "ports") {
    return ports_text(answer);
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
  auto socket = options.control.empty() ? find_control(options.node) : std::filesystem::path(options.control);
  if (!socket) {
    return std::unexpected(socket.error());
  }
  const std::string query = options.what == "rules" ? fmt::format("?limit={}", options.limit) : "";
  const auto answer = ask_control(*socket, fmt::format("/v1/{}{}", options.what, query));
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
  command.add_option("WHAT", options->what, "ports, rules, stages, or stats: all that is counted")
      ->required()
      ->check(CLI::IsMember({"ports", "rules", "stages", "stats"}).description(""))
      ->type_name("ports|rules|stages|stats");
  CLI::Option* const node =
      command.add_option("--node", options->node, "The node's name (the one that runs)")->type_name("NAME");
  command.add_option("--control", options->control, "Its control socket, if it is not where names say")
      ->type_name("PATH")
      ->excludes(node);
  command.add_option("--limit", options->limit, "Of rules: the most used so many (50)")
      ->check(CLI::Range(1, 100'000).description(""))
      ->type_name("N");
  command.add_flag("--json", options->json, "Print the node's answer, which is JSON");
  command.callback([options, &status] {
    const auto shown = show(*options);
    shown ? print(*shown, status) : print_error(shown.error(), status);
  });
}

}  // namespace weir::cli
