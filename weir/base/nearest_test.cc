#include <weir/base/nearest.h>

#include <array>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr std::array<std::string_view, 5> words{"run", "workers", "count", "role", "check"};

TEST(Nearest, FindsOneSlip) {
  EXPECT_EQ(nearest("wokers", words), "workers");
  EXPECT_EQ(nearest("workerss", words), "workers");
  EXPECT_EQ(nearest("rolf", words), "role");
  EXPECT_EQ(nearest("rnu", words), "run");  // two letters swapped are one slip
  EXPECT_EQ(nearest("cuont", words), "count");
}

TEST(Nearest, LeavesWhatIsFar) {
  EXPECT_EQ(nearest("xyz", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("firewall", words), "");
  EXPECT_EQ(nearest("count", {}), "");
}

TEST(Nearest, EndsAMessage) {
  EXPECT_EQ(did_you_mean("chekc", words), ", did you mean 'check'?");
  EXPECT_EQ(did_you_mean("abc", words), "");
}

}  // namespace
}  // namespace weir
