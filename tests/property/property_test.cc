// Invariants I1, I2 and I4 by random programs over random packets and updates.
//
//   property_test                                  a short run with fixed seeds, for CI
//   WEIR_PROPERTY_PACKETS=1000000 property_test    a long run
//   WEIR_PROPERTY_SEED=123 property_test           that scenario alone

#include <cstdio>
#include <cstdlib>

#include "scenario.h"
#include <gtest/gtest.h>

#include <weir/base/log.h>

namespace weir::property {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

void run_scenarios(unsigned workers, std::uint64_t first_seed, std::size_t packets_wanted) {
  Outcome outcome;
  std::size_t packets = 0;
  std::uint64_t seed = first_seed;
  const bool only = std::getenv("WEIR_PROPERTY_SEED") != nullptr;
  for (; packets < packets_wanted; ++seed) {
    const Scenario scenario = make_scenario(seed, workers);
    packets += scenario.packets();
    if (const auto difference = run(scenario, outcome)) {
      if (std::getenv("WEIR_PROPERTY_NO_SHRINK") != nullptr) {
        FAIL() << "seed " << seed << ": " << *difference;
      }
      const Scenario small = shrink(scenario);
      Outcome ignored;
      FAIL() << "seed " << seed << " with " << workers << " worker(s): " << *difference << "\nshrunk to:\n"
             << small.to_string() << run(small, ignored).value_or("(passes)");
    }
    if (only) {
      break;
    }
  }
  std::printf("%zu packets, seeds %llu to %llu, %u worker(s): %.0f %% handled by cached rules, at most %zu masks\n",
              packets, static_cast<unsigned long long>(first_seed), static_cast<unsigned long long>(seed - 1), workers,
              100.0 * static_cast<double>(outcome.cached_packets) / static_cast<double>(packets), outcome.masks);
  if (!only) {
    EXPECT_GT(outcome.cached_packets * 5, packets) << "too few packets hit a rule for the test to mean anything";
  }
}

TEST(Property, OneWorker) {
  run_scenarios(1, number_from("WEIR_PROPERTY_SEED", 1), number_from("WEIR_PROPERTY_PACKETS", 60'000));
}

TEST(Property, TwoWorkersOnAFixedSchedule) {
  run_scenarios(2, number_from("WEIR_PROPERTY_SEED", 1'000'001), number_from("WEIR_PROPERTY_PACKETS", 60'000) / 2);
}

}  // namespace
}  // namespace weir::property

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("WEIR_PROPERTY_LOG") == nullptr) {
    spdlog::set_level(spdlog::level::off);  // random programs make programming errors by design
  }
  return RUN_ALL_TESTS();
}
