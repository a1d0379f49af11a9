// weir doctor: what on this machine would stop a node or slow it down.

#include <weir/control/doctor.h>

#include <algorithm>

#include "command.h"
#include <nlohmann/json.hpp>

namespace weir::cli {

namespace {

const char* name_of(Finding::Kind kind) {
  return kind == Finding::Kind::good ? "good" : kind == Finding::Kind::advice ? "advice" : "problem";
}

std::string text_of(const std::vector<Finding>& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.subject.size());
  }
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("  {:7}  {:{}}  {}\n", name_of(finding.kind), finding.subject, width, finding.found);
    if (!finding.remedy.empty()) {
      text += fmt::format("  {:7}  {:{}}  -> {}\n", "", "", width, finding.remedy);
    }
  }
  return text;
}

void doctor(const std::string& path, bool as_json, int& status) {
  std::optional<NodeFile> file;
  if (!path.empty()) {
    auto read = NodeFile::read(path, services());
    if (!read) {
      print_error(read.error(), status);
      return;
    }
    file = std::move(*read);
  }
  const std::vector<Finding> findings = examine(Machine::here(), file ? &*file : nullptr);
  const auto problems = std::ranges::count(findings, Finding::Kind::problem, &Finding::kind);
  if (as_json) {
    nlohmann::ordered_json json{{"problems", problems}, {"findings", nlohmann::ordered_json::array()}};
    for (const Finding& finding : findings) {
      json["findings"].push_back({{"kind", name_of(finding.kind)},
                                  {"subject", finding.subject},
                                  {"found", finding.found},
                                  {"remedy", finding.remedy}});
    }
    print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", status);
  } else {
    const std::string about = path.empty() ? "This machine" : fmt::format("This machine and {}", path);
    print(fmt::format("{}\n{}\n{}\n", about, text_of(findings),
                      problems == 0 ? "Nothing here would stop a node." : fmt::format("{} would stop it.", problems)),
          status);
  }
  status = problems == 0 ? status : failed;
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "doctor", "Look for what would stop a node on this machine, or slow it down",
                                 "weir doctor node.yaml");
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("FILE", options->file, "Node file whose ports and workers to look at, too");
  command.add_flag("--json", options->json, "Print the findings as JSON");
  command.callback([options, &status] { doctor(options->file, options->json, status); });
}

}  // namespace weir::cli
