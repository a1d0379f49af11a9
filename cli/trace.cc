// weir trace: explains one packet, against a node file or a node that runs.

#include <weir/control/trace.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "command.h"
#include <nlohmann/json.hpp>

#include <weir/control/managed_node.h>

namespace weir::cli {

namespace {

struct TraceOptions {
  std::string file;
  std::string packet;
  std::string port;
  std::string after;
  NodeChoice node;
  bool json = false;
};

/// A number if it is one; nothing if it is a frame's bytes: many digits, or such as start with a zero.
std::optional<std::uint64_t> number_of(const std::string& text) {
  constexpr std::size_t most_digits = 12;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc{} && at == end && text.size() <= most_digits && (text.size() == 1 || text[0] != '0')
             ? std::optional(number)
             : std::nullopt;
}

Result<TraceInput> input_of(const NodeFile& file, const TraceOptions& options) {
  const auto number = number_of(options.packet);
  if (!number) {
    return options.after.empty() ? packet_from_hex(file, options.packet, options.port)
                                 : error("--after needs the number of a packet, not its bytes");
  }
  std::optional<std::uint64_t> after = 0;
  if (!options.after.empty()) {
    after = options.after == "all" ? std::numeric_limits<std::uint64_t>::max() : number_of(options.after);
  }
  return after ? find_packet(file, *number, options.port, *after)
               : error("--after takes a number of packets or 'all', not '{}'", options.after);
}

/// Asks a node that runs.
Result<TraceReport> ask(const TraceOptions& options) {
  if (options.port.empty()) {
    return error("--port is missing: the port of the running node that the packet comes in by");
  }
  const nlohmann::ordered_json body{{"port", options.port}, {"packet", options.packet}};
  const auto answer = options.node.ask({.target = "/v1/trace", .method = "POST", .body = json_text(body)});
  return answer ? read_trace(*answer) : std::unexpected(answer.error());
}

void trace(const TraceOptions& options, int& status) {
  if (options.file.empty()) {
    const auto report = ask(options);
    return report ? print(options.json ? trace_json(*report) : trace_text(*report), status)
                  : print_error(report.error(), status);
  }
  const ServiceRegistry registry = services();
  const auto file = NodeFile::read(options.file, registry);
  if (!file) {
    return print_error(file.error(), status);
  }
  const auto input = input_of(*file, options);
  if (!input) {
    return print_error(input.error(), status);
  }
  const auto node = ManagedNode::build(*file, LoadMode::trace);
  if (!node) {
    return print_error(node.error(), status);
  }
  PacketTracer tracer((*node)->node());
  std::ranges::for_each(input->before, [&](const TracedFrame& frame) { tracer.pass(frame); });
  const TraceReport report = tracer.trace(input->frame);
  print(options.json ? trace_json(report) : trace_text(report), status);
}

}  // namespace

void add_trace(CLI::App& app, int& status) {
  CLI::App& command =
      subcommand(app, "trace", "Explain one packet: the stages it goes through, what they read, the rule it becomes",
                 "weir trace node.yaml --packet 58 --port carol --after all\n"
                 "  weir trace --node edge-1 --port web --packet 020000000002020000000001080045...");
  auto options = std::make_shared<TraceOptions>();
  command.add_option("FILE", options->file, "Node file; without it, a node that runs is asked");
  command
      .add_option("--packet", options->packet, "Its number in the port's capture, from 1; or its bytes in hexadecimal")
      ->required()
      ->type_name("N|HEX");
  command.add_option("--port", options->port, "The port it comes in by (the first that reads a capture)")
      ->type_name("NAME");
  command
      .add_option("--after", options->after,
                  "Let the first so many packets of all captures pass first, up to this one; all: everything before it")
      ->type_name("N|all");
  options->node.add_to(command);
  command.add_flag("--json", options->json, "Print the explanation as JSON");
  command.callback([options, &status] { trace(*options, status); });
}

}  // namespace weir::cli
