#include <weir/base/descriptor.h>

#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

bool open_now(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Descriptor, ClosesWhatItOwns) {
  int number = -1;
  {
    const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(null);
    number = null.get();
    EXPECT_TRUE(open_now(number));
  }
  EXPECT_FALSE(open_now(number));
  EXPECT_FALSE(Descriptor());
}

TEST(Descriptor, MovesAndGivesAway) {
  Descriptor a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = a.get();
  Descriptor b(std::move(a));
  EXPECT_EQ(b.get(), number);
  Descriptor c(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int replaced = c.get();
  c = std::move(b);
  EXPECT_EQ(c.get(), number);
  EXPECT_FALSE(open_now(replaced));
  EXPECT_EQ(c.release(), number);
  EXPECT_FALSE(c);
  EXPECT_TRUE(open_now(number));
  Descriptor(number).reset();
  EXPECT_FALSE(open_now(number));
}

}  // namespace
}  // namespace weir
