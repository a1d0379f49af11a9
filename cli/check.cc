// weir check: whether a node file could run, without running it.

#include "command.h"
#include <nlohmann/json.hpp>

#include <weir/control/managed_node.h>

namespace weir::cli {

namespace {

nlohmann::ordered_json lines(const Error& error) {
  auto json = nlohmann::ordered_json::array();
  std::string_view rest = error.message;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    json.push_back(std::string(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return json;
}

void check(const std::string& file, bool as_json, int& status) {
  const auto node = ManagedNode::load(file, services(), LoadMode::check);
  if (as_json) {
    nlohmann::ordered_json json{{"file", file}, {"ok", node.has_value()}};
    json["errors"] = node ? nlohmann::ordered_json::array() : lines(node.error());
    print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", status);
    status = node ? status : failed;
  } else if (!node) {
    print_error(node.error(), status);
  } else {
    print(fmt::format("{} can run: node '{}', {} ports, {} services\n", file, (*node)->node().options().name,
                      (*node)->node().port_count(), (*node)->file().services.size()),
          status);
  }
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  CLI::App& command =
      subcommand(app, "check", "Check a node file without running it; nothing is written", "weir check node.yaml");
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("FILE", options->file, "Node file")->required();
  command.add_flag("--json", options->json, "Print the result as JSON");
  command.callback([options, &status] { check(options->file, options->json, status); });
}

}  // namespace weir::cli
