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

nlohmann::ordered_json json_of(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"kind", name_of(finding.kind)},
                    {"subject", finding.subject},
                    {"found", finding.found},
                    {"remedy", finding.remedy}});
  }
  return json;
}

std::string text_of(const Repair& repair) {
  std::string text = "Repair\n";
  for (const std::string& line : repair.done) {
    text += fmt::format("  done     {}\n", line);
  }
  for (const std::string& line : repair.failed) {
    text += fmt::format("  failed   {}\n", line);
  }
  return text + (repair.done.empty() && repair.failed.empty() ? "  nothing was left\n\n" : "\n");
}

struct DoctorOptions {
  std::string file;
  bool repair = false;
  bool json = false;
};

void doctor(const DoctorOptions& options, int& status) {
  std::optional<NodeFile> file;
  if (!options.file.empty()) {
    auto read = NodeFile::read(options.file, services());
    if (!read) {
      print_error(read.error(), status);
      return;
    }
    file = std::move(*read);
  }
  const std::optional<Repair> repair = options.repair ? std::optional(repair_leftovers()) : std::nullopt;
  const std::vector<Finding> findings = examine(Machine::here(), file ? &*file : nullptr);
  const auto problems = std::ranges::count(findings, Finding::Kind::problem, &Finding::kind);
  if (options.json) {
    nlohmann::ordered_json json;
    if (repair) {
      json["repair"] = {{"done", repair->done}, {"failed", repair->failed}};
    }
    json["problems"] = problems;
    json["findings"] = json_of(findings);
    print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", status);
  } else {
    const std::string about = file ? fmt::format("This machine and {}", options.file) : "This machine";
    print(fmt::format("{}{}\n{}\n{}\n", repair ? text_of(*repair) : "", about, text_of(findings),
                      problems == 0 ? "Nothing here would stop a node." : fmt::format("{} would stop it.", problems)),
          status);
  }
  if (problems != 0 || (repair && !repair->failed.empty())) {
    status = failed;
  }
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "doctor", "Look for what would stop a node on this machine, or slow it down",
                                 "weir doctor node.yaml\n"
                                 "  weir doctor --repair");
  auto options = std::make_shared<DoctorOptions>();
  command.add_option("FILE", options->file, "Node file whose ports and workers to look at, too");
  command.add_flag("--repair", options->repair,
                   "First undo what killed nodes have left: offload settings, control sockets");
  command.add_flag("--json", options->json, "Print the findings as JSON");
  command.callback([options, &status] { doctor(*options, status); });
}

}  // namespace weir::cli
