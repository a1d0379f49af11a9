#include <weir/flow/prefixes.h>

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {

template <class V>
class PrefixesTester {
 public:
  explicit PrefixesTester(Prefixes<V>& prefixes) : prefixes_(prefixes) {}

  std::shared_ptr<const V> set(const IpPrefix& prefix, V value) {
    return prefixes_.put(prefix, std::make_shared<const V>(value));
  }
  std::shared_ptr<const V> erase(const IpPrefix& prefix) { return prefixes_.put(prefix, nullptr); }

  struct Found {
    const V* value;
    unsigned depth;
  };
  Found lookup(const IpAddress& address) const {
    const auto found = prefixes_.lookup(address);
    return {found.value, found.depth};
  }
  std::uint32_t generation() const { return prefixes_.state(FieldId::ip_dst).generation(); }

 private:
  Prefixes<V>& prefixes_;
};

namespace {

constexpr std::uint64_t seed = 5;

IpPrefix prefix(const char* text) { return *IpPrefix::parse(text); }
IpAddress address(const char* text) { return *IpAddress::parse(text); }

class PrefixesTest : public ::testing::Test {
 protected:
  Epochs epochs_;
  Prefixes<int> prefixes_{"routes", epochs_, 1, 2};
  PrefixesTester<int> tester_{prefixes_};
  EpochScope scope_{epochs_};
};

TEST_F(PrefixesTest, EmptyFindsNothingAndConsultsNothing) {
  for (const char* text : {"10.0.0.1", "2001:db8::1"}) {
    const auto found = tester_.lookup(address(text));
    EXPECT_EQ(found.value, nullptr);
    EXPECT_EQ(found.depth, 0U);
  }
}

TEST_F(PrefixesTest, LongestMatchDecides) {
  tester_.set(prefix("0.0.0.0/0"), 0);
  tester_.set(prefix("10.0.0.0/8"), 8);
  tester_.set(prefix("10.1.0.0/16"), 16);
  tester_.set(prefix("10.1.2.3/32"), 32);
  struct Case {
    const char* address;
    int value;
    unsigned depth;
  };
  for (const Case& c : std::initializer_list<Case>{{"10.1.2.3", 32, 32},
                                                   {"10.1.2.2", 16, 32},
                                                   {"10.1.130.3", 16, 17},
                                                   {"10.2.0.0", 8, 15},
                                                   {"10.128.0.0", 8, 9},
                                                   {"11.0.0.0", 0, 8},
                                                   {"192.168.0.1", 0, 1}}) {
    const auto found = tester_.lookup(address(c.address));
    ASSERT_NE(found.value, nullptr) << c.address;
    EXPECT_EQ(*found.value, c.value) << c.address;
    EXPECT_EQ(found.depth, c.depth) << c.address;
  }
  EXPECT_EQ(tester_.lookup(address("2001:db8::1")).value, nullptr) << "families are apart";
}

TEST_F(PrefixesTest, ADefaultRouteConsultsNothing) {
  tester_.set(prefix("::/0"), 1);
  const auto found = tester_.lookup(address("2001:db8::1"));
  ASSERT_NE(found.value, nullptr);
  EXPECT_EQ(*found.value, 1);
  EXPECT_EQ(found.depth, 0U);
}

TEST_F(PrefixesTest, SizeCountsEntries) {
  EXPECT_EQ(tester_.set(prefix("10.0.0.0/8"), 1), nullptr);
  EXPECT_EQ(tester_.set(prefix("::/0"), 2), nullptr);
  EXPECT_EQ(prefixes_.size(), 2U);
  EXPECT_EQ(*tester_.set(prefix("10.0.0.0/8"), 3), 1);
  EXPECT_EQ(prefixes_.size(), 2U);
  EXPECT_EQ(tester_.erase(prefix("10.0.0.0/9")), nullptr);
  EXPECT_EQ(prefixes_.size(), 2U);
  EXPECT_EQ(*tester_.erase(prefix("10.0.0.0/8")), 3);
  EXPECT_EQ(prefixes_.size(), 1U);
  EXPECT_EQ(*tester_.erase(prefix("::/0")), 2);
  EXPECT_EQ(prefixes_.size(), 0U);
}

TEST_F(PrefixesTest, EveryChangeMovesTheGenerationOn) {
  const std::uint32_t before = tester_.generation();
  tester_.set(prefix("10.0.0.0/8"), 1);
  EXPECT_EQ(tester_.generation(), before + 1);
  tester_.erase(prefix("10.0.0.0/8"));
  EXPECT_EQ(tester_.generation(), before + 2);
}

// Addresses near the prefixes in use, so that look-ups get deep.
IpAddress random_address(Random& random, bool v6, const std::map<IpPrefix, int>& entries) {
  IpAddress result;
  result.v6 = v6;
  if (!entries.empty() && !random.one_in(4)) {
    auto near = entries.begin();
    std::advance(near, random.below(static_cast<std::uint32_t>(entries.size())));
    if (near->first.address.v6 == v6) {
      result = near->first.address;
      const unsigned bit = random.below(result.bits());
      result.bytes[bit / 8] = static_cast<std::uint8_t>(result.bytes[bit / 8] ^ (0x80U >> bit % 8));
      if (random.one_in(2)) {
        result.bytes[result.bits() / 8 - 1] = static_cast<std::uint8_t>(random());
      }
      return result;
    }
  }
  for (unsigned i = 0; i < result.bits() / 8; ++i) {
    result.bytes[i] = static_cast<std::uint8_t>(random());
  }
  return result;
}

const int* linear_search(const std::map<IpPrefix, int>& entries, const IpAddress& of) {
  const int* best = nullptr;
  int longest = -1;
  for (const auto& [entry, value] : entries) {
    if (entry.contains(of) && entry.length > longest) {
      longest = entry.length;
      best = &value;
    }
  }
  return best;
}

TEST_F(PrefixesTest, EqualsLinearSearchAndConsultsEnough) {
  Random random(seed);
  SCOPED_TRACE(seed);
  std::map<IpPrefix, int> entries;
  unsigned saved = 0;
  unsigned lookups = 0;
  for (int step = 0; step < 6'000; ++step) {
    const bool growing = step / 500 % 2 == 0;
    if (entries.empty() || (growing ? !random.one_in(4) : random.one_in(4))) {
      const bool v6 = random.one_in(2);
      const IpAddress base = random_address(random, v6, entries);
      // Long and short prefixes, and all in between.
      const unsigned length = random.one_in(20) ? 0 : random.below(base.bits() + 1);
      const IpPrefix added(base, length);
      const auto before = tester_.set(added, step);
      const auto place = entries.find(added);
      ASSERT_EQ(before != nullptr, place != entries.end());
      if (before != nullptr) {
        ASSERT_EQ(*before, place->second);
      }
      entries[added] = step;
    } else {
      auto victim = entries.begin();
      std::advance(victim, random.below(static_cast<std::uint32_t>(entries.size())));
      const auto before = tester_.erase(victim->first);
      ASSERT_NE(before, nullptr);
      ASSERT_EQ(*before, victim->second);
      entries.erase(victim);
    }
    ASSERT_EQ(prefixes_.size(), entries.size());
    for (int probe = 0; probe < 8; ++probe) {
      const IpAddress of = random_address(random, random.one_in(2), entries);
      const auto found = tester_.lookup(of);
      const int* expected = linear_search(entries, of);
      ASSERT_EQ(found.value != nullptr, expected != nullptr) << of.to_string();
      if (expected != nullptr) {
        ASSERT_EQ(*found.value, *expected) << of.to_string();
      }
      ASSERT_LE(found.depth, of.bits());
      saved += of.bits() - found.depth;
      ++lookups;
      for (int agreeing = 0; agreeing < 4; ++agreeing) {
        IpAddress other = random_address(random, of.v6, entries);
        const IpPrefix shared(of, found.depth);
        for (unsigned bit = 0; bit < found.depth; ++bit) {
          const auto one = static_cast<std::uint8_t>(0x80U >> bit % 8);
          other.bytes[bit / 8] = static_cast<std::uint8_t>((other.bytes[bit / 8] & ~one) | (of.bytes[bit / 8] & one));
        }
        ASSERT_TRUE(shared.contains(other));
        ASSERT_EQ(tester_.lookup(other).value, found.value) << of.to_string() << " and " << other.to_string();
      }
    }
  }
  EXPECT_GT(saved / lookups, 10U) << "look-ups consult nearly whole addresses";
}

TEST_F(PrefixesTest, OrderOfInsertionDoesNotMatter) {
  Random random(seed + 1);
  for (int round = 0; round < 200; ++round) {
    std::vector<IpPrefix> list;
    for (int i = 0; i < 20; ++i) {
      IpAddress base;
      for (unsigned byte = 0; byte < 4; ++byte) {
        base.bytes[byte] = static_cast<std::uint8_t>(random.below(4) << 6U);
      }
      list.emplace_back(base, random.below(33));
    }
    std::ranges::sort(list);
    const auto [from, to] = std::ranges::unique(list);
    list.erase(from, to);
    Prefixes<int> forward("forward", epochs_, 1, 2);
    Prefixes<int> shuffled("shuffled", epochs_, 1, 2);
    for (std::size_t i = 0; i < list.size(); ++i) {
      PrefixesTester<int>(forward).set(list[i], static_cast<int>(i));
    }
    std::vector<std::size_t> order(list.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1))]);
    }
    const IpPrefix gone(IpAddress(Ipv4Address{{1, 2, 3, 4}}), 30);
    PrefixesTester<int>(shuffled).set(gone, -1);
    for (const std::size_t i : order) {
      PrefixesTester<int>(shuffled).set(list[i], static_cast<int>(i));
    }
    PrefixesTester<int>(shuffled).erase(gone);
    for (int probe = 0; probe < 100; ++probe) {
      IpAddress of;
      for (unsigned byte = 0; byte < 4; ++byte) {
        of.bytes[byte] = static_cast<std::uint8_t>(random());
      }
      const auto a = PrefixesTester<int>(forward).lookup(of);
      const auto b = PrefixesTester<int>(shuffled).lookup(of);
      ASSERT_EQ(a.value == nullptr, b.value == nullptr);
      if (a.value != nullptr) {
        ASSERT_EQ(*a.value, *b.value);
      }
      ASSERT_EQ(a.depth, b.depth) << "the trie has one shape";
    }
  }
}

}  // namespace
}  // namespace weir
