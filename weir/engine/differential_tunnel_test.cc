// Encapsulation and decapsulation.

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

class Through final : public PacketStage {
 public:
  void process(Batch& batch) override { (void)batch; }
};

Vxlan over_v4() {
  return {.vni = 0xabcdef,
          .src = ip_address("192.0.2.1"),
          .dst = ip_address("192.0.2.2"),
          .eth_src = mac(10),
          .eth_dst = mac(11),
          .dscp = 46};
}

Vxlan over_v6() {
  return {.vni = 5,
          .src = ip_address("2001:db8:ff::1"),
          .dst = ip_address("2001:db8:ff::2"),
          .eth_src = mac(10),
          .eth_dst = mac(11),
          .dst_port = 8472,
          .ttl = 7};
}

void set_members(GraphBuilder& graph, Group& group) {
  graph.apply([&group](Update& update) {
    update.set_members(
        group, {{port(1), mac(1), mac(2), true}, {port(2), mac(3), mac(4), false}, {port(3), mac(5), mac(6), true}});
  });
}

std::vector<Program> encapsulations() {
  return {
      one("over IPv4",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            return flow.output(port(1));
          }),
      one("over IPv6",
          [](Flow& flow) {
            flow.encapsulate(over_v6());
            return flow.output(port(1));
          }),
      one("after rewriting",
          [](Flow& flow) {
            if (flow.has(layers::ip)) {
              flow.set(ip::src, ip_address(flow.has(layers::ipv6) ? "2001:db8:9::9" : "10.9.9.9"));
              flow.set(ip::ecn, 1);
            }
            if (flow.has(layers::vlan)) {
              flow.pop_vlan();
            }
            flow.encapsulate(over_v6());
            return flow.output(port(1));
          }),
      one("that fits, over IPv4",
          [](Flow& flow) {
            if (!flow.fits(1'600)) {
              return flow.drop(refused);
            }
            flow.encapsulate(over_v4());
            return flow.output(port(flow.fits(110) ? 1 : flow.fits(140) ? 2 : flow.fits(1'536) ? 3 : 4));
          }),
      one("that fits, over IPv6 with a tag",
          [](Flow& flow) {
            if (flow.has(layers::vlan_inner)) {
              flow.pop_vlan();
            } else if (flow.has(layers::ip)) {
              flow.push_vlan(7);
            }
            flow.encapsulate(over_v6());
            return flow.output(port(flow.fits(40) ? 0 : flow.fits(130) ? 1 : flow.fits(160) ? 2 : 3));
          }),
      {"and select",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage([&group](Flow& flow) {
           flow.mirror(port(4));
           flow.encapsulate(over_v4());
           flow.mirror(port(5));
           return flow.select(group);
         });
         set_members(graph, group);
       }},
      one("and a read",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            return flow.output(port(flow[ip::ttl] ? 1 : 2));
          }),
      one("and a set",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            flow.set(eth::dst, mac(9));
            return flow.output(port(1));
          }),
      one("and a tag",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            flow.push_vlan(9);
            return flow.output(port(1));
          }),
      one("twice",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            flow.encapsulate(over_v6());
            return flow.output(port(1));
          }),
      one("and reject",
          [](Flow& flow) {
            flow.encapsulate(over_v4());
            return flow.reject(no_route);
          }),
      one("with a VNI too large",
          [](Flow& flow) {
            Vxlan vxlan = over_v4();
            vxlan.vni = 1U << 24U;
            flow.encapsulate(vxlan);
            return flow.output(port(1));
          }),
      one("between two families",
          [](Flow& flow) {
            Vxlan vxlan = over_v4();
            vxlan.dst = over_v6().dst;
            flow.encapsulate(vxlan);
            return flow.output(port(1));
          }),
      {"in one stage, verdict in the next",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) {
           flow.encapsulate(over_v4());
           return flow.next();
         });
         graph.stage([](Flow& flow) { return flow.output(port(flow.fits(200) ? 1 : 2)); });
         graph.connect(0, 1);
       }},
      {"through a packet stage and out again",
       [](GraphBuilder& graph) {
         Counter& counter = graph.state.counter("inner");
         const auto first = graph.stage([](Flow& flow) {
           Vxlan vxlan = flow.has(layers::ipv4) ? over_v6() : over_v4();
           vxlan.dst_port = 4789;
           flow.encapsulate(vxlan);
           return flow.next();
         });
         const auto through = graph.packet_stage<Through>();
         const auto out = graph.stage([](Flow& flow) {
           if (flow[vxlan::vni].value_or(0) != 5) {
             return flow.output(port(1));
           }
           flow.decapsulate();
           return flow.next();
         });
         const auto last = graph.stage([&counter](Flow& flow) {
           flow.count(counter);
           return flow.output(port(flow[tunnel::vni].value_or(0) == 5 ? 2 : 3));
         });
         graph.connect(first, through);
         graph.connect(through, out);
         graph.connect(out, last);
       }},
  };
}

template <class F>
auto if_tunnel(F then) {
  return [then](Flow& flow) -> Verdict {
    if (!flow.has(layers::vxlan)) {
      return flow.drop(refused);
    }
    return then(flow);
  };
}

std::vector<Program> decapsulations() {
  return {
      one("without asking",
          [](Flow& flow) {
            flow.decapsulate();
            return flow.output(port(1));
          }),
      one("and output", if_tunnel([](Flow& flow) {
            flow.decapsulate();
            return flow.output(port(1));
          })),
      one("and read", if_tunnel([](Flow& flow) {
            flow.decapsulate();
            return flow.output(port(flow.has(layers::ip) ? 1 : 2));
          })),
      one("and fits", if_tunnel([](Flow& flow) {
            flow.decapsulate();
            return flow.output(port(flow.fits(100) ? 1 : 2));
          })),
      one("and encapsulate", if_tunnel([](Flow& flow) {
            flow.decapsulate();
            flow.encapsulate(over_v4());
            return flow.output(port(1));
          })),
      {"and select by the inner packet",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage(if_tunnel([&group](Flow& flow) {
           flow.decapsulate();
           return flow.select(group);
         }));
         set_members(graph, group);
       }},
      {"and the rest",
       [](GraphBuilder& graph) {
         Counter& before = graph.state.counter("before");
         Counter& after = graph.state.counter("after");
         Meter& meter = graph.state.byte_meter("bytes", 100'000, 2'000);
         graph.stage(if_tunnel([&](Flow& flow) {
           flow.count(before);
           flow.mirror(port(2));
           flow.decapsulate();
           flow.count(after);
           flow.mirror(port(3));
           flow.meter(meter);
           return flow.flood();
         }));
         graph.apply([](Update& update) { update.set_flood_ports({port(0), port(1), port(4)}); });
       }},
      {"after rewriting",
       [](GraphBuilder& graph) {
         graph.stage(if_tunnel([](Flow& flow) {
           flow.set(l4::dst_port, 80);
           flow.set(ip::ecn, 3);
           if (!flow.has(layers::vlan)) {
             flow.push_vlan(4);
           }
           if (!flow.has(layers::vxlan) || flow[vxlan::vni].value_or(0) == 8) {
             return flow.output(port(5));
           }
           flow.decapsulate();
           return flow.output(port(1));
         }));
       }},
      one("not of a packet that got the port",
          [](Flow& flow) {
            if (flow.has(layers::udp) && !flow.has(layers::vxlan)) {
              flow.set(l4::dst_port, 4789);
            }
            return flow.output(port(flow.has(layers::vxlan) ? 1 : flow.has(layers::well_formed) ? 2 : 3));
          }),
      {"and look at the inner packet",
       [](GraphBuilder& graph) {
         Group& group = graph.state.group("members");
         graph.stage(if_tunnel([](Flow& flow) {
           flow.decapsulate();
           return flow.next();
         }));
         graph.stage([&group](Flow& flow) {
           if (flow[tunnel::vni].value_or(0) == 9) {
             return flow.output(port(4));
           }
           if (flow.has(layers::ip) && !flow.decrement_ttl()) {
             return flow.reject(time_exceeded);
           }
           if (flow.has(layers::vxlan)) {
             return flow.drop(refused);  // cannot be
           }
           return flow.select(group);
         });
         graph.connect(0, 1);
         set_members(graph, group);
       }},
      {"and into a packet stage",
       [](GraphBuilder& graph) {
         graph.stage(if_tunnel([](Flow& flow) {
           flow.decapsulate();
           return flow.next();
         }));
         graph.packet_stage<Through>();
         graph.stage([](Flow& flow) { return flow.output(port(flow.has(layers::tunnel) ? 1 : 2)); });
         graph.connect(0, 1);
         graph.connect(1, 2);
       }},
  };
}

TEST(Differential, Encapsulation) {
  for (const Program& program : encapsulations()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

TEST(Differential, Decapsulation) {
  for (const Program& program : decapsulations()) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

TEST(Differential, MutatedTunnels) {
  const std::uint64_t seed = 20'261;
  for (const auto& programs : {encapsulations(), decapsulations()}) {
    for (const Program& program : programs) {
      EXPECT_EQ(check_mutations(program, seed, 400), "") << program.name;
    }
  }
}

}  // namespace
}  // namespace weir::testing
