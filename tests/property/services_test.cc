// Invariants I1, I2 and I4 with the services as they ship: firewall, switch and translation in their chains, with
// tunnels, gateways, connections and fragments, while settings, policies and links change. Each packet's bytes, port
// and drop reason, and all counters and tables, with the rule cache, without it, and by the reference engine.
//
//   service_property_test                                  a short run with fixed seeds, for CI
//   WEIR_PROPERTY_PACKETS=1000000 service_property_test    a long run
//   WEIR_PROPERTY_SEED=123 service_property_test           that scenario alone

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "service_traffic.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include <weir/base/log.h>

namespace weir::property {
namespace {

constexpr std::size_t events_each = 400;

struct Scenario {
  Settings settings;
  std::vector<Event> events;
};

Scenario make_scenario(std::uint64_t seed) {
  Random random(seed);
  Scenario scenario{Settings::random(random), {}};
  Nanoseconds now = 1'000'000'000;
  while (scenario.events.size() < events_each) {
    static constexpr Nanoseconds pauses[] = {100'000, 100'000, 2'000'000, 1'100'000'000};
    now += random.one_in(100) ? 70'000'000'000 : pauses[random.one_in(8) ? random.below(4) : 0];
    const auto number = static_cast<std::uint16_t>(random.below(policies));
    Event event;
    switch (random.below(160)) {
      case 0:
      case 1:
        event = {.kind = Event::Kind::settings, .settings = Settings::random(random)};
        break;
      case 2:
      case 3:
      case 4:
        event = {.kind = Event::Kind::apply_policy, .number = number};
        break;
      case 5:
      case 6:
      case 7:
        event = {.kind = Event::Kind::delete_policy, .number = number};
        break;
      case 8: {
        const auto port = static_cast<std::uint16_t>(random.below(6));
        scenario.events.push_back({.kind = Event::Kind::link, .number = port, .up = false});
        event = {.kind = Event::Kind::link, .number = port, .up = true};
        break;
      }
      case 9:
        event = {.kind = Event::Kind::tend};
        break;
      default:
        event = random_arrival(random);
        event.at = now;
        // Flows have more than one packet.
        for (std::uint32_t more = random.below(4); more > 0 && scenario.events.size() + 2 < events_each; --more) {
          scenario.events.push_back(event);
        }
    }
    scenario.events.push_back(std::move(event));
  }
  return scenario;
}

struct Outcome {
  std::uint64_t hits = 0;
  std::uint64_t packets = 0;
  std::map<std::string, std::uint64_t> drops;
  std::uint64_t out = 0;
};

std::optional<std::string> run(const Scenario& scenario, Outcome& outcome) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / fmt::format("weir-services-{}", ::getpid());
  std::vector<std::unique_ptr<ServiceNode>> nodes;
  for (const NodeKind kind : {NodeKind::cached, NodeKind::uncached, NodeKind::reference}) {
    nodes.push_back(std::make_unique<ServiceNode>(kind, scenario.settings, folder));
  }
  for (std::size_t i = 0; i < scenario.events.size(); ++i) {
    const Event& event = scenario.events[i];
    std::vector<Seen> seen;
    for (const auto& node : nodes) {
      if (const std::string wrong = node->happen(event); !wrong.empty()) {
        return fmt::format("event {}, {}: {}", i, event.to_string(), wrong);
      }
      seen.push_back(node->look());
    }
    static constexpr const char* others[] = {"", "without a cache", "by the reference engine"};
    for (std::size_t other = 1; other < nodes.size(); ++other) {
      if (const std::string differs = difference(seen[0], seen[other]); !differs.empty()) {
        return fmt::format("event {}, {}, cached and {}:\n{}", i, event.to_string(), others[other], differs);
      }
    }
    if (const auto lost = seen[0].numbers.at("not accounted for (I4)"); lost != 0) {
      return fmt::format("event {}, {}: {} packets not accounted for", i, event.to_string(),
                         static_cast<std::int64_t>(lost));
    }
  }
  const Summary summary = nodes[0]->summary();
  outcome.hits += summary.hits();
  outcome.packets += summary.in_packets();
  outcome.out += summary.out_packets();
  for (const auto& drop : summary.drops) {
    outcome.drops[drop.reason] += drop.packets;
  }
  nodes.clear();
  std::filesystem::remove_all(folder);
  return std::nullopt;
}

// Without what the difference does not need.
Scenario shrink(Scenario scenario) {
  Outcome ignored;
  for (std::size_t part = scenario.events.size() / 2; part > 0; part /= 2) {
    for (std::size_t from = 0; from < scenario.events.size();) {
      Scenario less = scenario;
      const auto begin = less.events.begin() + static_cast<std::ptrdiff_t>(from);
      const auto end = less.events.begin() + static_cast<std::ptrdiff_t>(std::min(from + part, less.events.size()));
      less.events.erase(begin, end);
      if (run(less, ignored)) {
        scenario = std::move(less);
      } else {
        from += part;
      }
    }
  }
  return scenario;
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(Property, Services) {
  const std::uint64_t first = number_from("WEIR_PROPERTY_SEED", 1);
  const std::uint64_t wanted = number_from("WEIR_PROPERTY_PACKETS", 12'000);
  const bool only = std::getenv("WEIR_PROPERTY_SEED") != nullptr;
  Outcome outcome;
  std::uint64_t seed = first;
  for (; outcome.packets < wanted; ++seed) {
    const Scenario scenario = make_scenario(seed);
    if (const auto difference = run(scenario, outcome)) {
      if (std::getenv("WEIR_PROPERTY_NO_SHRINK") != nullptr) {
        FAIL() << "seed " << seed << ": " << *difference;
      }
      const Scenario small = shrink(scenario);
      std::string text;
      for (const Event& event : small.events) {
        text += event.to_string() + "\n";
      }
      Outcome ignored;
      FAIL() << "seed " << seed << ": " << *difference << "\nshrunk to, with\n"
             << small.settings.node_file() << small.settings.endpoints() << "\n"
             << text << run(small, ignored).value_or("(passes)");
    }
    if (only) {
      break;
    }
  }
  std::printf("%llu packets, seeds %llu to %llu: %llu out, %.0f %% by rules\n",
              static_cast<unsigned long long>(outcome.packets), static_cast<unsigned long long>(first),
              static_cast<unsigned long long>(seed - 1), static_cast<unsigned long long>(outcome.out),
              100.0 * static_cast<double>(outcome.hits) / static_cast<double>(outcome.packets));
  for (const auto& [reason, count] : outcome.drops) {
    std::printf("  dropped: %s %llu\n", reason.c_str(), static_cast<unsigned long long>(count));
  }
  if (!only) {
    EXPECT_GT(outcome.hits * 5, outcome.packets) << "too few packets hit a rule for the test to mean anything";
    EXPECT_GT(outcome.out * 5, outcome.packets) << "too few packets leave for the test to mean anything";
  }
}

}  // namespace
}  // namespace weir::property

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("WEIR_PROPERTY_LOG") == nullptr) {
    spdlog::set_level(spdlog::level::off);
  }
  return RUN_ALL_TESTS();
}
