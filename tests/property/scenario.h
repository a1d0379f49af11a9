#pragma once
// A sequence of batches, updates and clock steps, made from a seed, that instances are run through side by side.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "subject.h"

namespace weir::property {

/// One control change, as plain data. Those from `members` on are resolved when a packet leaves.
struct Change {
  enum class What : std::uint8_t {
    set_entry,
    erase_entry,
    set_route,
    erase_route,
    set_rule,
    erase_rule,
    set_version,
    members,
    domain,
    delivery,
    path
  };
  What what;
  std::uint32_t object = 0;
  std::uint64_t random = 0;  ///< the rest follows from it
};

struct ScenarioStep {
  enum class What : std::uint8_t { batch, update, clock, during };
  What what;
  unsigned worker = 0;
  PortId port;
  std::vector<Frame> frames;
  std::vector<Change> changes;
  Nanoseconds advance = 0;
};

struct Scenario {
  std::uint64_t seed = 0;
  unsigned workers = 1;
  std::uint32_t rule_cache = 256;
  std::size_t masks = RuleCache::mask_limit;
  Nanoseconds idle_timeout = 10'000'000'000;
  std::vector<Program> programs;  ///< by stage; the packet stage's is not used
  std::vector<ScenarioStep> steps;

  [[nodiscard]] std::size_t packets() const;
  [[nodiscard]] std::string to_string() const;
};

Scenario make_scenario(std::uint64_t seed, unsigned workers);

struct Outcome {
  std::uint64_t cached_packets = 0;  ///< that a rule handled
  std::size_t masks = 0;
};

/// Runs the scenario on a cached, an uncached and a reference instance; what differs, in words.
std::optional<std::string> run(const Scenario& scenario, Outcome& outcome);

/// The smallest scenario found that still fails.
Scenario shrink(Scenario scenario);

}  // namespace weir::property
