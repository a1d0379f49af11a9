#include <weir/flow/classifier.h>

#include <map>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>

namespace weir {

template <class A>
class ClassifierTester {
 public:
  using Rule = typename Classifier<A>::Rule;
  explicit ClassifierTester(Classifier<A>& classifier) : classifier_(classifier) {}

  void set(std::uint32_t order, const Match& match, A action) {
    classifier_.put(order, std::make_shared<const Rule>(Rule{order, match, action}));
    classifier_.publish();
  }
  void set_unpublished(std::uint32_t order, const Match& match, A action) {
    classifier_.put(order, std::make_shared<const Rule>(Rule{order, match, action}));
  }
  void publish() { classifier_.publish(); }
  void erase(std::uint32_t order) {
    classifier_.put(order, nullptr);
    classifier_.publish();
  }

  struct Found {
    const A* action;
    Key consulted;
  };
  Found lookup(const Key& key) const {
    const auto found = classifier_.lookup(key);
    return {found.action, found.consulted};
  }
  std::size_t tuples() const { return classifier_.tuples_.read().size(); }

 private:
  Classifier<A>& classifier_;
};

namespace {

constexpr std::uint64_t seed = 11;

using Rules = std::map<std::uint32_t, std::pair<Match, int>>;

const int* linear_search(const Rules& rules, const Key& key) {
  for (const auto& [order, rule] : rules) {
    if (equal_under(key, rule.first.value(), rule.first.mask())) {
      return &rule.second;
    }
  }
  return nullptr;
}

IpAddress random_address(Random& random) {
  // From a small world, so that rules and packets meet.
  static constexpr std::uint8_t bytes[] = {10, 10, 10, 192, 11, 138};
  IpAddress address;
  address.bytes[0] = bytes[random.below(6)];
  address.bytes[1] = static_cast<std::uint8_t>(random.below(4) << (random.one_in(2) ? 6U : 0U));
  address.bytes[2] = static_cast<std::uint8_t>(random.below(3));
  address.bytes[3] = static_cast<std::uint8_t>(random.below(5));
  return address;
}

std::uint16_t random_port(Random& random) {
  static constexpr std::uint16_t ports[] = {22, 53, 80, 443, 8080, 1024, 65'535};
  return random.one_in(4) ? static_cast<std::uint16_t>(random()) : ports[random.below(7)];
}

Match random_match(Random& random) {
  Match match;
  if (random.one_in(2)) {
    match.with(ip::src, IpPrefix(random_address(random), random.below(33)));
  }
  if (!random.one_in(3)) {
    match.with(ip::dst, IpPrefix(random_address(random), random.below(33)));
  }
  if (random.one_in(2)) {
    match.with(random.one_in(2) ? Layer::tcp : Layer::udp);
    if (random.one_in(2)) {
      match.with(l4::dst_port, random_port(random));
    } else if (random.one_in(2)) {
      const unsigned bits = random.below(17);
      match.with_block(l4::src_port, static_cast<std::uint16_t>(random_port(random) & (0xffffU << bits)), bits);
    }
  }
  if (random.one_in(6)) {
    match.with_ingress(PortId{static_cast<std::uint16_t>(random.below(3))});
  }
  if (random.one_in(8)) {
    match.with(vlan::id, static_cast<std::uint16_t>(random.below(3)));
  }
  return match;
}

Key random_key(Random& random) {
  PacketBuilder builder;
  if (random.one_in(6)) {
    builder.vlan(static_cast<std::uint16_t>(random.below(3)));
  }
  builder.ipv4(random_address(random).to_string(), random_address(random).to_string());
  switch (random.below(4)) {
    case 0:
      builder.udp(random_port(random), random_port(random));
      break;
    case 1:
      builder.icmp(8);
      break;
    default:
      builder.tcp(random_port(random), random_port(random));
  }
  return TestPacket(builder, static_cast<std::uint16_t>(random.below(3))).key;
}

class ClassifierTest : public ::testing::Test {
 protected:
  // What the rule for `key` does, or -1.
  int action_of(const Key& key) {
    const int* action = tester_.lookup(key).action;
    return action != nullptr ? *action : -1;
  }
  void expect_as_linear(const Rules& rules, const Key& key, Random& random) {
    const auto found = tester_.lookup(key);
    const int* expected = linear_search(rules, key);
    ASSERT_EQ(found.action != nullptr, expected != nullptr);
    if (expected != nullptr) {
      ASSERT_EQ(*found.action, *expected);
    }
    // Any key that agrees on what was consulted finds the same: another packet's, and one flipped bit by bit.
    const Key donor = random.one_in(2) ? random_key(random) : key;
    Key other;
    for (std::size_t word = 0; word < Key::words; ++word) {
      const std::uint64_t mask = found.consulted.word(word);
      const std::uint64_t noise = random.one_in(2) ? few_bits(random) : 0;
      other.set_word(word, (key.word(word) & mask) | ((donor.word(word) ^ noise) & ~mask));
    }
    ASSERT_TRUE(equal_under(other, key, found.consulted));
    const int* agreeing = linear_search(rules, other);
    ASSERT_EQ(agreeing, expected) << "consulted too little";
  }

  Epochs epochs_;
  Classifier<int> classifier_{"policies", epochs_, 1};
  ClassifierTester<int> tester_{classifier_};
  std::optional<EpochScope> scope_{std::in_place, epochs_};
};

TEST_F(ClassifierTest, EmptyFindsNothingAndConsultsNothing) {
  const auto found = tester_.lookup(TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2)).key);
  EXPECT_EQ(found.action, nullptr);
  EXPECT_TRUE(found.consulted == Key{});
}

TEST_F(ClassifierTest, TheLowestOrderDecides) {
  tester_.set(30, Match(), 3);
  tester_.set(10, Match().with(l4::dst_port, 80), 1);
  tester_.set(20, Match().with(ip::dst, *IpPrefix::parse("10.0.0.0/8")), 2);
  const auto of = [this](const PacketBuilder& builder) { return action_of(TestPacket(builder).key); };
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)), 1);
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 81)), 2);
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "11.0.0.2").tcp(1, 81)), 3);
  EXPECT_EQ(of(PacketBuilder().payload(3)), 3);
  tester_.erase(10);
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)), 2);
  tester_.set(20, Match().with(l4::dst_port, 81), 4);
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)), 3);
  EXPECT_EQ(of(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 81)), 4);
  EXPECT_EQ(classifier_.size(), 2U);
}

TEST_F(ClassifierTest, ABetterRuleSparesTheOthers) {
  tester_.set(1, Match().with(eth::src, *MacAddress::parse("02:00:00:00:00:01")), 1);
  tester_.set(2, Match().with(l4::dst_port, 80), 2);
  const auto found = tester_.lookup(TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)).key);
  EXPECT_EQ(*found.action, 1);
  EXPECT_EQ(found.consulted.dst_port, (std::array<std::uint8_t, 2>{}));
}

TEST_F(ClassifierTest, ATableIsTriedByTheBestRuleItStillHas) {
  tester_.set(1, Match().with(l4::dst_port, 443), 1);
  tester_.set(9, Match().with(l4::dst_port, 444), 9);
  tester_.set(5, Match().with(ip::protocol, 6), 5);
  tester_.erase(1);
  const auto found = tester_.lookup(TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)).key);
  EXPECT_EQ(*found.action, 5);
  EXPECT_EQ(found.consulted.dst_port, (std::array<std::uint8_t, 2>{}));
}

TEST_F(ClassifierTest, ChangesShowTogetherWhenPublished) {
  const Key key = TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)).key;
  tester_.set(5, Match().with(l4::dst_port, 80), 5);
  tester_.set_unpublished(4, Match().with(l4::dst_port, 80), 4);  // in the table that is in use
  tester_.set_unpublished(3, Match().with(ip::protocol, 6), 3);
  EXPECT_EQ(action_of(key), 5);
  tester_.publish();
  EXPECT_EQ(action_of(key), 3);
}

TEST_F(ClassifierTest, LookUpsGoOnDuringUpdates) {
  // Every version has a rule for the key, so that a look-up always finds something.
  const Key key = TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 80)).key;
  tester_.set(0, Match().with(l4::dst_port, 80), 0);
  scope_.reset();  // the reader alone keeps old versions alive
  std::atomic<bool> stop{false};
  std::atomic<unsigned> missed{0};
  std::thread reader([&] {
    Epochs::Reader& online = epochs_.add();
    online.online();
    while (!stop) {
      const auto found = tester_.lookup(key);
      missed += found.action == nullptr || *found.action < 0 ? 1 : 0;
      online.quiescent();
    }
    epochs_.remove(online);
  });
  for (std::uint32_t i = 1; i < 3'000; ++i) {
    tester_.set_unpublished(i % 7, Match().with(l4::dst_port, 80), static_cast<int>(i));
    tester_.set_unpublished(100 + i % 50, Match().with(l4::dst_port, static_cast<std::uint16_t>(i)), 1);
    tester_.publish();
    if (i > 7) {
      tester_.erase((i + 1) % 7);
    }
  }
  stop = true;
  reader.join();
  EXPECT_EQ(missed, 0U);
}

TEST_F(ClassifierTest, RulesOfManyPrefixLengthsShareTables) {
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    const IpAddress address(Ipv4Address{{10, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 3U), 0}});
    tester_.set(i, Match().with(ip::dst, IpPrefix(address, 8 + i % 25)), static_cast<int>(i));
  }
  EXPECT_LE(tester_.tuples(), 30U);
  EXPECT_EQ(classifier_.size(), 1'000U);
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    tester_.erase(i);
  }
  EXPECT_EQ(tester_.tuples(), 0U);
  EXPECT_EQ(classifier_.size(), 0U);
}

TEST_F(ClassifierTest, EqualsLinearSearchAndConsultsEnough) {
  Random random(seed);
  SCOPED_TRACE(seed);
  Rules rules;
  std::size_t hits = 0;
  for (int step = 0; step < 4'000; ++step) {
    const bool growing = step / 400 % 2 == 0;
    if (rules.empty() || (growing ? !random.one_in(5) : random.one_in(5))) {
      const std::uint32_t order = random.below(2'000);
      const Match match = random_match(random);
      tester_.set(order, match, step);
      rules[order] = {match, step};
    } else {
      auto victim = rules.begin();
      std::advance(victim, random.below(static_cast<std::uint32_t>(rules.size())));
      tester_.erase(victim->first);
      rules.erase(victim);
    }
    tester_.erase(random.below(2'000) + 10'000);  // not there
    ASSERT_EQ(classifier_.size(), rules.size());
    for (int probe = 0; probe < 10; ++probe) {
      const Key key = random_key(random);
      ASSERT_NO_FATAL_FAILURE(expect_as_linear(rules, key, random)) << "step " << step;
      hits += linear_search(rules, key) != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(hits, 5'000U);
}

TEST_F(ClassifierTest, AFullBucketFallsBackToExactMasks) {
  // Many ports behind one address: the coarse mask leaves partial ports out.
  Random random(seed + 1);
  Rules rules;
  const IpPrefix host = *IpPrefix::parse("10.0.0.0/24");
  for (std::uint32_t i = 0; i < 64; ++i) {
    const Match match =
        Match().with(ip::dst, host).with(Layer::tcp).with_block(l4::dst_port, static_cast<std::uint16_t>(4 * i), 2);
    tester_.set(i, match, static_cast<int>(i));
    rules[i] = {match, static_cast<int>(i)};
  }
  EXPECT_EQ(tester_.tuples(), 2U);
  for (std::uint16_t port = 0; port < 300; ++port) {
    const Key key = TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, port)).key;
    ASSERT_NO_FATAL_FAILURE(expect_as_linear(rules, key, random)) << port;
  }
  for (std::uint32_t i = 0; i < 64; i += 2) {
    tester_.erase(i);
    rules.erase(i);
  }
  for (std::uint16_t port = 0; port < 300; ++port) {
    const Key key = TestPacket(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").tcp(1, port)).key;
    ASSERT_NO_FATAL_FAILURE(expect_as_linear(rules, key, random)) << port;
  }
}

}  // namespace
}  // namespace weir
