#include <weir/flow/traced_flow.h>

#include <functional>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/flow/internal/test_decision.h>
#include <weir/flow/update.h>

namespace weir {
namespace {

using ::testing::ElementsAre;

constexpr DropReason done{"done", "the test is over"};

PacketBuilder v4() { return PacketBuilder().ipv4("10.0.0.1", "10.0.0.2"); }
PacketBuilder v6() { return PacketBuilder().ipv6("2001:db8::1", "2001:db8::2"); }
PacketBuilder tagged(int tags) {
  PacketBuilder builder;
  for (int i = 0; i < tags; ++i) {
    builder.vlan(static_cast<std::uint16_t>(100 + i), static_cast<std::uint8_t>(i + 1));
  }
  return builder.ipv4("10.0.0.1", "10.0.0.2").udp(1, 2);
}

// A mask of whole fields and of parts of them.
class Mask {
 public:
  Mask() { key_.stage = 0xff; }
  static Mask layout() {
    Mask mask;
    mask.key_.layout = 0xffff;
    return mask;
  }
  Mask with(FieldId field) const {
    FieldValue all;
    all.bytes.fill(0xff);
    return with(field, all);
  }
  // `bits` from the left of the field as it stands in the key (of an IP address: its first bits).
  Mask leading(FieldId field, unsigned bits) const {
    FieldValue value;
    for (unsigned i = 0; i < bits; ++i) {
      value.bytes[i / 8] = static_cast<std::uint8_t>(value.bytes[i / 8] | (0x80U >> i % 8));
    }
    return with(field, value);
  }
  Mask ingress() const {
    Mask mask = *this;
    mask.key_.ingress = 0xffff;
    return mask;
  }
  operator const Key&() const { return key_; }  // NOLINT

 private:
  Mask with(FieldId field, const FieldValue& value) const {
    Mask mask = *this;
    Key bits;
    deposit(field, value, bits);
    mask.key_ = mask.key_ | bits;
    return mask;
  }
  Key key_;
};

std::string text_of(const Key& mask) {
  std::string text;
  for (std::size_t i = 0; i < 64; ++i) {
    text += fmt::format("{}{:02x}", i % 8 == 0 ? " " : "", mask.bytes()[i]);
  }
  return text;
}

class TracedFlowTest : public ::testing::Test {
 protected:
  template <class F>
  const Rule& decide(F use, const TestPacket& packet) {
    graph_ = TestGraph::of(state_, [use](Flow& flow) {
      if constexpr (std::same_as<decltype(use(flow)), Verdict>) {
        return use(flow);
      } else {
        use(flow);
        return flow.drop(done);
      }
    });
    return graph_->decide(packet);
  }
  template <class F>
  const Rule& decide(F use, const PacketBuilder& packet) {
    return decide(use, TestPacket(packet));
  }

  bool dropped_for(const Rule& rule, ReasonId reason) {
    return rule.actions.size() == 1 && rule.actions[0].kind == ActionKind::drop && rule.actions[0].reason == reason;
  }

  std::vector<ActionKind> kinds(const Rule& rule) {
    std::vector<ActionKind> all;
    for (const Action& action : rule.actions) {
      all.push_back(action.kind);
    }
    return all;
  }

  Epochs epochs_;
  State state_{epochs_, 1};
  std::unique_ptr<TestGraph> graph_;
};

using Use = std::function<void(Flow&)>;

TEST_F(TracedFlowTest, WhatIsConsulted) {
  struct Case {
    const char* description;
    PacketBuilder packet;
    Use use;
    Mask expected;
  };
  const Mask layout = Mask::layout();
  for (const Case& c : std::initializer_list<Case>{
           {"nothing", v4(), [](Flow&) {}, Mask()},
           {"the ingress port", v4(), [](Flow& f) { f.ingress(); }, Mask().ingress()},
           {"a layer", v4(), [](Flow& f) { f.has(layers::ip); }, layout},
           {"a field that is absent", v4(), [](Flow& f) { f[l4::dst_port]; }, layout},
           {"a field", v4().udp(1, 2), [](Flow& f) { f[l4::dst_port]; }, layout.with(FieldId::l4_dst_port)},
           {"an IPv4 address", v4(), [](Flow& f) { f[ip::dst]; }, layout.leading(FieldId::ip_dst, 32)},
           {"an IPv6 address", v6(), [](Flow& f) { f[ip::dst]; }, layout.with(FieldId::ip_dst)},
           {"the EtherType of IP is in the layout", v4(), [](Flow& f) { f[eth::type]; }, layout},
           {"another EtherType", PacketBuilder(), [](Flow& f) { f[eth::type]; }, layout.with(FieldId::eth_type)},
           {"part of a byte", v4().tos(0xb9), [](Flow& f) { f[ip::dscp]; }, layout.with(FieldId::ip_dscp)},
           {"a tag's identifier", tagged(1), [](Flow& f) { f[vlan::id]; }, layout.with(FieldId::vlan_id)},
           {"a tag's priority", tagged(1), [](Flow& f) { f[vlan::pcp]; }, layout.with(FieldId::vlan_pcp)},
           {"below", v4().udp(1, 80), [](Flow& f) { EXPECT_TRUE(f.test(l4::dst_port, below(1024))); },
            layout.leading(FieldId::l4_dst_port, 6)},
           {"not below", v4().udp(1, 0xc000), [](Flow& f) { EXPECT_FALSE(f.test(l4::dst_port, below(1024))); },
            layout.leading(FieldId::l4_dst_port, 1)},
           {"below, of an absent field", v4(), [](Flow& f) { EXPECT_FALSE(f.test(l4::dst_port, below(1024))); },
            layout},
           {"inside", v4(), [](Flow& f) { EXPECT_TRUE(f.test(ip::src, inside(*IpPrefix::parse("10.0.0.0/8")))); },
            layout.leading(FieldId::ip_src, 8)},
           {"inside a prefix of the other family", v4(),
            [](Flow& f) { EXPECT_FALSE(f.test(ip::src, inside(*IpPrefix::parse("2001:db8::/32")))); }, layout},
           {"multicast", v4(), [](Flow& f) { EXPECT_FALSE(f.test(ip::dst, multicast())); },
            layout.leading(FieldId::ip_dst, 4)},
           {"equal", v4().udp(1, 2), [](Flow& f) { EXPECT_TRUE(f.test(l4::src_port, equals(1))); },
            layout.with(FieldId::l4_src_port)},
           {"equal, a number that the field cannot have", v4().udp(1, 2),
            [](Flow& f) { EXPECT_FALSE(f.test(l4::src_port, equals(0x10001))); }, Mask()},
           {"TCP flags as a guard", v4().tcp(1, 2), [](Flow& f) { f.test(tcp::flags, flags(tcp_flag::syn, 0)); },
            layout},
           {"TCP flags as a field", v4().tcp(1, 2), [](Flow& f) { f[tcp::flags]; }, layout.with(FieldId::tcp_flags)},
           {"the MTU", v4(), [](Flow& f) { f.fits(1500); }, layout},
           {"the TTL, taken", v4(), [](Flow& f) { f.decrement_ttl(); }, layout},
           {"the TTL, read", v4(), [](Flow& f) { EXPECT_EQ(*f[ip::ttl], 64); }, layout.with(FieldId::ip_ttl)},
           {"the TTL, read after it was taken", v4(),
            [](Flow& f) {
              f.decrement_ttl();
              EXPECT_EQ(*f[ip::ttl], 63);
            },
            layout.with(FieldId::ip_ttl)},
           {"part of the TTL, after it was taken: the difference shows in all bits", v4(),
            [](Flow& f) {
              f.decrement_ttl();
              EXPECT_TRUE(f.test(ip::ttl, below(128)));
            },
            layout.with(FieldId::ip_ttl)},
           {"a read after a write", v4(),
            [](Flow& f) {
              f.set(ip::dst, *IpAddress::parse("10.9.9.9"));
              EXPECT_EQ(f[ip::dst]->to_string(), "10.9.9.9");
              EXPECT_TRUE(f.test(ip::dst, inside(*IpPrefix::parse("10.9.0.0/16"))));
            },
            layout},
           {"a read before the write counts", v4(),
            [](Flow& f) {
              f[ip::dst];
              f.set(ip::dst, *IpAddress::parse("10.9.9.9"));
            },
            layout.leading(FieldId::ip_dst, 32)},
           {"one field written, its neighbour read", v4().tos(0xb9),
            [](Flow& f) {
              f.set(ip::dscp, 0);
              EXPECT_EQ(*f[ip::ecn], 1);
              EXPECT_EQ(*f[ip::dscp], 0);
            },
            layout.with(FieldId::ip_ecn)},
           {"the TTL, written", v4(),
            [](Flow& f) {
              f.set(ip::ttl, 9);
              EXPECT_TRUE(f.decrement_ttl());
              EXPECT_EQ(*f[ip::ttl], 8);
            },
            layout},
           {"a pushed tag", tagged(1),
            [](Flow& f) {
              f.push_vlan(0xe007);
              EXPECT_EQ(*f[vlan::id], 7);
              EXPECT_EQ(*f[vlan::pcp], 7);
            },
            layout},
           {"the tag behind a pushed one", tagged(1),
            [](Flow& f) {
              f.push_vlan(7);
              EXPECT_EQ(*f[vlan::inner_id], 100);
            },
            layout.with(FieldId::vlan_id)},
           {"the tag behind a popped one", tagged(2),
            [](Flow& f) {
              f.pop_vlan();
              EXPECT_EQ(*f[vlan::id], 101);
              EXPECT_EQ(*f[vlan::pcp], 2);
              EXPECT_FALSE(f[vlan::inner_id]);
            },
            layout.with(FieldId::vlan_inner_id).with(FieldId::vlan_inner_pcp)},
           {"a tag popped and one pushed", tagged(2),
            [](Flow& f) {
              f.pop_vlan();
              f.push_vlan(9);
              EXPECT_EQ(*f[vlan::id], 9);
              EXPECT_EQ(*f[vlan::inner_id], 101);
            },
            layout.with(FieldId::vlan_inner_id)},
           {"a tag pushed and popped", tagged(1),
            [](Flow& f) {
              f.push_vlan(9);
              f.pop_vlan();
              EXPECT_EQ(*f[vlan::id], 100);
            },
            layout.with(FieldId::vlan_id)},
           {"a written tag that moved inwards", tagged(1),
            [](Flow& f) {
              f.set(vlan::id, 55);
              f.push_vlan(9);
              EXPECT_EQ(*f[vlan::inner_id], 55);
              EXPECT_EQ(*f[vlan::inner_pcp], 1);
            },
            layout.with(FieldId::vlan_pcp)},
           {"a written inner tag that moved outwards", tagged(2),
            [](Flow& f) {
              f.set(vlan::inner_id, 55);
              f.pop_vlan();
              EXPECT_EQ(*f[vlan::id], 55);
            },
            layout},
           {"the last tag popped", tagged(1),
            [](Flow& f) {
              f.pop_vlan();
              EXPECT_FALSE(f[vlan::id]);
              EXPECT_FALSE(f.has(layers::vlan));
            },
            layout},
       }) {
    const Rule& rule = decide(c.use, c.packet);
    const Key& expected = c.expected;
    EXPECT_TRUE(rule.mask == expected) << c.description << "\n" << text_of(rule.mask) << "\n" << text_of(expected);
    EXPECT_TRUE(rule.value == (TestPacket(c.packet).key & rule.mask)) << c.description;
    EXPECT_EQ(rule.not_cacheable, "") << c.description;
    EXPECT_FALSE(dropped_for(rule, drop::stage_error)) << c.description;
  }
}

TEST_F(TracedFlowTest, AbsentIsNotZero) {
  decide(
      [](Flow& flow) {
        EXPECT_FALSE(flow[vlan::id]);
        EXPECT_FALSE(flow[l4::src_port]);
        EXPECT_FALSE(flow[tcp::flags]);
        EXPECT_FALSE(flow[tunnel::vni]);
        EXPECT_EQ(flow[ip::src]->to_string(), "10.0.0.1");
      },
      v4());
}

TEST_F(TracedFlowTest, Guards) {
  struct Case {
    const char* description;
    PacketBuilder packet;
    Use use;
    std::vector<Guard> guards;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"TTL left",
            v4().ttl(2),
            [](Flow& f) { EXPECT_TRUE(f.decrement_ttl()); },
            {{GuardKind::ttl_above, true, 1}}},
           {"TTL 1", v4().ttl(1), [](Flow& f) { EXPECT_FALSE(f.decrement_ttl()); }, {{GuardKind::ttl_above, false, 1}}},
           {"TTL 0", v6().ttl(0), [](Flow& f) { EXPECT_FALSE(f.decrement_ttl()); }, {{GuardKind::ttl_above, false, 1}}},
           {"TTL taken twice",
            v4().ttl(2),
            [](Flow& f) {
              EXPECT_TRUE(f.decrement_ttl());
              EXPECT_FALSE(f.decrement_ttl());
            },
            {{GuardKind::ttl_above, true, 1}, {GuardKind::ttl_above, false, 2}}},
           {"a TTL that was set",
            v4().ttl(1),
            [](Flow& f) {
              f.set(ip::ttl, 2);
              EXPECT_TRUE(f.decrement_ttl());
              EXPECT_FALSE(f.decrement_ttl());
            },
            {}},
           {"fits", v4().udp(1, 2), [](Flow& f) { EXPECT_TRUE(f.fits(28)); }, {{GuardKind::fits, true, 28}}},
           {"does not fit", v4().udp(1, 2), [](Flow& f) { EXPECT_FALSE(f.fits(27)); }, {{GuardKind::fits, false, 27}}},
           {"asked twice",
            v4(),
            [](Flow& f) {
              f.fits(1500);
              f.fits(1500);
            },
            {{GuardKind::fits, true, 1500}}},
           {"fits with a tunnel around",
            tagged(1),
            [](Flow& f) {
              f.encapsulate({.vni = 1, .src = *IpAddress::parse("1.1.1.1"), .dst = *IpAddress::parse("1.1.1.2")});
              EXPECT_TRUE(f.fits(28 + 18 + 36));
              EXPECT_FALSE(f.fits(28 + 18 + 35));
              EXPECT_FALSE(f.fits(20)) << "less than the headers: never";
            },
            {{GuardKind::frame_fits, true, 46}, {GuardKind::frame_fits, false, 45}}},
           {"flags",
            v4().tcp(1, 2, tcp_flag::syn | tcp_flag::ece),
            [](Flow& f) {
              EXPECT_TRUE(f.test(tcp::flags, flags(tcp_flag::syn | tcp_flag::ack, tcp_flag::syn)));
              EXPECT_FALSE(f.test(tcp::flags, flags(tcp_flag::rst, tcp_flag::rst)));
            },
            {{GuardKind::flags, true, 0x1202}, {GuardKind::flags, false, 0x0404}}},
           {"flags without TCP", v4().udp(1, 2), [](Flow& f) { EXPECT_FALSE(f.test(tcp::flags, flags(2, 2))); }, {}},
       }) {
    const Rule& rule = decide(c.use, c.packet);
    EXPECT_EQ(rule.guards, c.guards) << c.description;
    EXPECT_EQ(rule.not_cacheable, "") << c.description;
  }
}

TEST_F(TracedFlowTest, ActionsInTheirOrder) {
  Counter& counter = state_.counter("c");
  Meter& rate = state_.packet_meter("m", 1, 1);
  const Rule& rule = decide(
      [&](Flow& flow) {
        flow.count(counter);
        flow.set(eth::dst, MacAddress{{2, 0, 0, 0, 0, 9}});
        flow.decrement_ttl();
        flow.mirror(PortId{4});
        flow.translate({.set_dst = true, .set_dst_port = true, .dst = *IpAddress::parse("10.5.5.5"), .dst_port = 443});
        flow.pop_vlan();
        flow.push_vlan(0x2005);
        flow.meter(rate);
        flow.encapsulate({.vni = 7, .src = *IpAddress::parse("1.1.1.1"), .dst = *IpAddress::parse("1.1.1.2")});
        return flow.output(PortId{3});
      },
      tagged(2));
  using enum ActionKind;
  EXPECT_THAT(kinds(rule), ElementsAre(count, set, decrement_ttl, mirror, set, set, pop_vlan, push_vlan, meter,
                                       encapsulate, output));
  EXPECT_EQ(rule.actions[0].object, &counter);
  EXPECT_EQ(rule.actions[1].field, FieldId::eth_dst);
  EXPECT_EQ(rule.actions[3].number, 4U);
  EXPECT_EQ(rule.actions[4].field, FieldId::ip_dst);
  EXPECT_EQ(from_field<IpAddress>(rule.actions[4].value).to_string(), "10.5.5.5");
  EXPECT_EQ(from_field<std::uint16_t>(rule.actions[5].value), 443);
  EXPECT_EQ(rule.actions[7].number, 0x2005U);
  EXPECT_EQ(rule.tunnels.at(rule.actions[9].number).vni, 7U);
  EXPECT_EQ(rule.actions[10].number, 3U);
}

TEST_F(TracedFlowTest, AValueTooWideForItsFieldIsCut) {
  const Rule& rule = decide(
      [](Flow& flow) {
        flow.set(vlan::id, 0xf123);
        EXPECT_EQ(*flow[vlan::id], 0x123);
        EXPECT_EQ(*flow[vlan::pcp], 1);
      },
      tagged(1));
  EXPECT_EQ(from_field<std::uint16_t>(rule.actions[0].value), 0x123);
}

TEST_F(TracedFlowTest, Verdicts) {
  Group& group = state_.group("uplinks");
  const auto last = [&](const std::function<Verdict(Flow&)>& use) { return decide(use, v4()).actions.back(); };
  EXPECT_EQ(last([](Flow& f) { return f.output(PortId{3}); }).kind, ActionKind::output);
  EXPECT_EQ(last([](Flow& f) { return f.flood(); }).number, 0U);
  EXPECT_EQ(last([](Flow& f) { return f.flood(std::uint16_t{5}); }).number, 5U);
  EXPECT_EQ(last([&](Flow& f) { return f.select(group); }).object, &group);
  EXPECT_EQ(last([&](Flow& f) { return f.select(NextHops{group.id(), 1500}); }).object, &group);
  const Action rejected = last([](Flow& f) { return f.reject(too_big(1400)); });
  EXPECT_EQ(rejected.kind, ActionKind::reject);
  EXPECT_EQ(rejected.number, 1400U << 16U | static_cast<unsigned>(IcmpError::too_big));
  EXPECT_EQ(state_.reason(rejected.reason).name, "too_big");
  EXPECT_EQ(state_.reason(last([](Flow& f) { return f.drop(done); }).reason).name, "done");
  const Action unconnected = last([](Flow& f) { return f.next(); });
  EXPECT_EQ(unconnected.kind, ActionKind::drop);
  EXPECT_EQ(unconnected.reason, drop::unconnected);
}

TEST_F(TracedFlowTest, ProgrammingErrorsDropAndAreKept) {
  Group& group = state_.group("uplinks");
  const Vxlan tunnel{.vni = 1, .src = *IpAddress::parse("1.1.1.1"), .dst = *IpAddress::parse("1.1.1.2")};
  struct Case {
    const char* description;
    PacketBuilder packet;
    Use use;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a read after select", v4(),
            [&](Flow& f) {
              (void)f.select(group);
              f[ip::dst];
            }},
           {"a read after encapsulate", v4(),
            [&](Flow& f) {
              f.encapsulate(tunnel);
              f[ip::dst];
            }},
           {"a layer after encapsulate", v4(),
            [&](Flow& f) {
              f.encapsulate(tunnel);
              f.has(layers::ip);
            }},
           {"a set after encapsulate", v4(),
            [&](Flow& f) {
              f.encapsulate(tunnel);
              f.set(ip::ttl, 3);
            }},
           {"a second tunnel", v4(),
            [&](Flow& f) {
              f.encapsulate(tunnel);
              f.encapsulate(tunnel);
            }},
           {"a tag on a tunnel", v4(),
            [&](Flow& f) {
              f.encapsulate(tunnel);
              f.push_vlan(3);
            }},
           {"a TTL after decapsulate", v4().vxlan(1, PacketBuilder()),
            [](Flow& f) {
              f.decapsulate();
              f.decrement_ttl();
            }},
           {"an MTU after decapsulate", v4().vxlan(1, PacketBuilder()),
            [](Flow& f) {
              f.decapsulate();
              f.fits(1500);
            }},
           {"decapsulation of what is none", v4(), [](Flow& f) { f.decapsulate(); }},
           {"a set of an absent field", v4(), [](Flow& f) { f.set(l4::dst_port, 3); }},
           {"a set of what cannot be set", v4().tcp(1, 2), [](Flow& f) { f.set(tcp::flags, 3); }},
           {"an address of the other family", v4(), [](Flow& f) { f.set(ip::dst, *IpAddress::parse("::1")); }},
           {"a third tag", tagged(2), [](Flow& f) { f.push_vlan(3); }},
           {"no tag to pop", v4(), [](Flow& f) { f.pop_vlan(); }},
           {"a TTL without IP", PacketBuilder(), [](Flow& f) { f.decrement_ttl(); }},
           {"a tunnel between families", v4(),
            [&](Flow& f) { f.encapsulate({.src = *IpAddress::parse("::1"), .dst = *IpAddress::parse("1.1.1.2")}); }},
           {"a VNI beyond 24 bits", v4(),
            [&](Flow& f) { f.encapsulate({.vni = 1U << 24U, .src = tunnel.src, .dst = tunnel.dst}); }},
       }) {
    const Rule& rule = decide(
        [&](Flow& flow) {
          flow.mirror(PortId{9});
          flow[eth::dst];
          c.use(flow);
        },
        c.packet);
    EXPECT_TRUE(dropped_for(rule, drop::stage_error)) << c.description << ": and nothing but a drop";
    EXPECT_TRUE(rule.tunnels.empty()) << c.description;
    EXPECT_EQ(rule.not_cacheable, "") << c.description << ": the same packet errs the same way";
    EXPECT_TRUE(covers(rule.mask, Mask().with(FieldId::eth_dst))) << c.description;
  }
}

TEST_F(TracedFlowTest, AGroupThatDoesNotExistYet) {
  const Rule& rule = decide([](Flow& flow) { return flow.select(NextHops{77, 1500}); }, v4());
  EXPECT_TRUE(dropped_for(rule, drop::stage_error));
  EXPECT_NE(rule.not_cacheable, "");
}

TEST_F(TracedFlowTest, AllowedAfterEncapsulation) {
  Counter& counter = state_.counter("c");
  auto& table = state_.table<std::uint32_t, std::uint32_t>("t");
  const Rule& rule = decide(
      [&](Flow& flow) {
        flow.encapsulate({.vni = 1, .src = *IpAddress::parse("::1"), .dst = *IpAddress::parse("::2")});
        flow.count(counter);
        flow.lookup(table, 3);
        flow.mirror(PortId{1});
        flow.fits(1500);
        return flow.output(flow.ingress());
      },
      v4());
  EXPECT_EQ(rule.actions.back().kind, ActionKind::output);
}

TEST_F(TracedFlowTest, APacketThatCannotBeRewrittenIsDroppedAsSuch) {
  struct Case {
    const char* description;
    TestPacket packet;
    Use use;
  };
  const auto port = [](Flow& f) { f.set(l4::dst_port, 9); };
  const auto push = [](Flow& f) { f.push_vlan(9); };
  for (const Case& c : std::initializer_list<Case>{
           {"a port of fragmented SCTP", TestPacket(v4().fragment(0, 16).sctp(1, 2).payload(80)), port},
           {"a tag outside of three", TestPacket(PacketBuilder().vlan(1).vlan(2).vlan(3)),
            [](Flow& f) { f.pop_vlan(); }},
           {"a tag in front of half a tag", TestPacket(PacketBuilder().eth_type(0x8100).payload(2)), push}}) {
    EXPECT_TRUE(dropped_for(decide(c.use, c.packet), drop::unrewritable)) << c.description;
  }
  EXPECT_FALSE(dropped_for(decide(port, v4().sctp(1, 2)), drop::unrewritable));
  EXPECT_FALSE(dropped_for(decide(port, v4().fragment(0, 16).udp(1, 2).payload(80)), drop::unrewritable));
}

TEST_F(TracedFlowTest, ForeignExceptionsDropThePacketAlone) {
  const Rule& rule = decide([](Flow&) { throw std::runtime_error("no"); }, v4());
  EXPECT_TRUE(dropped_for(rule, drop::stage_error));
  EXPECT_NE(rule.not_cacheable, "");
}

TEST_F(TracedFlowTest, WhatCannotBeCached) {
  auto& table = state_.table<std::uint32_t, std::uint32_t>("t");
  const auto why = [&](const Use& use) { return decide(use, v4()).not_cacheable; };
  EXPECT_EQ(why([](Flow& f) { f.every_packet(); }), "the stage asked for every packet");
  EXPECT_EQ(why([&](Flow& f) { f.learn(table, 1, 1); }), "state was learned by this packet");
  EXPECT_EQ(why([&](Flow& f) { f.learn(table, 1, 1); }), "");
  const auto keys = [&](std::uint32_t count) {
    return [&table, count](Flow& f) {
      for (std::uint32_t i = 0; i < count; ++i) {
        f.lookup(table, i);
      }
    };
  };
  EXPECT_EQ(why(keys(24)), "");
  EXPECT_EQ(why(keys(25)), "it looked up more than 24 keys");
  const auto guards = [](std::uint32_t count) {
    return [count](Flow& f) {
      for (std::uint32_t i = 0; i < count; ++i) {
        f.fits(1000 + i);
      }
    };
  };
  EXPECT_EQ(why(guards(4)), "");
  EXPECT_EQ(why(guards(5)), "it has more than 4 guards");
  EXPECT_EQ(why([](Flow&) {}), "") << "a reason does not stay for the next trace";
}

TEST_F(TracedFlowTest, StagesInARow) {
  struct Sink final : PacketStage {
    void process(Batch&) override {}
  } sink;
  const auto graph = TestGraph::of(
      state_,
      [](Flow& flow) {
        flow[eth::src];
        return flow.next();
      },
      [](Flow& flow) {
        flow.set(ip::ttl, 5);
        return flow.next();
      });
  graph->add_packet_stage(sink);
  const TestPacket packet(v4());
  const Rule& rule = graph->decide(packet);
  EXPECT_THAT(kinds(rule), ElementsAre(ActionKind::set, ActionKind::enter));
  EXPECT_EQ(rule.actions[1].number, 2U);
  EXPECT_EQ(rule.stages, 3U);
  EXPECT_EQ(rule.mask.stage, 0xff);
  TestPacket behind = packet;
  behind.key.stage = 1;
  const Rule& second = graph->decide(behind);
  EXPECT_EQ(second.stages, 2U);
  EXPECT_EQ(second.value.stage, 1);
  EXPECT_TRUE(second.mask == Mask::layout());
}

TEST_F(TracedFlowTest, DecapsulationEndsTheRule) {
  const auto graph = TestGraph::of(
      state_,
      [](Flow& flow) {
        flow.decapsulate();
        return flow.next();
      },
      [](Flow& flow) {
        ADD_FAILURE() << "the stage behind sees the inner packet, not the outer one";
        return flow.drop(done);
      });
  const Rule& rule = graph->decide(TestPacket(v4().vxlan(7, PacketBuilder())));
  EXPECT_THAT(kinds(rule), ElementsAre(ActionKind::decapsulate, ActionKind::enter));
  EXPECT_EQ(rule.actions[1].number, 1U);
}

TEST_F(TracedFlowTest, ALoopEnds) {
  const FlowStage* first = nullptr;
  const auto graph = TestGraph::of(state_, [&first](Flow& flow) { return flow.to(*first); });
  first = &graph->stage(0);
  EXPECT_TRUE(dropped_for(graph->decide(TestPacket(v4())), drop::loop_limit));
}

TEST_F(TracedFlowTest, AStageOfAnotherGraph) {
  const auto other = TestGraph::of(state_, [](Flow& flow) { return flow.drop(done); });
  EXPECT_TRUE(dropped_for(decide([&](Flow& flow) { return flow.to(other->stage(0)); }, v4()), drop::stage_error));
}

// Look-ups behind a rewrite: which updates concern the rule does not show in its match.
class RewrittenLookup : public TracedFlowTest {
 protected:
  const TestRule& hold(const Use& use, const PacketBuilder& packet) {
    const TestRule& rule = holder_.hold(decide(use, packet));
    EXPECT_TRUE(rule.valid());
    return rule;
  }
  template <class F>
  std::size_t update(F fill) {
    Update update;
    fill(update);
    return update.commit(state_, 0)->rules_cleared;
  }

  TestHolder holder_{state_};
  Prefixes<int>& routes_ = state_.prefixes<int>("routes");
  Classifier<int>& policies_ = state_.classifier<int>("policies");
};

TEST_F(RewrittenLookup, ARouteForTheNewAddressClearsTheRule) {
  for (const bool default_route : {false, true}) {
    if (default_route) {
      update([&](Update& u) { u.set(routes_, *IpPrefix::parse("0.0.0.0/0"), 1); });
    }
    const TestRule& rule = hold(
        [&](Flow& flow) {
          flow[ip::dst];
          flow.set(ip::dst, *IpAddress::parse("192.168.0.1"));
          flow.lookup(routes_, ip::dst);  // an empty table: no bit is walked
        },
        v4());
    const TestRule& plain = hold([&](Flow& flow) { flow[ip::dst], flow.lookup(routes_, ip::dst); }, v4());
    update([&](Update& u) { u.set(routes_, *IpPrefix::parse("192.168.0.0/16"), 2); });
    EXPECT_FALSE(rule.valid());
    EXPECT_TRUE(plain.valid()) << "it does not concern those who were not rewritten";
    update([&](Update& u) { u.erase(routes_, *IpPrefix::parse("192.168.0.0/16")); });
  }
}

TEST_F(RewrittenLookup, ANeighbouringFieldDoesNotMatter) {
  const TestRule& rule = hold(
      [&](Flow& flow) {
        flow[ip::src];
        flow[ip::dst];
        flow.set(ip::src, *IpAddress::parse("192.168.0.1"));
        flow.decrement_ttl();
        flow.lookup(routes_, ip::dst);
      },
      v4());
  update([&](Update& u) { u.set(routes_, *IpPrefix::parse("192.168.0.0/16"), 2); });
  EXPECT_TRUE(rule.valid());
  update([&](Update& u) { u.set(routes_, *IpPrefix::parse("10.0.0.0/16"), 2); });
  EXPECT_FALSE(rule.valid());
}

TEST_F(RewrittenLookup, APolicyForTheNewAddressClearsTheRule) {
  const TestRule& rule = hold(
      [&](Flow& flow) {
        flow[ip::dst];
        flow.set(ip::dst, *IpAddress::parse("192.168.0.1"));
        flow.match(policies_);
      },
      v4());
  update([&](Update& u) { u.set(policies_, 1, Match().with(ip::dst, *IpPrefix::parse("192.168.0.0/16")), 2); });
  EXPECT_FALSE(rule.valid());
}

TEST_F(RewrittenLookup, APolicyForThePushedTagClearsTheRule) {
  const TestRule& pushed = hold(
      [&](Flow& flow) {
        flow.push_vlan(7);
        flow.match(policies_);
      },
      tagged(0));
  const TestRule& popped = hold(
      [&](Flow& flow) {
        flow.pop_vlan();
        flow.match(policies_);
      },
      tagged(2));
  update([&](Update& u) { u.set(policies_, 1, Match().with(vlan::id, 7), 2); });
  EXPECT_FALSE(pushed.valid());
  update([&](Update& u) { u.set(policies_, 2, Match().with(vlan::id, 101), 2); });
  EXPECT_FALSE(popped.valid());
}

TEST_F(RewrittenLookup, APolicyForTheTakenTtlClearsTheRule) {
  for (const bool read_after : {false, true}) {
    const TestRule& rule = hold(
        [&](Flow& flow) {
          if (!read_after) {
            flow[ip::ttl];
          }
          flow.decrement_ttl();
          flow.match(policies_);
          if (read_after) {
            flow[ip::ttl];
          }
        },
        v4().ttl(64));
    update([&](Update& u) { u.set(policies_, 1, Match().with(ip::ttl, 63), 2); });
    EXPECT_FALSE(rule.valid());
    update([&](Update& u) { u.erase(policies_, 1); });
  }
}

}  // namespace
}  // namespace weir
