#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "command.h"
#include <examples/services.h>
#include <unistd.h>

#include <weir/control/control_socket.h>
#include <weir/service/firewall/firewall.h>
#include <weir/service/nat/nat.h>
#include <weir/service/router/router.h>
#include <weir/service/vswitch/vswitch.h>

namespace weir::cli {

namespace {

bool colours(int descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(descriptor) != 0 && std::getenv("NO_COLOR") == nullptr &&
         (term == nullptr || std::strcmp(term, "dumb") != 0);
}

/// Calls each(line) for the lines of a text, which may lack the last line end.
template <class Each>
void for_each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

CLI::App& subcommand(CLI::App& app, const std::string& name, const std::string& help, const std::string& example) {
  CLI::App& command = *app.add_subcommand(name, help);
  command.footer("Example:\n  " + example);
  return command;
}

void NodeChoice::add_to(CLI::App& command) {
  CLI::Option* const node =
      command.add_option("--node", name, "The node's name (the one that runs)")->type_name("NAME");
  command.add_option("--control", control, "Its control socket, if it is not where names say")
      ->type_name("PATH")
      ->excludes(node);
}

Result<std::string> NodeChoice::ask(const ControlRequest& request) const {
  const auto socket = control.empty() ? find_control(name) : std::filesystem::path(control);
  return socket ? ask_control(*socket, request) : std::unexpected(socket.error());
}

std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ServiceRegistry services() {
  ServiceRegistry registry;
  examples::register_all(registry);
  registry.add(firewall());
  registry.add(nat());
  registry.add(router());
  registry.add(vswitch());
  return registry;
}

void print(const std::string& text, int& status) {
  std::string output;
  if (colours(STDOUT_FILENO)) {
    for_each_line(text, [&](std::string_view line) {
      const bool title = !line.empty() && line.front() != ' ' && line.front() != '{' && line.front() != '}';
      output += title ? fmt::format("\033[1m{}\033[0m\n", line) : fmt::format("{}\n", line);
    });
  } else {
    output = text;
  }
  std::fwrite(output.data(), 1, output.size(), stdout);
  if (std::fflush(stdout) != 0 && errno != EPIPE) {
    print_error(Error{fmt::format("cannot write to standard output: {}", std::strerror(errno))}, status);
  }
}

void print_error(const Error& error, int& status) {
  const bool red = colours(STDERR_FILENO);
  for_each_line(error.message, [&](std::string_view line) {
    fmt::print(stderr, "{}weir:{} {}\n", red ? "\033[31m" : "", red ? "\033[0m" : "", line);
  });
  status = failed;
}

Result<std::chrono::nanoseconds> parse_duration(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, number);
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  const double seconds = unit == "s"    ? 1
                         : unit == "ms" ? 1e-3
                         : unit == "us" ? 1e-6
                         : unit == "m"  ? 60
                         : unit == "h"  ? 3600
                                        : 0;
  if (failure != std::errc{} || seconds == 0 || !(number * seconds > 0) || number * seconds > 1e8) {
    return error("'{}' is no time; write 10s, 500ms, 2m or 1h", text);
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(number * seconds * 1e9));
}

}  // namespace weir::cli
