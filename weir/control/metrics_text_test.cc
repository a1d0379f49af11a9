#include <weir/control/metrics_text.h>

#include <gmock/gmock.h>

namespace weir {
namespace {

using testing::HasSubstr;

TEST(MetricsText, EscapesLabels) {
  Summary summary;
  summary.drops.push_back({"a\"b\\c\nd", "help", 7});
  EXPECT_THAT(metrics_text(summary, {}, "no\"de", "1"),
              HasSubstr("weir_dropped_packets_total{node=\"no\\\"de\",reason=\"a\\\"b\\\\c\\nd\"} 7\n"));
}

TEST(MetricsText, HasHelpAndTypeBeforeTheSamples) {
  Summary summary;
  summary.ports.push_back({"left", 1, 2, 3, 4, 5, 6, 18'446'744'073'709'551'615U});
  EXPECT_THAT(metrics_text(summary, {}, "n", "1"),
              HasSubstr("# HELP weir_port_in_packets_total Packets that came in by the port.\n"
                        "# TYPE weir_port_in_packets_total counter\n"
                        "weir_port_in_packets_total{node=\"n\",port=\"left\"} 1\n"));
  EXPECT_THAT(metrics_text(summary, {}, "n", "1"),
              HasSubstr("weir_port_unreadable_total{node=\"n\",port=\"left\"} 18446744073709551615\n"));
}

TEST(MetricsText, GivesTimesInSeconds) {
  Summary summary;
  summary.workers.push_back({.cpu_ns = 1'500'000'000, .wall_ns = 2'000'000'000});
  EXPECT_THAT(metrics_text(summary, {}, "n", "1"),
              HasSubstr("weir_worker_cpu_seconds_total{node=\"n\",worker=\"0\"} 1.5\n"));
}

}  // namespace
}  // namespace weir
