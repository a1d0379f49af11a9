#include <gtest/gtest.h>

#include <weir/control/rule_text.h>
#include <weir/control/summary_text.h>

namespace weir {
namespace {

TEST(SummaryRead, ReadsWhatWasWritten) {
  Summary s;
  s.ports.push_back({"left", 1, 2, 3, 4, 5, 0xfedcba9876543210U, 7});
  s.stages.push_back({"scan", true, 8, 9, 10});
  s.drops.push_back({"reason", "help", 11});
  s.workers.push_back({12, 13});
  s.counters.push_back({"counter", 14, 15});
  s.tables.push_back({"macs", 16, 17, 18});
  s.exact_hits = 19;
  s.hints_evicted = 20;
  s.consumed = 22;
  s.held = 21;
  s.wall_ns = 22;
  const std::string json = summary_json(s);
  const auto read = read_summary(json);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(summary_json(*read), json);
  EXPECT_EQ(summary_text(*read), summary_text(s));
}

TEST(SummaryRead, SaysThatItIsNotUnderstood) {
  EXPECT_NE(read_summary("{\"ports\": [{\"name\": 1}]}").error().message.find("of another version"), std::string::npos);
  EXPECT_FALSE(read_summary("hello").has_value());
  EXPECT_FALSE(read_rules("{}").has_value());
}

}  // namespace
}  // namespace weir
