#pragma once
// What the subcommands share. Each has a file of its own, with a function that adds it to the command line.

#include <chrono>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weir/control/control_client.h>
#include <weir/service/service.h>

namespace weir::cli {

/// Exit statuses.
inline constexpr int ok = 0;
inline constexpr int failed = 1;
inline constexpr int called_wrongly = 2;

void add_run(CLI::App& app, int& status);
void add_check(CLI::App& app, int& status);
void add_devices(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_apply(CLI::App& app, int& status);
void add_port(CLI::App& app, int& status);
void add_policy(CLI::App& app, int& status);
void add_trace(CLI::App& app, int& status);
void add_doctor(CLI::App& app, int& status);
void add_completion(CLI::App& app, int& status);

/// A subcommand with its help and an example.
CLI::App& subcommand(CLI::App& app, const std::string& name, const std::string& help, const std::string& example);

/// Which running node a command is about.
struct NodeChoice {
  std::string name;
  std::string control;

  /// Adds --node and --control.
  void add_to(CLI::App& command);
  /// Its answer. Errors: how to name a node, and what ask_control has.
  [[nodiscard]] Result<std::string> ask(const ControlRequest& request) const;
};

/// On one line; names may hold any bytes.
std::string json_text(const nlohmann::ordered_json& json);

/// The services that this command knows.
ServiceRegistry services();

/// Prints to standard output, titles (lines that are not indented) in bold on a terminal. A reader that went away is
/// fine; any other failure is told and makes the status `failed`.
void print(const std::string& text, int& status);
/// "weir: ..." on standard error, a line for each of the error's; the status becomes `failed`.
void print_error(const Error& error, int& status);

/// "10s", "500ms", "2m", "1h"
Result<std::chrono::nanoseconds> parse_duration(const std::string& text);

}  // namespace weir::cli
