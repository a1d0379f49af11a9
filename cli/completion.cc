// weir completion: a script that lets a shell complete weir's commands and options.

#include "command.h"

namespace weir::cli {

namespace {

std::string options_of(const CLI::App& command) {
  std::string words;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words += (words.empty() ? "--" : " --") + name;
    }
  }
  return words;
}

std::string bash(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : " ") + command->get_name();
    cases += fmt::format("    {}) words='{}' ;;\n", command->get_name(), options_of(*command));
  }
  return fmt::format(R"(# bash completion for weir: source <(weir completion bash)
_weir() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words
  case $previous in
    --cache) COMPREPLY=($(compgen -W 'on off' -- "$current")); return ;;
    --engine) COMPREPLY=($(compgen -W 'core reference' -- "$current")); return ;;
    show) COMPREPLY=($(compgen -W 'ports rules stages chains services stats' -- "$current")); return ;;
    port) COMPREPLY=($(compgen -W 'add set remove' -- "$current")); return ;;
    completion) COMPREPLY=($(compgen -W 'bash' -- "$current")); return ;;
  esac
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} {}' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _weir weir
)",
                     commands, options_of(app), cases);
}

}  // namespace

void add_completion(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "completion", "Print a script that completes weir's commands in a shell",
                                 "source <(weir completion bash)");
  auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "bash")
      ->required()
      ->check(CLI::IsMember({"bash"}).description(""))
      ->type_name("bash");
  command.callback([&app, &status, shell] { print(bash(app), status); });  // `shell` lives as long as its option
}

}  // namespace weir::cli
