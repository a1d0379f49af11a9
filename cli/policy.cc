// weir policy: the network policies of a running node's firewall.

#include <filesystem>
#include <vector>

#include "changes.h"
#include "command.h"
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <weir/control/table_text.h>

namespace weir::cli {

namespace {

using Answer = nlohmann::ordered_json;

struct PolicyOptions {
  std::vector<std::string> files;
  std::string name;
  std::string from, to;
  std::string protocol = "tcp";
  unsigned port = 0;
  NodeChoice node;
  bool dry_run = false;
  bool json = false;
};

/// The node reads the files, and may have another working directory.
Answer absolute(const std::vector<std::string>& files) {
  Answer paths = Answer::array();
  for (const std::string& file : files) {
    paths.push_back(std::filesystem::absolute(file).lexically_normal().string());
  }
  return paths;
}

std::string outcome_text(const Answer& answer) {
  if (answer.at("changes").empty()) {
    return "Nothing differs\n";
  }
  const auto endpoints = answer.at("endpoints").get<std::uint64_t>();
  return changes_text(answer) + fmt::format("About {} {}\n", endpoints, endpoints == 1 ? "endpoint" : "endpoints");
}

std::string list_text(const Answer& answer) {
  TableText table({"kind<", "name<", "priority", "directions<", "endpoints", "from<"});
  for (const auto& policy : answer.at("policies")) {
    const std::string name = policy.at("name").get<std::string>();
    table.row({policy.at("kind").get<std::string>(),
               policy.contains("namespace") ? policy.at("namespace").get<std::string>() + "/" + name : name,
               policy.contains("priority") ? fmt::format("{}", policy.at("priority").get<int>()) : "-",
               fmt::format("{}", fmt::join(policy.at("directions").get<std::vector<std::string>>(), ", ")),
               fmt::format("{}", policy.at("endpoints").get<std::uint64_t>()), policy.at("place").get<std::string>()});
  }
  return "Policies\n" + table.to_string();
}

std::string endpoints_text(const Answer& answer) {
  TableText table({"endpoint<", "port<", "addresses<", "labels<", "policies"});
  for (const auto& endpoint : answer.at("endpoints")) {
    const auto dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
    std::vector<std::string> labels;
    for (const auto& [name, value] : endpoint.at("labels").items()) {
      labels.push_back(fmt::format("{}={}", name, value.get<std::string>()));
    }
    table.row({endpoint.at("name").get<std::string>(), dash(endpoint.at("port").get<std::string>()),
               dash(fmt::format("{}", fmt::join(endpoint.at("addresses").get<std::vector<std::string>>(), ", "))),
               dash(fmt::format("{}", fmt::join(labels, " "))),
               fmt::format("{}", endpoint.at("policies").get<std::uint64_t>())});
  }
  return "Endpoints\n" + table.to_string();
}

std::string side_text(const char* direction, const Answer& side) {
  const std::string who = side.at("endpoint").is_null()
                              ? std::string(direction)
                              : fmt::format("{} of {}", direction, side.at("endpoint").get<std::string>());
  return fmt::format("  {}: {}: {}{}\n", who, side.at("allowed").get<bool>() ? "allowed" : "denied",
                     side.at("why").get<std::string>(),
                     side.contains("place") ? fmt::format(" ({})", side.at("place").get<std::string>()) : "");
}

std::string explanation_text(const Answer& answer) {
  return fmt::format("{}\n{}{}", answer.at("allowed").get<bool>() ? "Allowed" : "Denied",
                     side_text("egress", answer.at("egress")), side_text("ingress", answer.at("ingress")));
}

std::string explain_text(const Answer& answer) {
  std::string text = explanation_text(answer);
  if (answer.contains("with_files")) {
    text += "With the files: " + explanation_text(answer.at("with_files"));
  }
  return text;
}

/// Asks the firewall to do `call`, and prints what came of it.
void ask(const PolicyOptions& options, const char* call, const Answer& arguments,
         std::string (*in_words)(const Answer&), int& status) {
  const auto answer = options.node.ask(
      {.target = fmt::format("/v1/services/firewall/{}", call), .method = "POST", .body = json_text(arguments)});
  if (!answer) {
    return print_error(answer.error(), status);
  }
  if (options.json) {
    return print(*answer, status);
  }
  try {
    print(in_words(Answer::parse(*answer)), status);
  } catch (const nlohmann::json::exception& wrong) {
    print_error(Error{fmt::format("what came back is not understood ({}); is the node of another version of weir?",
                                  wrong.what())},
                status);
  }
}

void finish(CLI::App& command, PolicyOptions& options) {
  options.node.add_to(command);
  command.add_flag("--json", options.json, "Print the node's answer, which is JSON");
}

void add_apply_command(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "apply", "Add the policies of files, or put them in the place of those there are",
                                 "weir policy apply policies.yaml --dry-run\n"
                                 "  weir policy apply policies.yaml more.yaml");
  auto options = std::make_shared<PolicyOptions>();
  command.add_option("FILE", options->files, "Files with Kubernetes network policies; the node reads them")->required();
  command.add_flag("--dry-run", options->dry_run, "Only show what differs");
  finish(command, *options);
  command.callback([options, &status] {
    ask(*options, "apply", {{"files", absolute(options->files)}, {"dry_run", options->dry_run}}, outcome_text, status);
  });
}

void add_delete_command(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "delete", "Remove a policy",
                                 "weir policy delete shop/web\n"
                                 "  weir policy delete 'AdminNetworkPolicy no-metadata'");
  auto options = std::make_shared<PolicyOptions>();
  command
      .add_option("NAME", options->name,
                  "NAMESPACE/NAME, or NAME of a policy without a namespace; its kind before it where two have the name")
      ->required();
  command.add_flag("--dry-run", options->dry_run, "Only show what differs");
  finish(command, *options);
  command.callback([options, &status] {
    ask(*options, "delete", {{"name", options->name}, {"dry_run", options->dry_run}}, outcome_text, status);
  });
}

void add_list_command(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "list", "Show all policies, or all endpoints",
                                 "weir policy list\n"
                                 "  weir policy list --endpoints");
  auto options = std::make_shared<PolicyOptions>();
  auto endpoints = std::make_shared<bool>(false);
  command.add_flag("--endpoints", *endpoints, "Show whom policies may be about");
  finish(command, *options);
  command.callback([options, endpoints, &status] {
    *endpoints ? ask(*options, "endpoints", Answer::object(), endpoints_text, status)
               : ask(*options, "list", Answer::object(), list_text, status);
  });
}

void add_explain_command(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "explain", "Show which policies allow or deny traffic from one end to another",
                                 "weir policy explain shop/web shop/db --port 5432\n"
                                 "  weir policy explain 192.0.2.1 shop/web --port 80 --file changed.yaml\n"
                                 "  weir policy explain shop/web 10.0.0.1 --protocol icmp");
  auto options = std::make_shared<PolicyOptions>();
  command.add_option("FROM", options->from, "Who begins the connection: NAMESPACE/NAME, or an address")->required();
  command.add_option("TO", options->to, "Whom it is to reach")->required();
  command.add_option("--port", options->port, "The port there")
      ->check(CLI::Range(1, 65'535).description(""))
      ->type_name("PORT");
  command.add_option("--protocol", options->protocol, "Its protocol (tcp)")
      ->check(CLI::IsMember({"tcp", "udp", "sctp", "icmp", "icmpv6"}).description(""))
      ->type_name("tcp|udp|sctp|icmp|icmpv6");
  command.add_option("--file", options->files, "Also show what it would be if these files were applied")
      ->type_name("FILE");
  finish(command, *options);
  command.callback([options, &status] {
    Answer arguments{{"from", options->from}, {"to", options->to}, {"protocol", options->protocol}};
    if (options->port != 0) {
      arguments["port"] = options->port;
    }
    if (!options->files.empty()) {
      arguments["files"] = absolute(options->files);
    }
    ask(*options, "explain", arguments, explain_text, status);
  });
}

}  // namespace

void add_policy(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "policy", "Change and explain the network policies of a running node's firewall",
                                 "weir policy apply policies.yaml");
  command.require_subcommand(1);
  add_apply_command(command, status);
  add_delete_command(command, status);
  add_list_command(command, status);
  add_explain_command(command, status);
}

}  // namespace weir::cli
