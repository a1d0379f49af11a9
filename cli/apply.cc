// weir apply: makes a running node what a node file says.

#include <filesystem>

#include "changes.h"
#include "command.h"
#include <nlohmann/json.hpp>

namespace weir::cli {

namespace {

struct ApplyOptions {
  std::string file;
  NodeChoice node;
  bool dry_run = false;
  bool json = false;
};

Result<std::string> text_of(const std::string& answer) {
  try {
    const auto json = nlohmann::ordered_json::parse(answer);
    if (json.at("changes").empty()) {
      return "Nothing differs; the node is what the file says\n";
    }
    return changes_text(json);
  } catch (const nlohmann::json::exception& wrong) {
    return error("what came back is not understood ({}); is the node of another version of weir?", wrong.what());
  }
}

void apply(const ApplyOptions& options, int& status) {
  const nlohmann::ordered_json body{{"file", std::filesystem::absolute(options.file).lexically_normal().string()},
                                    {"dry_run", options.dry_run}};
  const auto answer = options.node.ask({.target = "/v1/apply", .method = "POST", .body = json_text(body)});
  if (!answer) {
    return print_error(answer.error(), status);
  }
  const auto text = options.json ? answer : text_of(*answer);
  text ? print(*text, status) : print_error(text.error(), status);
}

}  // namespace

void add_apply(CLI::App& app, int& status) {
  CLI::App& command =
      subcommand(app, "apply", "Make a running node what a node file says, as one change, or not at all",
                 "weir apply node.yaml --dry-run\n"
                 "  weir apply node.yaml --node edge-1");
  auto options = std::make_shared<ApplyOptions>();
  command.add_option("FILE", options->file, "Node file; the node reads it, and the files it names")->required();
  options->node.add_to(command);
  command.add_flag("--dry-run", options->dry_run, "Only show what differs");
  command.add_flag("--json", options->json, "Print the node's answer, which is JSON");
  command.callback([options, &status] { apply(*options, status); });
}

}  // namespace weir::cli
