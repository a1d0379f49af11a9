// An example as a program of its own: SERVICE [setting=value ...] DEVICE DEVICE ...
//
// The devices become ports p0, p1, ...; it runs until their input ends or SIGINT, and prints what it counted. A service
// that passes packets on (a firewall) gets a stage behind it that sends them to every other port.

#include <csignal>
#include <cstdio>

#include <examples/services.h>

#include <weir/control/summary_text.h>

using namespace weir;

namespace {

Node* running = nullptr;

int usage(const ServiceKind& kind) {
  fmt::print(stderr, "usage: {} [setting=value ...] DEVICE DEVICE ...\n{}\n\nsettings:\n", kind.name, kind.help);
  for (const Setting& setting : kind.settings) {
    fmt::print(stderr, "  {:12} {}{}\n", setting.name, setting.help,
               setting.required ? " (required)" : fmt::format(" ({})", setting.otherwise));
  }
  fmt::print(stderr, "\nexample: {} ... pcap:in.pcap pcap:,out=out.pcap\n", kind.name);
  return 2;
}

Result<> run(const ServiceKind& kind, const std::vector<std::string>& devices, const Config& settings) {
  auto node = Node::create();
  if (!node) {
    return std::unexpected(node.error());
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (auto port = (*node)->add_port(fmt::format("p{}", i), devices[i]); !port) {
      return std::unexpected(port.error());
    }
  }
  const auto service = build_service(**node, kind, settings, "");
  if (!service) {
    return std::unexpected(service.error());
  }
  const ServiceStages& stages = (*service)->stages();
  Graph& graph = (*node)->graph();
  for (std::uint16_t i = 0; i < devices.size(); ++i) {
    graph.connect(PortId{i}, stages.entry);
  }
  if (stages.exit) {
    graph.connect(*stages.exit, graph.stage("everywhere", [](Flow& flow) { return flow.flood(); }));
  }
  running = node->get();
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, [](int) { running->stop(); });
  }
  const auto ran = (*node)->run();
  fmt::print("{}", summary_text((*node)->summary()));
  return ran;
}

}  // namespace

int main(int argc, char** argv) {
  const ServiceKind kind = examples::SERVICE();
  std::vector<std::string> devices;
  std::vector<Config::Entry> settings;
  for (const std::string argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    const std::size_t equals = argument.find('=');
    if (equals > argument.find(':')) {
      devices.push_back(argument);
      continue;
    }
    const Config::Place place{std::make_shared<std::string>(fmt::format("setting '{}'", argument.substr(0, equals)))};
    auto value = Config::parse_argument(std::string_view(argument).substr(std::min(equals, argument.size() - 1) + 1),
                                        *place.name);
    if (!value) {
      fmt::print(stderr, "{}: {}\n", kind.name, value.error().message);
      return 2;
    }
    settings.push_back({Config::scalar(place, argument.substr(0, equals)), argument.substr(0, equals), *value});
  }
  const Config config = Config::map({std::make_shared<std::string>("settings")}, std::move(settings));
  if (devices.size() < 2) {
    return usage(kind);
  }
  if (auto checked = check_settings(kind.name, kind.settings, config); !checked) {
    fmt::print(stderr, "{}: {}\n", kind.name, checked.error().message);
    return 2;
  }
  if (auto done = run(kind, devices, config); !done) {
    fmt::print(stderr, "{}: {}\n", kind.name, done.error().message);
    return 1;
  }
  return 0;
}
