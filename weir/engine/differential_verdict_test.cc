// Every verdict, packet stages, and stages that fail.

#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

// Changes a byte, drops, and spreads over its outputs by what it reads.
class Spread final : public PacketStage {
 public:
  explicit Spread(unsigned outputs) : outputs_(outputs) {}
  void process(Batch& batch) override {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::span<std::uint8_t> bytes = batch[i].bytes();
      if (bytes.size() < 14) {
        batch.drop(i, refused);
        continue;
      }
      bytes[11] = static_cast<std::uint8_t>(bytes[11] + 1);
      batch.send(i, static_cast<std::uint16_t>(batch[i].length % outputs_));
    }
  }
  [[nodiscard]] unsigned outputs() const override { return outputs_; }

 private:
  unsigned outputs_;
};

// Lets everything through.
class Through final : public PacketStage {
 public:
  void process(Batch& batch) override { (void)batch; }
};

std::vector<Member> members() {
  return {{port(1), mac(1), mac(2), true},
          {port(2), mac(3), mac(4), false},
          {port(3), mac(5), mac(6), true},
          {port(9), mac(7), mac(8), true}};
}

std::vector<Program> verdicts() {
  return {
      one("output", [](Flow& flow) { return flow.output(port(1)); }),
      one("output by ingress", [](Flow& flow) { return flow.output(port(flow.ingress().number == 0 ? 1 : 0)); }),
      one("output to an unknown port", [](Flow& flow) { return flow.output(port(9)); }),
      {"output to a port that is down",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) { return flow.output(port(3)); });
         graph.set_up(port(3), false);
       }},
      one("drop", [](Flow& flow) { return flow.drop(refused); }),
      one("next to nowhere", [](Flow& flow) { return flow.next(); }),
      {"entry nowhere",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) { return flow.output(port(1)); });
         graph.enter(port(0), Pipeline::nowhere);
       }},
      {"flood by VLAN",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) { return flow.flood(flow[vlan::id]); });
         graph.set_up(port(4), false);
         graph.apply([](Update& update) {
           update.set_flood_ports({port(0), port(1), port(2), port(3), port(4), port(11)});
           update.set_flood_domain(0x64, {port(0), port(2)});
           update.set_flood_domain(0x05, {port(0)});
         });
       }},
      one("flood without ports", [](Flow& flow) { return flow.flood(); }),
      {"select",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage([&group](Flow& flow) { return flow.select(group); });
         graph.apply([&group](Update& update) { update.set_members(group, members()); });
       }},
      {"select after NAT",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage([&group](Flow& flow) {
           if (flow.has(layers::ipv4)) {
             flow.set(ip::src, ip_address("198.51.100.7"));
           }
           return flow.select(NextHops{group.id(), 1'500});
         });
         graph.apply([&group](Update& update) { update.set_members(group, members()); });
       }},
      with("select without members",
           [](GraphBuilder& graph) {
             Group& group = graph.state.group("nobody");
             return [&group](Flow& flow) { return flow.select(group); };
           }),
      one("select of no group", [](Flow& flow) { return flow.select(NextHops{7, 1'500}); }),
      with("a read after select",
           [](GraphBuilder& graph) {
             Group& group = graph.state.group("nobody");
             return [&group](Flow& flow) {
               const Verdict verdict = flow.select(group);
               return flow.has(layers::ip) ? verdict : flow.drop(refused);
             };
           }),
      one("reject", [](Flow& flow) { return flow.reject(prohibited); }),
      one("reject some",
          [](Flow& flow) { return flow.fits(100) ? flow.reject(no_route) : flow.reject(too_big(1'280)); }),
      one("reject after rewriting",
          [](Flow& flow) {
            if (flow[vlan::id]) {
              flow.pop_vlan();
            } else if (flow.has(layers::ip)) {
              flow.push_vlan(0x0123);
            }
            if (flow.has(layers::udp)) {
              flow.set(l4::src_port, 99);
            }
            return flow.reject(time_exceeded);
          }),
      {"router",
       [](GraphBuilder& graph) {
         auto& routes = graph.state.prefixes<NextHops>("routes");
         Group& group = graph.state.group("members");
         graph.stage([&routes](Flow& flow) {
           if (!flow.has(layers::ip)) {
             return flow.drop(refused);
           }
           const NextHops* hops = flow.lookup(routes, ip::dst);
           if (hops == nullptr) {
             return flow.reject(no_route);
           }
           if (!flow.decrement_ttl()) {
             return flow.reject(time_exceeded);
           }
           if (!flow.fits(hops->mtu)) {
             return flow.reject(too_big(hops->mtu));
           }
           return flow.select(*hops);
         });
         graph.apply([&](Update& update) {
           update.set_members(group, members());
           update.set(routes, *IpPrefix::parse("10.0.0.0/8"), {group.id(), 1'500});
           update.set(routes, *IpPrefix::parse("2001:db8:1::/48"), {group.id(), 1'280});
         });
       }},
  };
}

std::vector<Program> failures() {
  return {
      one("a stage that is not in the graph",
          [](Flow& flow) {
            static const FunctionStage stranger([](Flow& f) { return f.next(); });
            return flow.to(stranger);
          }),
      with("an exception",
           [](GraphBuilder& graph) {
             Counter& counter = graph.state.counter("before");
             return [&counter](Flow& flow) -> Verdict {
               flow.count(counter);
               flow.mirror(port(2));
               if (flow.has(layers::ipv6)) {
                 throw std::runtime_error("a test");
               }
               return flow.output(port(1));
             };
           }),
      with("learned before a failure",
           [](GraphBuilder& graph) {
             auto& table = graph.state.table<MacAddress, PortId>("macs", {.capacity = 8});
             return [&table](Flow& flow) {
               flow.learn(table, flow[eth::src].value_or({}), flow.ingress());
               flow.pop_vlan();
               return flow.output(port(1));
             };
           }),
      {"a loop of stages",
       [](GraphBuilder& graph) {
         Counter& counter = graph.state.counter("rounds");
         graph.stage([&counter](Flow& flow) {
           flow.count(counter);
           return flow.next();
         });
         graph.stage([](Flow& flow) { return flow.has(layers::arp) ? flow.output(port(1)) : flow.next(); });
         graph.connect(0, 1);
         graph.connect(1, 0);
       }},
      with("every packet",
           [](GraphBuilder& graph) {
             // By turns: a rule would stay with the first.
             auto& turn = graph.keep(std::make_unique<unsigned>(0));
             return [&turn](Flow& flow) {
               flow.every_packet();
               return flow.output(port(static_cast<std::uint16_t>(++*turn % 3)));
             };
           }),
  };
}

std::vector<Program> packet_stages() {
  return {
      {"a packet stage in between",
       [](GraphBuilder& graph) {
         const auto first = graph.stage([](Flow& flow) {
           if (flow.has(layers::ip)) {
             flow.decrement_ttl();
           }
           return flow.has(layers::arp) ? flow.output(port(2)) : flow.next();
         });
         const auto spread = graph.packet_stage<Spread>(4U);
         const auto last = graph.stage([](Flow& flow) { return flow.output(port(flow[eth::dst] ? 3 : 4)); });
         const auto other = graph.stage([](Flow& flow) { return flow.reject(prohibited); });
         graph.connect(first, spread);
         graph.connect(spread, 0, last);
         graph.connect(spread, 1, other);
         graph.connect(spread, 3, last);  // output 2 leads nowhere
       }},
      {"a packet stage first",
       [](GraphBuilder& graph) {
         const auto spread = graph.packet_stage<Spread>(2U);
         const auto through = graph.packet_stage<Through>();
         const auto last = graph.stage([](Flow& flow) { return flow.output(port(flow[eth::dst] ? 3 : 4)); });
         graph.connect(spread, 0, through);
         graph.connect(spread, 1, last);
         graph.connect(through, last);
       }},
      {"a loop through a packet stage",
       [](GraphBuilder& graph) {
         const auto first = graph.stage([](Flow& flow) {
           if (flow.has(layers::ip) && !flow.decrement_ttl()) {
             return flow.output(port(1));
           }
           return flow.next();
         });
         const auto through = graph.packet_stage<Through>();
         graph.connect(first, through);
         graph.connect(through, first);
       }},
      {"packet stages one behind the other",
       [](GraphBuilder& graph) {
         // Some of a pass go to the first and some to the second; what leaves the first waits for the next pass.
         const auto split = graph.stage(
             [&graph](Flow& flow) { return flow.to(graph.packet_stage_at(flow.has(layers::ipv4) ? 1 : 2)); });
         const auto first = graph.packet_stage<Spread>(1U);
         const auto second = graph.packet_stage<Spread>(2U);
         const auto last = graph.stage([](Flow& flow) { return flow.output(port(1)); });
         graph.connect(first, second);
         graph.connect(second, last);  // output 1 leads nowhere
         (void)split;
       }},
      {"packet stages that meet",
       [](GraphBuilder& graph) {
         // Packets of one batch come to stage 3 in different passes; all leave by one port.
         const auto first = graph.packet_stage<Spread>(2U);
         const auto second = graph.packet_stage<Through>();
         const auto decide = graph.stage([&graph](Flow& flow) {
           flow.push_vlan(1);
           return flow.test(eth::dst, equals(mac(0))) ? flow.next() : flow.to(graph.packet_stage_at(3));
         });
         const auto third = graph.packet_stage<Spread>(1U);
         const auto last = graph.stage([](Flow& flow) { return flow.output(port(1)); });
         graph.connect(first, 0, second);
         graph.connect(first, 1, decide);
         graph.connect(second, decide);
         graph.connect(third, last);
       }},
  };
}

TEST(Differential, Verdicts) {
  for (const Program& program : verdicts()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

// Otherwise nothing above says anything about the rule cache.
TEST(Differential, TheRuleCacheIsInUse) {
  TestNode node(EngineKind::cached,
                [](GraphBuilder& graph) {
                  graph.stage([](Flow& flow) { return flow.output(port(flow[ip::ttl].value_or(0) > 64 ? 1 : 2)); });
                },
                {});
  const TestPacket packet{ethernet(ipv4({}, udp(1, 2, payload(3))))};
  for (Nanoseconds now = 1; now < 10; ++now) {
    node.send(port(0), {{packet, packet}}, now);
  }
  EXPECT_EQ(node.stats().misses.get(), 1U);
}

TEST(Differential, Failures) {
  for (const Program& program : failures()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

TEST(Differential, PacketStages) {
  for (const Program& program : packet_stages()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

}  // namespace
}  // namespace weir::testing
