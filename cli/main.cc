// The `weir` command.

#include <algorithm>
#include <csignal>

#include "command.h"

#include <weir/base/nearest.h>

namespace {

/// The first word is to be a command: what is wrong if it is none.
std::string wrong_command(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  if (word.starts_with('-') || std::ranges::find(names, word) != names.end()) {
    return {};
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return fmt::format("unknown command '{}'{}", word, weir::did_you_mean(word, views));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace weir::cli;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away ends nothing
  CLI::App app("Weir, an open software-defined DPU.", "weir");
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);
  app.footer("Every command has --help with an example. Exit status: 0, 1 if it failed, 2 if the call was wrong.");
  app.get_formatter()->column_width(34);
  int status = ok;
  add_run(app, status);
  add_check(app, status);
  add_devices(app, status);
  add_show(app, status);
  add_apply(app, status);
  add_port(app, status);
  add_policy(app, status);
  add_trace(app, status);
  add_doctor(app, status);
  add_completion(app, status);
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return called_wrongly;
  }
  if (const std::string wrong = wrong_command(app, argv[1]); !wrong.empty()) {
    fmt::print(stderr, "weir: {}\nweir: see: weir --help\n", wrong);
    return called_wrongly;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& wrong) {
    fmt::print(stderr, "weir: {}\n", wrong.what());
    const auto chosen = app.get_subcommands();
    fmt::print(stderr, "weir: see: weir {}{}--help\n", chosen.empty() ? "" : chosen.front()->get_name(),
               chosen.empty() ? "" : " ");
    return called_wrongly;
  }
  return status;
}
