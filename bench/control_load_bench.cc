// What a worker at work loses while its node is asked: 65,536 rules cached, with and without clients that scrape the
// metrics ten times a second, watch the statistics, list rules once a second, and 1,000 that hold idle connections; ten
// times in turn.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "calibration.h"
#include "measure.h"
#include "workloads.h"
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <weir/control/control_client.h>
#include <weir/control/control_server.h>

namespace weir::bench {
namespace {

using namespace std::chrono_literals;

constexpr unsigned flows = 65'536;
constexpr unsigned watchers = 4;
constexpr unsigned idle_clients = 1000;
constexpr unsigned scrapes_a_second = 10;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

template <class T>
T taken(Result<T> result) {
  if (!result) {
    give_up(result.error().message);
  }
  return std::move(*result);
}

Descriptor connect(const std::filesystem::path& path) { return taken(connect_control(path)); }

/// Everything that asks, for as long as it lives.
class Load {
 public:
  explicit Load(const std::filesystem::path& path) : path_(path) {
    for (unsigned i = 0; i < idle_clients; ++i) {
      idle_.push_back(connect(path_));
    }
    for (unsigned i = 0; i < watchers; ++i) {
      const std::string request = "GET /v1/watch/stats?interval=1000 HTTP/1.1\r\nHost: x\r\n\r\n";
      watching_.push_back(connect(path_));
      if (::send(watching_.back().get(), request.data(), request.size(), 0) < 0) {
        give_up("a watcher cannot ask");
      }
    }
    thread_ = std::thread([this] { ask(); });
  }
  ~Load() {
    done_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  [[nodiscard]] unsigned asked() const { return asked_; }

 private:
  void ask() {
    const OutOfTheWay out_of_the_way;  // the clients are not what is measured
    auto next = std::chrono::steady_clock::now();
    for (unsigned i = 0; !done_; ++i, next += 1000ms / scrapes_a_second) {
      std::this_thread::sleep_until(next);
      (void)taken(ask_control(path_, {"/metrics"}));
      if (i % scrapes_a_second == 0) {
        (void)taken(ask_control(path_, {"/v1/rules?limit=50"}));
      }
      for (const Descriptor& watcher : watching_) {
        std::array<char, 1U << 16U> events;
        while (::recv(watcher.get(), events.data(), events.size(), MSG_DONTWAIT) > 0) {
        }
      }
      ++asked_;
    }
  }

  std::filesystem::path path_;
  std::vector<Descriptor> idle_;
  std::vector<Descriptor> watching_;
  std::atomic<bool> done_{false};
  std::atomic<unsigned> asked_{0};
  std::thread thread_;
};

/// Packets through the first port, per microsecond of time and of the worker's processor time: the second leaves out
/// what other programs took from it.
struct Rate {
  double wall = 0, cpu = 0;
};
Rate measure(const Node& node) {
  const OutOfTheWay out_of_the_way;
  const Port& port = node.port(*node.find_port("in"));
  struct Now {
    std::uint64_t packets, time, cpu;
  };
  const auto now = [&] {
    return Now{port.sum(&PortCounters::in_packets), SystemClock::read(), node.workers()[0]->cpu_time()};
  };
  const Now before = now();
  std::this_thread::sleep_for(2s);
  const Now after = now();
  const auto per = [&](std::uint64_t Now::* of) {
    return static_cast<double>(after.packets - before.packets) * 1e3 / static_cast<double>(after.*of - before.*of);
  };
  return {per(&Now::time), per(&Now::cpu)};
}

/// A rule for each flow, and all to the port `out`.
Result<std::unique_ptr<Service>> build_per_flow(ServiceContext& context) {
  const FlowStage& stage = context.node.graph().add<PerFlow>(context.name(), *context.node.find_port("out"));
  return std::make_unique<Service>(ServiceStages{stage, {}});
}

std::unique_ptr<ManagedNode> build() {
  ServiceRegistry registry;
  registry.add({"per_flow", "a rule for each flow", {}, build_per_flow});
  const auto file = taken(NodeFile::parse(fmt::format(R"(
weir: 1
workers: {{idle: poll}}
ports: {{in: "memory:flows={},order=random", out: "memory:"}}
services: {{per_flow: {{}}}})",
                                                      flows),
                                          "bench", ".", registry));
  auto node = taken(ManagedNode::build(file));
  if (auto started = node->node().start(); !started) {
    give_up(started.error().message);
  }
  return node;
}

void run() {
  const auto managed = build();
  Node& node = managed->node();
  const auto path = std::filesystem::temp_directory_path() / fmt::format("weir-bench-{}.sock", ::getpid());
  const auto server = taken(ControlServer::start(*managed, taken(ControlSocket::listen(path))));
  std::this_thread::sleep_for(1s);  // until all rules are there
  fmt::print("{} rules, one worker; Mpps of time, and of the worker's processor time; asked {} times a second\n\n",
             node.summary().rules, scrapes_a_second);
  fmt::print("{:>4} {:>7} {:>7} {:>6}   {:>7} {:>7} {:>6} {:>8}\n", "", "alone", "asked", "ratio", "alone", "asked",
             "ratio", "scrapes");
  std::array<std::vector<double>, 2> ratios;
  for (int i = 1; i <= 10; ++i) {
    const Rate alone = measure(node);
    Rate asked;
    unsigned times = 0;
    {
      const Load load(path);
      asked = measure(node);
      times = load.asked();
    }
    ratios[0].push_back(asked.wall / alone.wall);
    ratios[1].push_back(asked.cpu / alone.cpu);
    fmt::print("{:>4} {:>7.2f} {:>7.2f} {:>6.3f}   {:>7.2f} {:>7.2f} {:>6.3f} {:>8}\n", i, alone.wall, asked.wall,
               ratios[0].back(), alone.cpu, asked.cpu, ratios[1].back(), times);
  }
  for (auto& of : ratios) {
    std::ranges::sort(of);
  }
  fmt::print("\nmedian ratios {:.3f} and {:.3f} (aim >= 0.98)\n", (ratios[0][4] + ratios[0][5]) / 2,
             (ratios[1][4] + ratios[1][5]) / 2);
}

}  // namespace
}  // namespace weir::bench

int main() {
  using namespace weir::bench;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  fmt::print("noise: {:.3f} ns a step; bare loop: {:.1f} ns a packet\n\n", noise_ns(), calibrate(1024).forward_ns);
  run();
  fmt::print("\nnoise: {:.3f} ns a step; bare loop: {:.1f} ns a packet\n", noise_ns(), calibrate(1024).forward_ns);
}
