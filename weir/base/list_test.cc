#include <weir/base/list.h>

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

struct Item : ListHook {
  explicit Item(int number) : value(number) {}
  int value;
};

std::vector<int> values(const List<Item>& list) {
  std::vector<int> all;
  for (const Item* item = list.front(); item != nullptr; item = list.next(*item)) {
    all.push_back(item->value);
  }
  return all;
}

TEST(List, KeepsOrder) {
  List<Item> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  Item a(1);
  Item b(2);
  Item c(3);
  list.push_back(a);
  list.push_back(b);
  list.push_back(c);
  EXPECT_EQ(values(list), (std::vector{1, 2, 3}));
  b.unlink();
  EXPECT_FALSE(b.linked());
  EXPECT_EQ(values(list), (std::vector{1, 3}));
  list.push_back(a);
  EXPECT_EQ(values(list), (std::vector{3, 1}));
  EXPECT_EQ(list.pop_front(), &c);
  EXPECT_EQ(values(list), (std::vector{1}));
}

TEST(List, ElementsLeaveWhenTheyEndAndAreFreeWhenTheListEnds) {
  Item lasting(2);
  {
    List<Item> list;
    std::optional<Item> passing(std::in_place, 1);
    list.push_back(*passing);
    list.push_back(lasting);
    passing.reset();
    EXPECT_EQ(values(list), (std::vector{2}));
  }
  EXPECT_FALSE(lasting.linked());
}

TEST(List, TakesAnother) {
  Item a(1);
  Item b(2);
  Item c(3);
  List<Item> to;
  List<Item> from;
  to.take(from);
  EXPECT_TRUE(to.empty());
  to.push_back(a);
  from.push_back(b);
  from.push_back(c);
  to.take(from);
  EXPECT_TRUE(from.empty());
  EXPECT_EQ(values(to), (std::vector{1, 2, 3}));
  from.take(to);
  EXPECT_EQ(values(from), (std::vector{1, 2, 3}));
}

}  // namespace
}  // namespace weir
