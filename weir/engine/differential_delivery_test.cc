// The delivery side of ports: what passes it, what it may do, and that no engine tells the ways into it apart.

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

using ::testing::SizeIs;

class Through final : public PacketStage {
 public:
  void process(Batch& batch) override { (void)batch; }
};

MacAddress mark_of(PortId port) { return mac(static_cast<std::uint8_t>(0x40 + port.number)); }

// Marks what it delivers, and holds back a part of it.
Verdict mark(Flow& flow) {
  if (flow.has(layers::udp) && flow[l4::dst_port].value_or(0) == 53) {
    return flow.drop(refused);
  }
  if (flow.has(layers::ethernet)) {
    flow.set(eth::src, mark_of(flow.egress()));
  }
  return flow.next();
}

using Decide = std::function<Verdict(Flow&)>;

/// Stage 0 decides; delivery to ports 1 and 2 begins at stage 1, which goes on to stage 2, the last. Port 3 has none.
Program delivering(
    std::string name, Decide decide, Decide first = mark, Decide last = [](Flow& flow) { return flow.next(); }) {
  return {std::move(name), [decide, first, last](GraphBuilder& graph) {
            graph.stage(decide);
            graph.stage(first);
            graph.stage(last);
            graph.connect(1, 2);
            graph.deliver(port(1), 1);
            graph.deliver(port(2), 1);
            graph.apply([](Update& update) {
              update.set_flood_ports({port(0), port(1), port(2), port(3), port(11)});
              update.set_flood_domain(0x64, {port(0), port(2)});
            });
          }};
}

Vxlan tunnel() {
  return {
      .vni = 7, .src = ip_address("192.0.2.1"), .dst = ip_address("192.0.2.2"), .eth_src = mac(1), .eth_dst = mac(2)};
}

std::vector<Program> programs() {
  std::vector<Program> list{
      delivering("output", [](Flow& flow) { return flow.output(port(1)); }),
      delivering("output by ingress", [](Flow& flow) { return flow.output(port(flow.ingress().number == 0 ? 1 : 3)); }),
      delivering("output to a port without", [](Flow& flow) { return flow.output(port(3)); }),
      delivering("flood", [](Flow& flow) { return flow.flood(flow[vlan::id]); }),
      delivering("blind flood", [](Flow& flow) { return flow.flood(); }),
      delivering("decapsulated, then output",
                 [](Flow& flow) {
                   if (flow.has(layers::vxlan)) {
                     flow.decapsulate();
                   }
                   return flow.output(port(2));
                 }),
      delivering("decapsulated, then flooded",
                 [](Flow& flow) {
                   if (flow.has(layers::vxlan)) {
                     flow.decapsulate();
                   }
                   return flow.flood();
                 }),
      delivering("encapsulated: passed over",
                 [](Flow& flow) {
                   if (flow.has(layers::ipv4)) {
                     flow.encapsulate(tunnel());
                     return flow.output(port(1));
                   }
                   if (flow.has(layers::ethernet)) {
                     flow.encapsulate(tunnel());
                   }
                   return flow.flood();
                 }),
      delivering("mirrored: passed over",
                 [](Flow& flow) {
                   flow.mirror(port(1));
                   return flow.output(port(2));
                 }),
      delivering("rewritten before delivery",
                 [](Flow& flow) {
                   if (flow.has(layers::ip)) {
                     flow.set(ip::ttl, 9);
                   }
                   if (flow.has(layers::vlan)) {
                     flow.pop_vlan();
                   }
                   return flow.has(layers::udp) ? flow.output(port(1)) : flow.flood();
                 }),
      delivering(
          "rejected in delivery",
          [](Flow& flow) { return flow.ingress().number == 0 ? flow.output(port(1)) : flow.flood(); },
          [](Flow& flow) { return flow.has(layers::tcp) ? flow.reject(prohibited) : mark(flow); }),
      delivering(
          "TTL and length in delivery",
          [](Flow& flow) { return flow.has(layers::arp) ? flow.output(port(1)) : flow.flood(); },
          [](Flow& flow) {
            return flow.has(layers::ip) && !flow.decrement_ttl() ? flow.reject(time_exceeded)
                   : flow.fits(100)                              ? flow.next()
                                                                 : flow.reject(too_big(1'280));
          }),
      {"by a packet stage and back",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) { return flow.has(layers::udp) ? flow.output(port(1)) : flow.flood(); });
         const auto through = graph.packet_stage<Through>();
         const auto last = graph.stage(mark);
         graph.connect(through, last);
         graph.deliver(port(1), through);
         graph.deliver(port(2), graph.stage([&graph, through](Flow& flow) {
           return flow.has(layers::tcp) ? flow.to(graph.packet_stage_at(through)) : flow.next();
         }));
         graph.apply([](Update& update) { update.set_flood_ports({port(0), port(1), port(2)}); });
       }},
      {"a stage on both sides",
       [](GraphBuilder& graph) {
         // Looked up at the same stage, by the same port's number, when it comes in and on its way out.
         const auto through = graph.packet_stage<Through>();
         const auto both = graph.stage([](Flow& flow) {
           const Verdict out = flow.output(port(1));
           return flow.has(layers::tcp) ? flow.next() : out;
         });
         graph.connect(through, both);
         graph.deliver(port(1), through);
       }},
      {"select",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage([&group](Flow& flow) {
           if (flow.has(layers::ipv6)) {
             flow.encapsulate(tunnel());
           }
           return flow.select(group);
         });
         const auto first = graph.stage(mark);
         graph.deliver(port(1), first);
         graph.deliver(port(2), first);
         graph.deliver(port(9), first);
         graph.apply([&group](Update& update) {
           update.set_members(group, {{port(1), mac(1), mac(2), true},
                                      {port(2), mac(3), mac(4), false},
                                      {port(3), mac(5), mac(6), true},
                                      {port(9), mac(7), mac(8), true}});
         });
       }},
  };
  // What a delivery stage may not do drops the packet.
  for (const auto& [name, decide] : std::initializer_list<std::pair<const char*, Decide>>{
           {"output", [](Flow& flow) { return flow.output(port(3)); }},
           {"flood", [](Flow& flow) { return flow.flood(); }},
           {"ingress", [](Flow& flow) { return flow.ingress().number == 0 ? flow.next() : flow.drop(refused); }},
           {"to_host", [](Flow& flow) { return flow.to_host(); }},
           {"resolve", [](Flow& flow) { return flow.resolve(port(0), ip_address("192.0.2.9")); }},
           {"encapsulate",
            [](Flow& flow) {
              if (flow.has(layers::ethernet)) {
                flow.encapsulate(tunnel());
              }
              return flow.next();
            }},
           {"decapsulate",
            [](Flow& flow) {
              if (flow.has(layers::vxlan)) {
                flow.decapsulate();
              }
              return flow.next();
            }},
       }) {
    list.push_back(delivering(
        std::string(name) + " in delivery",
        [](Flow& flow) { return flow.has(layers::udp) ? flow.output(port(1)) : flow.flood(); }, decide));
  }
  list.push_back(delivering("egress outside", [](Flow& flow) { return flow.output(flow.egress()); }));
  return list;
}

TEST(DifferentialDelivery, Corpus) {
  for (const Program& program : programs()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

TEST(DifferentialDelivery, Mutations) {
  std::uint64_t seed = 1;
  for (const Program& program : programs()) {
    EXPECT_EQ(check_mutations(program, seed++, 300), "") << program.name;
  }
}

TestPacket to_port(std::uint16_t udp_port) { return {ethernet(ipv4({}, udp(1000, udp_port, payload(20))))}; }

TEST(DifferentialDelivery, RulesFollowTheChangeOfADeliverySide) {
  for (const bool flooded : {false, true}) {
    Differential nodes([flooded](GraphBuilder& graph) {
      graph.stage([flooded](Flow& flow) { return flooded ? flow.flood() : flow.output(port(1)); });
      graph.stage([](Flow& flow) { return flow.drop(refused); });
      graph.may_deliver();
      graph.apply([](Update& update) { update.set_flood_ports({port(0), port(1)}); });
      graph.event("begin", [](Update& update) { update.set_delivery(port(1), 1); });
      graph.event("end", [](Update& update) { update.set_delivery(port(1), Deliveries::nowhere); });
      graph.event("forget", [](Update& update) { update.forget(port(1)); });
    });
    const std::vector<TestPacket> packets(4, to_port(80));
    const auto delivered = [&] {
      EXPECT_EQ(nodes.send(port(0), packets, 1), "");
      return nodes.observed().sent.contains(1);
    };
    EXPECT_TRUE(delivered());
    EXPECT_EQ(nodes.happen("begin", 2), "");
    EXPECT_FALSE(delivered());
    EXPECT_EQ(nodes.happen("end", 3), "");
    EXPECT_TRUE(delivered());
    EXPECT_EQ(nodes.happen("begin", 4), "");
    EXPECT_FALSE(delivered());
    if (!flooded) {
      EXPECT_EQ(nodes.happen("forget", 5), "");
      EXPECT_TRUE(delivered()) << "another port of this number has no delivery side of its own";
    }
    EXPECT_EQ(nodes.close(), "");
  }
}

TEST(DifferentialDelivery, CopiesOfAFloodShareTheRulesOfTheirPort) {
  Differential nodes(delivering("flood", [](Flow& flow) { return flow.flood(); }).build);
  for (std::uint16_t in = 3; in < 6; ++in) {
    const std::vector<TestPacket> packets(32, to_port(80));
    EXPECT_EQ(nodes.send(port(in), packets, 1), "");
    EXPECT_THAT(nodes.observed().sent.at(1), SizeIs(32));
    EXPECT_THAT(nodes.observed().sent.at(2), SizeIs(32));
  }
  // One for each port they came in by would be six.
  const WorkerStats& stats = nodes.node(EngineKind::cached).stats();
  EXPECT_EQ(stats.installed.get(), 3U) << "the flood, and one for each port with a delivery side";
  EXPECT_EQ(nodes.close(), "");
}

TEST(DifferentialDelivery, PortWithoutAnyCostsNothing) {
  Differential nodes([](GraphBuilder& graph) {
    graph.stage([](Flow& flow) { return flow.output(port(flow.ingress().number == 0 ? 1 : 2)); });
    graph.deliver(port(2), graph.stage(mark));
  });
  EXPECT_EQ(nodes.send(port(0), std::vector<TestPacket>(8, to_port(80)), 1), "");
  EXPECT_EQ(nodes.send(port(0), std::vector<TestPacket>(8, to_port(80)), 2), "");
  const WorkerStats& stats = nodes.node(EngineKind::cached).stats();
  EXPECT_EQ(stats.installed.get(), 1U);
  EXPECT_EQ(stats.port_hits.get(), 8U) << "not even parsed";
  EXPECT_EQ(nodes.close(), "");
}

TEST(DifferentialDelivery, ErrorsGoBackWhereThePacketCameFrom) {
  for (const bool flooded : {false, true}) {
    Differential nodes(delivering(
                           "", [flooded](Flow& flow) { return flooded ? flow.flood() : flow.output(port(1)); },
                           [](Flow& flow) { return flow.reject(prohibited); })
                           .build);
    EXPECT_EQ(nodes.send(port(4), std::vector<TestPacket>{to_port(80)}, 1), "");
    EXPECT_THAT(nodes.observed().sent.at(4), SizeIs(flooded ? 2 : 1));
    EXPECT_EQ(nodes.observed().sent.contains(1), false);
    EXPECT_EQ(nodes.close(), "");
  }
}

}  // namespace
}  // namespace weir::testing
