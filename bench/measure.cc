#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "measure.h"
#include <time.h>

namespace weir::bench {

std::uint64_t thread_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

OutOfTheWay::OutOfTheWay() {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof before_, &before_);
  for (unsigned cpu = CPU_SETSIZE; cpu-- > 0;) {
    if (CPU_ISSET(cpu, &before_)) {
      cpu_set_t last;
      CPU_ZERO(&last);
      CPU_SET(cpu, &last);
      sched_setaffinity(0, sizeof last, &last);
      return;
    }
  }
}

OutOfTheWay::~OutOfTheWay() { sched_setaffinity(0, sizeof before_, &before_); }

namespace {

struct Sample {
  std::uint64_t at, packets, handled, cpu, hits, probes, misses;
};

Sample sample(Node& node, PortId port) {
  const Summary s = node.summary();
  Sample result{SystemClock::read(), s.ports[port.number].out_packets, s.in_packets(), 0, s.hits(), s.probes, s.misses};
  for (const auto& worker : s.workers) {
    result.cpu += worker.cpu_ns;
  }
  return result;
}

}  // namespace

Rate measure(Node& node, PortId port, unsigned warm_ms, unsigned window_ms) {
  const OutOfTheWay out_of_the_way;
  std::this_thread::sleep_for(std::chrono::milliseconds(warm_ms));
  std::array<Rate, 5> rates;
  Sample before = sample(node, port);
  for (Rate& rate : rates) {
    std::this_thread::sleep_for(std::chrono::milliseconds(window_ms));
    const Sample after = sample(node, port);
    const auto packets = static_cast<double>(after.packets - before.packets);
    const auto handled = std::max(1.0, static_cast<double>(after.handled - before.handled));
    const auto wall = static_cast<double>(after.at - before.at);
    const auto cpu = static_cast<double>(after.cpu - before.cpu);
    rate.mpps = packets / wall * 1e3;
    rate.ns = cpu / std::max(1.0, packets);
    rate.cpu_share = cpu / wall / static_cast<double>(node.workers().size());
    rate.hits = static_cast<double>(after.hits - before.hits) / handled;
    rate.probes = static_cast<double>(after.probes - before.probes) / handled;
    rate.misses = static_cast<double>(after.misses - before.misses) / handled;
    before = after;
  }
  std::ranges::sort(rates, {}, &Rate::mpps);
  Rate median = rates[2];
  const Summary s = node.summary();
  median.rules = s.rules;
  median.masks = s.masks;
  return median;
}

double noise_ns() {
  constexpr std::uint64_t steps = 50'000'000;
  const std::uint64_t before = SystemClock::read();
  std::uint64_t x = 1;
  for (std::uint64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
  }
  volatile std::uint64_t keep = x;
  (void)keep;
  return static_cast<double>(SystemClock::read() - before) / static_cast<double>(steps);
}

}  // namespace weir::bench
