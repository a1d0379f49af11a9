// Random decisions: what a rule says must hold for every packet that it matches, and for as long as it is valid.

#include <functional>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/flow/internal/test_decision.h>
#include <weir/flow/traced_flow.h>
#include <weir/flow/update.h>

namespace weir {
namespace {

struct Shared {
  explicit Shared(State& state)
      : table(state.table<std::uint32_t, std::uint32_t>("table", {.capacity = 64})),
        routes(state.prefixes<int>("routes")),
        policies(state.classifier<int>("policies")),
        mode(state.versioned<std::uint32_t>("mode", 0)) {}

  Table<std::uint32_t, std::uint32_t>& table;
  Prefixes<int>& routes;
  Classifier<int>& policies;
  Versioned<std::uint32_t>& mode;
};

// Everything that a decision has seen, so that the smallest difference shows in its outcome.
class Digest {
 public:
  template <class T>
  void add(const T& value) {
    hash_ = hash_value(value, hash_);
  }
  [[nodiscard]] std::uint64_t get() const { return hash_; }

 private:
  std::uint64_t hash_ = 1;
};

using Step = std::function<void(Flow&, Digest&)>;

constexpr std::uint8_t small_bytes[] = {10, 192, 11, 138};

IpAddress random_v4(Random& random) {
  return Ipv4Address{{small_bytes[random.below(4)], static_cast<std::uint8_t>(random.below(3)), 0,
                      static_cast<std::uint8_t>(random.below(4))}};
}
IpAddress random_v6(Random& random) {
  Ipv6Address address{{0x20, 0x01, 0x0d, 0xb8}};
  address.bytes[15] = static_cast<std::uint8_t>(random.below(4));
  address.bytes[4] = static_cast<std::uint8_t>(random.below(3));
  return address;
}
std::uint16_t random_port(Random& random) {
  static constexpr std::uint16_t ports[] = {22, 80, 443, 1023, 1024, 4789};
  return random.one_in(3) ? static_cast<std::uint16_t>(random()) : ports[random.below(6)];
}

template <class T>
Step read(Field<T> field) {
  return [field](Flow& flow, Digest& digest) { digest.add(flow[field]); };
}

template <class T, class Predicate>
Step test(Field<T> field, Predicate predicate) {
  return [field, predicate](Flow& flow, Digest& digest) { digest.add(flow.test(field, predicate)); };
}

template <class T>
Step set(Layer layer, Field<T> field, T value) {
  return [layer, field, value](Flow& flow, Digest&) {
    if (flow.has(layer)) {
      flow.set(field, value);
    }
  };
}

Step random_read(Random& random) {
  switch (random.below(22)) {
    case 0:
      return read(eth::dst);
    case 1:
      return read(eth::src);
    case 2:
      return read(eth::type);
    case 3:
      return read(vlan::id);
    case 4:
      return read(vlan::pcp);
    case 5:
      return read(vlan::inner_id);
    case 6:
      return read(vlan::inner_pcp);
    case 7:
      return read(arp::operation);
    case 8:
      return read(arp::sender_ip);
    case 9:
      return read(arp::target_mac);
    case 10:
      return read(ip::src);
    case 11:
      return read(ip::dst);
    case 12:
      return read(ip::protocol);
    case 13:
      return read(ip::dscp);
    case 14:
      return read(ip::ecn);
    case 15:
      return read(ip::ttl);
    case 16:
      return read(l4::src_port);
    case 17:
      return read(l4::dst_port);
    case 18:
      return read(tcp::flags);
    case 19:
      return read(icmp::type);
    case 20:
      return read(vxlan::vni);
    default:
      return [](Flow& flow, Digest& digest) { digest.add(flow.ingress()); };
  }
}

Step random_test(Random& random) {
  switch (random.below(9)) {
    case 0:
      return test(l4::dst_port, below(random_port(random)));
    case 1:
      return test(vlan::id, below(random.below(200)));
    case 2:
      return test(ip::ttl, below(random.below(70)));
    case 3:
      return test(l4::src_port, equals(random_port(random)));
    case 4:
      return test(ip::dst, equals(random_v4(random)));
    case 5:
      return test(ip::src, inside(IpPrefix(random_v4(random), random.below(33))));
    case 6:
      return test(ip::dst, inside(IpPrefix(random_v6(random), random.below(129))));
    case 7:
      return test(ip::dst, multicast());
    default:
      return test(eth::dst, multicast());
  }
}

Step random_set(Random& random) {
  switch (random.below(9)) {
    case 0:
      return set(Layer::ethernet, eth::dst, MacAddress{{2, 0, 0, 0, 0, 7}});
    case 1:
      return set(Layer::vlan, vlan::id, static_cast<std::uint16_t>(random.below(4)));
    case 2:
      return set(Layer::vlan_inner, vlan::inner_pcp, static_cast<std::uint8_t>(random.below(8)));
    case 3:
      return set(Layer::ipv4, ip::dst, random_v4(random));
    case 4:
      return set(Layer::ipv6, ip::src, random_v6(random));
    case 5:
      return set(Layer::ip, ip::ttl, static_cast<std::uint8_t>(random.below(4)));
    case 6:
      return set(Layer::ip, ip::dscp, static_cast<std::uint8_t>(random.below(64)));
    case 7:
      return set(Layer::ipv4, ip::src, random_v4(random));
    default:
      return set(Layer::ports, l4::dst_port, random_port(random));
  }
}

Step random_step(Random& random, Shared& shared) {
  switch (random.below(14)) {
    case 0:
    case 1:
      return random_read(random);
    case 2:
    case 3:
      return random_test(random);
    case 4:
    case 5:
      return random_set(random);
    case 6:
      return [&shared, src = random.one_in(2)](Flow& flow, Digest& digest) {
        const int* found = flow.lookup(shared.routes, src ? ip::src : ip::dst);
        digest.add(found != nullptr ? *found : -1);
      };
    case 7:
      return [&shared](Flow& flow, Digest& digest) {
        const int* found = flow.match(shared.policies);
        digest.add(found != nullptr ? *found : -1);
      };
    case 8:
      return [&shared](Flow& flow, Digest& digest) {
        const std::uint32_t* found = flow.lookup(shared.table, static_cast<std::uint32_t>(digest.get() % 16));
        digest.add(found != nullptr ? *found : ~std::uint32_t{0});
      };
    case 9:
      return [](Flow& flow, Digest& digest) {
        if (flow.has(layers::ip)) {
          digest.add(flow.decrement_ttl());
        }
      };
    case 10:
      return [mtu = 20 + random.below(100)](Flow& flow, Digest& digest) { digest.add(flow.fits(mtu)); };
    case 11:
      return [wanted = static_cast<std::uint8_t>(random.below(32))](Flow& flow, Digest& digest) {
        digest.add(flow.test(tcp::flags, flags(0x1f, wanted)));
      };
    case 12:
      return [push = random.one_in(2), control = static_cast<std::uint16_t>(random())](Flow& flow, Digest& digest) {
        if (push && !flow.has(layers::vlan_inner)) {
          flow.push_vlan(control);
        } else if (!push && flow.has(layers::vlan)) {
          flow.pop_vlan();
        }
        digest.add(push);
      };
    default:
      return [&shared](Flow& flow, Digest& digest) { digest.add(flow.read(shared.mode)); };
  }
}

std::function<Verdict(Flow&)> random_program(Random& random, Shared& shared) {
  struct Line {
    Step step;
    std::uint64_t skip_if;  // the line runs unless the digest has these bits
  };
  std::vector<Line> lines;
  const unsigned count = 1 + random.below(10);
  for (unsigned i = 0; i < count; ++i) {
    lines.push_back(
        {random_step(random, shared), random.one_in(3) ? std::uint64_t{1} << random.below(8) : ~std::uint64_t{0}});
  }
  return [lines](Flow& flow) {
    Digest digest;
    for (const Line& line : lines) {
      if ((digest.get() & line.skip_if) != line.skip_if) {
        line.step(flow, digest);
      }
    }
    return flow.output(PortId{static_cast<std::uint16_t>(digest.get() >> 20U)});
  };
}

TestPacket random_packet(Random& random) {
  PacketBuilder builder;
  for (std::uint32_t tags = random.one_in(2) ? 0 : random.below(4); tags > 0; --tags) {
    builder.vlan(static_cast<std::uint16_t>(random.below(4)), static_cast<std::uint8_t>(random.below(8)));
  }
  const auto ingress = static_cast<std::uint16_t>(random.below(3));
  const bool v6 = random.one_in(3);
  if (random.one_in(8)) {
    if (random.one_in(2)) {
      builder.arp(1, "02:00:00:00:00:01", random_v4(random).to_string(), "02:00:00:00:00:02", "10.0.0.1");
    }
    return TestPacket(builder.payload(random.below(10)), ingress);
  }
  if (v6) {
    builder.ipv6(random_v6(random).to_string(), random_v6(random).to_string());
  } else {
    builder.ipv4(random_v4(random).to_string(), random_v4(random).to_string());
  }
  builder.ttl(static_cast<std::uint8_t>(random.one_in(2) ? random.below(5) : 64))
      .tos(static_cast<std::uint8_t>(random()));
  if (random.one_in(8)) {
    builder.fragment(random.one_in(2) ? 0 : 16, 16);
  }
  switch (random.below(6)) {
    case 0:
      builder.udp(random_port(random), random_port(random));
      break;
    case 1:
      v6 ? builder.icmpv6(128) : builder.icmp(8);
      break;
    case 2:
      builder.sctp(random_port(random), random_port(random));
      break;
    case 3:
      builder.vxlan(random.below(4), PacketBuilder());
      break;
    default:
      builder.tcp(random_port(random), random_port(random), static_cast<std::uint8_t>(random.below(32)));
  }
  auto bytes = builder.payload(random.below(60)).bytes();
  if (random.one_in(10)) {
    bytes.resize(random.below(static_cast<std::uint32_t>(bytes.size())));
  }
  return TestPacket(std::move(bytes), ingress);
}

// The bits of a key that can differ between packets of one layout.
Key free_bits(const Key& key) {
  const Layout layout{key.layout};
  Key bits;
  bits.ingress = 0xffff;
  FieldValue all;
  all.bytes.fill(0xff);
  for (unsigned i = 0; i < field_count; ++i) {
    const auto field = static_cast<FieldId>(i);
    if (!present(field, layout) || (field == FieldId::eth_type && layout.l3() != L3::none)) {
      continue;
    }
    FieldValue mask = all;
    if (spec(field).bytes == 16 && layout.l3() != L3::ipv6) {
      std::fill(mask.bytes.begin() + 4, mask.bytes.end(), 0);
    }
    Key one;
    deposit(field, mask, one);
    bits = bits | one;
  }
  // Outside of any field: the tags' drop-eligible bit.
  if (layout.tags() >= 1) {
    bits.vlan[0] = 0xff;
  }
  if (layout.tags() >= 2) {
    bits.vlan_inner[0] = 0xff;
  }
  if (layout.l3() == L3::none) {
    bits.src[0] = bits.src[1] = 0;  // the type decides what the tags and the layout are
  }
  return bits;
}

bool passes(const Guard& guard, const TestPacket& packet) {
  switch (guard.kind) {
    case GuardKind::ttl_above:
      return (packet.key.ttl > guard.number) == guard.expected;
    case GuardKind::fits:
      return (packet.facts.l3_length <= guard.number) == guard.expected;
    case GuardKind::frame_fits:
      return (packet.facts.frame_length <= guard.number) == guard.expected;
    case GuardKind::sctp_data:
      return false;  // only of connections, which these decisions do not ask for
    case GuardKind::flags:
      return ((packet.key.tcp_flags & (guard.number >> 8U)) == (guard.number & 0xffU)) == guard.expected;
  }
  return false;
}

bool applies(const Rule& rule, const TestPacket& packet) {
  return equal_under(rule.value, packet.key, rule.mask) &&
         std::ranges::all_of(rule.guards, [&](const Guard& guard) { return passes(guard, packet); });
}

// A packet that the rule's match and guards should not tell from `packet`; mostly it is.
TestPacket resembling(Random& random, const TestPacket& packet, const Rule& rule) {
  TestPacket result = rule.mask.layout != 0 ? packet : random_packet(random);
  const TestPacket donor = random_packet(random);
  const Key bits = free_bits(result.key);
  const std::uint32_t kind = random.below(3);
  for (std::size_t i = 0; i < Key::words; ++i) {
    const std::uint64_t noise = kind == 0   ? donor.key.word(i)
                                : kind == 1 ? random()
                                            : result.key.word(i) ^ few_bits(random);
    const std::uint64_t free = bits.word(i) & ~rule.mask.word(i);
    const std::uint64_t base = (result.key.word(i) & ~rule.mask.word(i)) | (packet.key.word(i) & rule.mask.word(i));
    result.key.set_word(i, (base & ~free) | (noise & free));
  }
  result.facts.l3_length = random.one_in(2) ? packet.facts.l3_length : random.below(200);
  result.facts.frame_length = random.one_in(2) ? packet.facts.frame_length : random.below(200);
  return result;
}

std::string text_of(const Rule& rule) {
  std::string text = fmt::format("cacheable '{}'", rule.not_cacheable);
  for (const Action& action : rule.actions) {
    text += fmt::format("; {} {} {} {} {}", static_cast<int>(action.kind), static_cast<int>(action.field),
                        action.reason, action.number, load_big<std::uint64_t>(action.value.bytes.data()));
  }
  return text;
}

void random_update(Random& random, Update& update, Shared& shared) {
  switch (random.below(7)) {
    case 0:
      update.set(shared.table, random.below(16), random.below(3));
      break;
    case 1:
      update.erase(shared.table, random.below(16));
      break;
    case 2:
      update.set(shared.mode, random.below(3));
      break;
    case 3:
    case 4: {
      const bool v6 = random.one_in(3);
      const IpPrefix prefix(v6 ? random_v6(random) : random_v4(random), random.below(v6 ? 129 : 33));
      random.one_in(3) ? update.erase(shared.routes, prefix)
                       : update.set(shared.routes, prefix, static_cast<int>(random.below(3)));
      break;
    }
    default: {
      const std::uint32_t order = random.below(8);
      if (random.one_in(3)) {
        update.erase(shared.policies, order);
        break;
      }
      Match match;
      if (random.one_in(2)) {
        match.with(random.one_in(2) ? ip::src : ip::dst, IpPrefix(random_v4(random), random.below(33)));
      }
      switch (random.below(6)) {
        case 0:
          match.with(l4::dst_port, random_port(random));
          break;
        case 1:
          match.with(vlan::id, static_cast<std::uint16_t>(random.below(4)));
          break;
        case 2:
          match.with(vlan::inner_id, static_cast<std::uint16_t>(random.below(4)));
          break;
        case 3:
          match.with(ip::ttl, static_cast<std::uint8_t>(random.below(4)));
          break;
        case 4:
          match.with_ingress(PortId{static_cast<std::uint16_t>(random.below(3))});
          break;
        default:
          match.with(Layer::tcp);
      }
      update.set(shared.policies, order, match, static_cast<int>(random.below(3)));
    }
  }
}

TEST(TracedFlowProperty, ARuleHoldsForAllItMatchesForAsLongAsItIsValid) {
  std::size_t compared = 0;
  std::size_t survived = 0;
  std::size_t cleared = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Epochs epochs;
    State state(epochs, seed);
    Shared shared(state);
    for (std::uint32_t changes = random.below(30); changes > 0; --changes) {
      Update update;
      random_update(random, update, shared);
      ASSERT_TRUE(update.commit(state, 0));
    }
    const auto graph = TestGraph::of(state, random_program(random, shared));
    TestHolder holder(state);
    struct Held {
      TestPacket packet;
      TestRule* rule;
    };
    std::vector<Held> held;
    for (int i = 0; i < 10; ++i) {
      const TestPacket packet = random_packet(random);
      const Rule rule = graph->decide(packet);
      ASSERT_TRUE(applies(rule, packet)) << "a rule must apply to its own packet";
      ASSERT_TRUE(rule.not_cacheable.empty() || rule.not_cacheable == "it has more than 4 guards");
      ASSERT_EQ(text_of(graph->decide(packet)), text_of(rule));
      for (int j = 0; rule.not_cacheable.empty() && j < 10; ++j) {
        const TestPacket other = resembling(random, packet, rule);
        if (applies(rule, other)) {
          const Rule& again = graph->decide(other);
          ASSERT_EQ(text_of(again), text_of(rule)) << Layout{packet.key.layout}.to_string();
          ASSERT_TRUE(again.guards == rule.guards);
          ++compared;
        }
      }
      if (rule.not_cacheable.empty()) {
        held.push_back({packet, &holder.hold(rule)});
        ASSERT_TRUE(held.back().rule->valid());
      }
    }
    for (int round = 0; round < 10; ++round) {
      Update update;
      random_update(random, update, shared);
      ASSERT_TRUE(update.commit(state, 0));
      for (const Held& each : held) {
        if (!each.rule->valid()) {
          ++cleared;
          continue;
        }
        ASSERT_EQ(text_of(graph->decide(each.packet)), text_of(each.rule->rule()))
            << "the state changed, and the rule is still valid";
        ++survived;
      }
    }
  }
  // The test has power only if much is compared.
  EXPECT_GT(compared, 100'000U);
  EXPECT_GT(survived, 50'000U);
  EXPECT_GT(cleared, 10'000U);
}

}  // namespace
}  // namespace weir
