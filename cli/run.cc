// weir run: builds a node from a file, runs it, and says what happened.

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "command.h"
#include <sys/resource.h>
#include <unistd.h>

#include <weir/control/control_server.h>
#include <weir/control/managed_node.h>
#include <weir/control/privileges.h>
#include <weir/control/rule_text.h>
#include <weir/control/summary_text.h>
#include <weir/control/table_text.h>

namespace weir::cli {

namespace {

std::atomic<Node*> running{nullptr};
std::atomic<bool> stop_wanted{false};

extern "C" void stop_running(int signal) {
  stop_wanted = true;
  if (Node* node = running.load()) {
    node->stop();
  }
  std::signal(signal, SIG_DFL);  // the second one ends the process at once
}

/// From the second second on, a line on a terminal that says how far it is.
class Progress {
 public:
  explicit Progress(const Node& node) {
    if (isatty(STDERR_FILENO) != 0) {
      thread_ = std::thread([this, &node] { show(node); });
    }
  }
  ~Progress() {
    {
      const std::lock_guard guard(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show(const Node& node) {
    std::unique_lock lock(mutex_);
    auto next = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    bool shown = false;
    while (!changed_.wait_until(lock, next, [this] { return done_; })) {
      const Summary summary = node.summary();
      const double seconds = static_cast<double>(summary.wall_ns) / 1e9;
      fmt::print(stderr, "\r\033[K{:.0f} s: {} packets in, {}/s, {} dropped (Ctrl-C ends it)", seconds,
                 grouped(summary.in_packets()), scaled(static_cast<double>(summary.in_packets()) / seconds),
                 grouped(summary.dropped()));
      shown = true;
      next += std::chrono::milliseconds(500);
    }
    if (shown) {
      fmt::print(stderr, "\r\033[K");
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

struct RunOptions {
  std::string file;
  std::string time;
  std::string cache = "on";
  std::string engine;
  std::string control;
  std::string privileges = "drop";
  bool json = false;
  bool rules = false;
};

/// Where the node can be asked, unless the file or the command line says that it cannot.
Result<std::optional<ControlSocket>> control_socket(const NodeFile& file, const std::string& option) {
  const std::string& said = option.empty() ? file.control : option;
  if (said == "off") {
    return std::nullopt;
  }
  auto socket = ControlSocket::listen(said.empty() ? control_path(file.options.name) : std::filesystem::path(said));
  if (!socket && said.empty() && file.options.name == NodeOptions().name) {
    // Several nodes without a name may run at once.
    if (auto numbered = ControlSocket::listen(control_path(fmt::format("{}-{}", file.options.name, ::getpid())))) {
      return std::move(*numbered);
    }
  }
  if (!socket) {
    return std::unexpected(socket.error());
  }
  return std::move(*socket);
}

/// Each client of the control socket takes a descriptor; the usual limit is as many as there may be clients.
void allow_descriptors() {
  rlimit limit{};
  constexpr rlim_t wanted = 4096;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Starts the node, and what answers on `socket`.
Result<std::unique_ptr<ControlServer>> start(ManagedNode& node, std::optional<ControlSocket> socket) {
  if (auto started = node.node().start(); !started) {
    return std::unexpected(started.error());
  }
  if (!socket) {
    return nullptr;
  }
  allow_descriptors();
  return ControlServer::start(node, std::move(*socket));
}

void run(const RunOptions& options, int& status) {
  std::optional<std::chrono::nanoseconds> time;
  if (!options.time.empty()) {
    const auto parsed = parse_duration(options.time);
    if (!parsed) {
      print_error(parsed.error().at("--for"), status);
      status = called_wrongly;
      return;
    }
    time = *parsed;
  }
  NodeOverrides overrides;
  overrides.no_rule_cache = options.cache == "off";
  if (!options.engine.empty()) {
    overrides.engine = options.engine == "reference" ? EngineKind::reference : EngineKind::core;
  }
  const ServiceRegistry registry = services();
  const auto file = NodeFile::read(options.file, registry);
  if (!file) {
    return print_error(file.error(), status);
  }
  auto socket = control_socket(*file, options.control);
  if (!socket) {
    return print_error(socket.error(), status);
  }
  // Already while ports open: what they change is to be undone.
  std::signal(SIGINT, stop_running);
  std::signal(SIGTERM, stop_running);
  const auto managed = ManagedNode::build(*file, LoadMode::run, overrides);
  if (!managed) {
    return print_error(managed.error(), status);
  }
  // Now that ports are open, and before there are other threads: each has privileges of its own.
  if (options.privileges == "drop") {
    if (auto kept = keep_capabilities(needed_capabilities(*file)); !kept) {
      return print_error(kept.error(), status);
    }
  }
  Node& node = (*managed)->node();
  running = &node;
  if (stop_wanted) {
    node.stop();
  }
  auto server = start(**managed, std::move(*socket));
  if (!server) {
    running = nullptr;
    return print_error(server.error(), status);
  }
  Result<> ran;
  {
    const Progress progress(node);
    ran = node.wait(time);
  }
  server->reset();
  running = nullptr;
  if (options.json) {
    const auto rules = options.rules ? rule_lines(node).rules : std::vector<RuleLine>();
    print(summary_json(node.summary(), options.rules ? &rules : nullptr), status);
  } else {
    print(summary_text(node.summary()) + (options.rules ? "\nRules\n" + rules_text(rule_lines(node)) : ""), status);
  }
  if (!ran) {
    print_error(ran.error(), status);
  }
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "run", "Run a node until its input ends, and print what it counted",
                                 "weir run node.yaml --for 10s");
  auto options = std::make_shared<RunOptions>();
  command.add_option("FILE", options->file, "Node file")->required();
  command.add_option("--for", options->time, "Stop after so long: 10s, 500ms, 2m")->type_name("TIME");
  command.add_option("--cache", options->cache, "off: decide every packet anew")
      ->check(CLI::IsMember({"on", "off"}).description(""))
      ->type_name("on|off");
  command.add_option("--engine", options->engine, "Who executes rules, instead of what the file says")
      ->check(CLI::IsMember({"core", "reference"}).description(""))
      ->type_name("core|reference");
  command
      .add_option("--control", options->control,
                  "The socket on which weir show finds it, instead of what the file says; off: none")
      ->type_name("PATH|off");
  command
      .add_option("--privileges", options->privileges,
                  "drop: once its ports are open, the node keeps only those that ports need; keep: all")
      ->check(CLI::IsMember({"drop", "keep"}).description(""))
      ->type_name("drop|keep");
  command.add_flag("--json", options->json, "Print the summary as JSON");
  command.add_flag("--rules", options->rules, "Print the rules that are cached at the end, too");
  command.callback([options, &status] { run(*options, status); });
}

}  // namespace weir::cli
