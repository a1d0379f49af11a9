// How long a change of one network policy takes, from the call to its return (the file is read, the policies' endpoints
// are found, the state is updated, every worker has passed), with 10,000 policies and 1,000 endpoints, while the worker
// forwards at half a million packets a second. On a busy machine, look at the processor time of the calling thread.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "measure.h"
#include <fmt/format.h>

#include <weir/service/firewall/firewall.h>

namespace weir::bench {
namespace {

namespace fs = std::filesystem;

constexpr unsigned policies = 10'000;
constexpr unsigned endpoints = 1'000;
constexpr unsigned namespaces = 20;
constexpr int changes = 200;

std::string policy_text(const std::string& in, const std::string& name, const std::string& selector) {
  return fmt::format(
      "---\n"
      "apiVersion: networking.k8s.io/v1\n"
      "kind: NetworkPolicy\n"
      "metadata: {{name: {}, namespace: {}}}\n"
      "spec:\n"
      "  podSelector: {}\n"
      "  policyTypes: [Ingress, Egress]\n"
      "  ingress:\n"
      "  - from: [{{namespaceSelector: {{matchLabels: {{team: t1}}}}, podSelector: {{matchLabels: {{app: a1}}}}}}]\n"
      "    ports: [{{port: 80}}, {{port: 443}}]\n"
      "  egress:\n"
      "  - to: [{{ipBlock: {{cidr: 0.0.0.0/0}}}}]\n",
      name, in, selector);
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// Endpoints in namespaces n0, n1, ..., of which each has an app of its own; the first is behind the port `in`.
std::string endpoints_text() {
  std::string text = "weir_endpoints: 1\nnamespaces:\n";
  for (unsigned i = 0; i < namespaces; ++i) {
    text += fmt::format("  n{}: {{team: t{}}}\n", i, i % 5);
  }
  text += "endpoints:\n";
  for (unsigned i = 0; i < endpoints; ++i) {
    text += fmt::format("  n{}/e{}: {{{}labels: {{app: a{}, all: 'yes'}}, addresses: [10.9.{}.{}]}}\n", i % namespaces,
                        i, i == 0 ? "port: in, " : "", i / namespaces, i / 250, i % 250 + 1);
  }
  return text;
}

struct Bench {
  explicit Bench(const fs::path& where, const std::string& all) : folder(where) {
    write(folder / "endpoints.yaml", endpoints_text());
    write(folder / "policies.yaml", all);
    NodeOptions options;
    options.idle = Idle::poll;
    node = std::move(*Node::create(options));
    const auto in = *node->add_port("in", "memory:flows=1000,rate=500000");
    const auto out = *node->add_port("out", "memory:", {.role = PortRole::uplink});
    const auto settings = Config::parse("{policies: [policies.yaml], endpoints: endpoints.yaml}", "bench");
    const Nanoseconds before = SystemClock::read();
    auto built = build_service(*node, firewall(), *settings, folder);
    if (!built) {
      fmt::print("{}\n", built.error().message);
      std::exit(1);
    }
    service = std::move(*built);
    fmt::print("read and built in {:.0f} ms\n", static_cast<double>(SystemClock::read() - before) * 1e-6);
    Graph& graph = node->graph();
    const FlowStage& end = graph.stage("out", [out](Flow& flow) { return flow.output(out); });
    graph.connect(in, service->stages().entry);
    graph.connect(out, service->stages().entry);
    graph.connect(*service->stages().exit, end);
    (void)node->start();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }

  fs::path folder;
  std::unique_ptr<Node> node;
  std::unique_ptr<Service> service;
};

/// Milliseconds.
struct Times {
  std::vector<double> wall;
  std::vector<double> cpu;
};

void time_call(Bench& bench, const char* call, const Json& arguments, Times& times) {
  const Nanoseconds before = SystemClock::read();
  const std::uint64_t cpu_before = thread_cpu_ns();
  const auto done = bench.service->call(call, arguments);
  times.cpu.push_back(static_cast<double>(thread_cpu_ns() - cpu_before) * 1e-6);
  times.wall.push_back(static_cast<double>(SystemClock::read() - before) * 1e-6);
  if (!done) {
    fmt::print("{}\n", done.error().message);
    std::exit(1);
  }
}

std::string figures(Times& times) {
  std::ranges::sort(times.wall);
  std::ranges::sort(times.cpu);
  const auto at = [](const std::vector<double>& sorted, std::size_t percent) {
    return sorted[sorted.size() * percent / 100];
  };
  return fmt::format("{:>7.3f} {:>7.3f} {:>7.3f}  {:>7.3f} {:>7.3f}", at(times.wall, 50), at(times.wall, 99),
                     times.wall.back(), at(times.cpu, 50), at(times.cpu, 99));
}

/// Adds a policy and removes it, again and again.
void run(Bench& bench, const char* name, const std::string& text, const std::string& key) {
  const OutOfTheWay out_of_the_way;
  const fs::path file = bench.folder / "one.yaml";
  write(file, text);
  Times adding;
  Times removing;
  for (int i = 0; i < changes; ++i) {
    time_call(bench, "apply", {{"files", {file.string()}}}, adding);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    time_call(bench, "delete", {{"name", key}}, removing);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  fmt::print("{:34} {}   {}\n", name, figures(adding), figures(removing));
}

void run_all(Bench& bench) {
  const std::string columns = fmt::format("{:>7} {:>7} {:>7}  {:>7} {:>7}", "p50", "p99", "most", "cpu p50", "p99");
  fmt::print("{:34} {}   {}\n", "milliseconds to add and to remove", columns, columns);
  run(bench, "about one endpoint", policy_text("n0", "one", "{matchLabels: {app: a0}}"), "n0/one");
  run(bench, "about a namespace's 50", policy_text("n0", "one", "{}"), "n0/one");
  run(bench, "about nobody", policy_text("n0", "one", "{matchLabels: {app: none}}"), "n0/one");
  run(bench, "AdminNetworkPolicy about all 1,000",
      "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: one}\nspec: "
      "{priority: "
      "5, subject: {namespaces: {}}, ingress: [{action: Deny, from: [{namespaces: {matchLabels: {team: t4}}}]}]}\n",
      "one");
  fmt::print("noise: {:.3f} ns a step\n\n", noise_ns());
}

}  // namespace
}  // namespace weir::bench

int main() {
  using namespace weir;
  using namespace weir::bench;
  const fs::path folder = fs::temp_directory_path() / fmt::format("weir-policy-bench-{}", getpid());
  fs::create_directory(folder);
  std::string each;
  std::string everyone;
  for (unsigned i = 0; i < policies; ++i) {
    const std::string in = fmt::format("n{}", i % namespaces);
    each += policy_text(in, fmt::format("p{}", i), fmt::format("{{matchLabels: {{app: a{}}}}}", i / namespaces % 50));
    everyone += policy_text(in, fmt::format("p{}", i), "{}");
  }
  {
    fmt::print("{} policies, each about one of {} endpoints: ", policies, endpoints);
    Bench bench(folder, each);
    run_all(bench);
  }
  {
    fmt::print("{} policies, each about all endpoints of its namespace: ", policies);
    Bench bench(folder, everyone);
    run_all(bench);
  }
  fs::remove_all(folder);
}
