// Rewrites, tags, guards, meters, counters and mirrors.

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

std::vector<Program> fields() {
  return {
      one("every field that is there",
          [](Flow& flow) {
            if (flow.has(layers::ethernet)) {
              flow.set(eth::dst, mac(1));
              flow.set(eth::src, mac(2));
            }
            if (flow.has(layers::vlan)) {
              flow.set(vlan::id, 0x1abc);  // 13 bits, of which the field takes 12
              flow.set(vlan::pcp, 13);
            }
            if (flow.has(layers::vlan_inner)) {
              flow.set(vlan::inner_pcp, 5);
              flow.set(vlan::inner_id, 0x321);
            }
            if (flow.has(layers::ip)) {
              flow.set(ip::dscp, 0x7f);
              flow.set(ip::ecn, 6);
              flow.set(ip::ttl, 9);
            }
            return flow.output(port(flow[ip::ttl].value_or(1) + flow[vlan::pcp].value_or(0) == 14 ? 1 : 2));
          }),
      one("Ethernet source, then destination",
          [](Flow& flow) {
            flow.set(eth::src, mac(2));
            flow.set(eth::dst, mac(1));
            flow.set(eth::src, mac(3));
            return flow.output(port(1));
          }),
      one("TTL to what it is",
          [](Flow& flow) {
            if (const auto ttl = flow[ip::ttl]) {
              flow.set(ip::ttl, *ttl);
              flow.set(ip::dscp, *flow[ip::dscp]);
              flow.set(ip::src, *flow[ip::src]);
            }
            return flow.output(port(1));
          }),
      one("DSCP alone",
          [](Flow& flow) {
            flow.set(ip::dscp, 10);
            return flow.output(port(1));
          }),
      one("a port without asking",
          [](Flow& flow) {
            flow.set(l4::src_port, 1);
            return flow.output(port(1));
          }),
      one("a field that cannot be set",
          [](Flow& flow) {
            if (flow.has(layers::tcp)) {
              flow.set(tcp::flags, 0);
            }
            return flow.output(port(1));
          }),
      one("an address of the other family",
          [](Flow& flow) {
            if (flow.has(layers::ip)) {
              flow.set(ip::dst, ip_address("10.0.0.9"));
            }
            return flow.output(port(1));
          }),
      one("NAT",
          [](Flow& flow) {
            if (!flow.has(layers::ip)) {
              return flow.output(port(2));
            }
            const bool v6 = flow.has(layers::ipv6);
            const bool ports = flow.has(layers::ports);
            flow.translate({.set_src = true,
                            .set_dst = true,
                            .set_src_port = ports,
                            .set_dst_port = ports,
                            .src = ip_address(v6 ? "2001:db8:aa::ffff" : "203.0.113.77"),
                            .dst = ip_address(v6 ? "::1:ffff:ffff" : "255.255.0.0"),
                            .src_port = 61'234,
                            .dst_port = 0xffff});
            return flow.output(port(1));
          }),
      one("NAT of the source, and back",
          [](Flow& flow) {
            if (const auto src = flow[ip::src]; src && !src->v6) {
              flow.set(ip::src, ip_address("0.0.0.0"));
              flow.set(ip::src, *src);
            }
            if (const auto src_port = flow[l4::src_port]; src_port && !flow.has(layers::fragment)) {
              flow.set(l4::src_port, 0);
              flow.set(l4::src_port, *src_port);
              flow.set(l4::dst_port, *src_port);
            }
            return flow.output(port(1));
          }),
      one("written values read back",
          [](Flow& flow) {
            if (!flow.has(layers::ipv4) || !flow.has(layers::ports)) {
              return flow.drop(refused);
            }
            flow.set(ip::dst, ip_address("10.7.7.7"));
            flow.set(l4::dst_port, 777);
            const bool same = flow[ip::dst] == Maybe<IpAddress>(ip_address("10.7.7.7")) &&
                              flow.test(l4::dst_port, below(778)) && !flow.test(l4::dst_port, below(777));
            return flow.output(port(same ? 1 : 2));
          }),
  };
}

std::vector<Program> tags() {
  return {
      one("push",
          [](Flow& flow) {
            flow.push_vlan(0xb064);
            return flow.output(port(1));
          }),
      one("push and set",
          [](Flow& flow) {
            flow.push_vlan(0xb064);
            flow.set(vlan::id, 0x111);
            flow.set(vlan::pcp, 1);
            if (flow.has(layers::vlan_inner)) {
              flow.set(vlan::inner_id, 0x222);
            }
            if (flow.has(layers::ipv4) && flow.has(layers::udp)) {
              flow.set(ip::src, ip_address("10.1.2.3"));
              flow.set(l4::dst_port, 7);
            }
            return flow.output(port(flow[vlan::inner_id].value_or(0) == 0x222 ? 1 : 2));
          }),
      one("pop",
          [](Flow& flow) {
            flow.pop_vlan();
            return flow.output(port(1));
          }),
      one("pop all",
          [](Flow& flow) {
            while (flow.has(layers::vlan)) {
              flow.pop_vlan();
            }
            return flow.output(port(flow[eth::type].value_or(0) == 0x0800 ? 1 : 2));
          }),
      one("pop, look, push",
          [](Flow& flow) {
            if (!flow.has(layers::vlan)) {
              return flow.flood();
            }
            const std::uint16_t id = *flow[vlan::id];
            flow.pop_vlan();
            const bool inner = flow[vlan::id].value_or(0) == 0x0c8;
            flow.push_vlan(static_cast<std::uint16_t>(id + 1));
            return flow.output(port(inner ? 1 : flow.test(vlan::id, equals(0x65)) ? 2 : 3));
          }),
      one("push, pop",
          [](Flow& flow) {
            if (flow.has(layers::vlan_inner)) {
              return flow.drop(refused);
            }
            flow.push_vlan(1);
            flow.pop_vlan();
            return flow.output(port(flow[vlan::id].value_or(9) % 3));
          }),
      one("push, read both",
          [](Flow& flow) {
            if (flow.has(layers::vlan_inner)) {
              flow.pop_vlan();
            }
            flow.push_vlan(0x0064);
            return flow.output(port(flow.test(vlan::inner_id, below(0x65)) ? 1
                                    : flow.test(vlan::id, below(1))        ? 2
                                                                           : 3));
          }),
      one("pop, read",
          [](Flow& flow) {
            if (flow.has(layers::vlan)) {
              flow.pop_vlan();
            }
            return flow.output(port(flow[vlan::id].value_or(9) % 3));
          }),
      one("push two",
          [](Flow& flow) {
            if (!flow.has(layers::vlan)) {
              flow.push_vlan(1);
              flow.push_vlan(2);
            }
            return flow.output(port(flow[vlan::inner_id].value_or(0) == 1 ? 1 : 2));
          }),
  };
}

std::vector<Program> guards() {
  return {
      one("TTL once",
          [](Flow& flow) {
            if (!flow.decrement_ttl()) {
              return flow.reject(time_exceeded);
            }
            return flow.output(port(1));
          }),
      one("TTL twice",
          [](Flow& flow) {
            if (!flow.has(layers::ip)) {
              return flow.drop(refused);
            }
            const bool once = flow.decrement_ttl();
            const bool twice = once && flow.decrement_ttl();
            return flow.output(port(twice ? 1 : once ? 2 : 3));
          }),
      one("TTL after a set",
          [](Flow& flow) {
            if (!flow.has(layers::ip)) {
              return flow.drop(refused);
            }
            const bool before = flow.decrement_ttl();
            flow.set(ip::ttl, 2);
            const bool once = flow.decrement_ttl();
            const bool twice = flow.decrement_ttl();
            return flow.output(port(before && once && !twice ? 1 : once && !twice ? 2 : 3));
          }),
      one("TTL read after decrementing",
          [](Flow& flow) {
            if (!flow.has(layers::ip) || !flow.decrement_ttl()) {
              return flow.drop(refused);
            }
            return flow.output(port(flow.test(ip::ttl, below(2)) ? 1 : flow.test(ip::ttl, below(4)) ? 2 : 3));
          }),
      one("fits",
          [](Flow& flow) {
            return flow.output(port(!flow.fits(46) ? flow.fits(1'500) ? 1 : 2 : flow.fits(0) ? 3 : 4));
          }),
      one("fits with a tag",
          [](Flow& flow) {
            const bool before = flow.fits(60);
            if (flow.has(layers::vlan)) {
              flow.pop_vlan();
            } else if (flow.has(layers::ethernet) && flow.test(eth::type, below(0x8100))) {
              flow.push_vlan(3);
            }
            return flow.output(port(before == flow.fits(60) ? 1 : 2));
          }),
      one("TCP flags",
          [](Flow& flow) {
            if (flow.test(tcp::flags, flags(0x12, 0x02))) {
              return flow.output(port(1));
            }
            return flow.output(port(flow.test(tcp::flags, flags(0x10, 0x10)) ? 2 : 3));
          }),
      one("many guards",
          [](Flow& flow) {
            for (const std::uint32_t mtu : {20U, 40U, 60U, 80U, 100U, 1'500U, 0xffff'ffffU}) {
              if (flow.fits(mtu)) {
                return flow.output(port(static_cast<std::uint16_t>(mtu % 3)));
              }
            }
            return flow.drop(refused);
          }),
      one("predicates",
          [](Flow& flow) {
            if (flow.test(ip::dst, inside(*IpPrefix::parse("10.0.0.0/15"))) && flow.test(l4::dst_port, below(1'024))) {
              return flow.output(port(1));
            }
            if (flow.test(ip::src, equals(ip_address("2001:db8::1"))) || flow.test(ip::dst, multicast())) {
              return flow.output(port(2));
            }
            return flow.output(port(flow.test(eth::src, multicast()) ? 3 : 4));
          }),
  };
}

std::vector<Program> effects() {
  return {
      with("counts at each length",
           [](GraphBuilder& graph) {
             Counter& first = graph.state.counter("first");
             Counter& second = graph.state.counter("second");
             return [&first, &second](Flow& flow) {
               flow.count(first);
               if (flow.has(layers::vlan)) {
                 flow.pop_vlan();
               }
               flow.count(second);
               flow.count(first);
               return flow.output(port(1));
             };
           }),
      with("a meter of packets",
           [](GraphBuilder& graph) {
             Counter& before = graph.state.counter("before");
             Counter& after = graph.state.counter("after");
             Meter& meter = graph.state.packet_meter("packets", 2'000, 10);
             return [&](Flow& flow) {
               flow.count(before);
               flow.mirror(port(2));
               flow.meter(meter);
               flow.count(after);
               flow.mirror(port(3));
               return flow.output(port(1));
             };
           }),
      with("two meters of bytes",
           [](GraphBuilder& graph) {
             Meter& meter = graph.state.byte_meter("bytes", 1'000'000, 5'000);
             Meter& other = graph.state.byte_meter("other", 500'000, 5'000);
             return [&](Flow& flow) {
               flow.meter(meter);
               if (flow.has(layers::ip)) {
                 flow.push_vlan(1);
                 flow.meter(other);
               }
               return flow.flood();
             };
           }),
      with("a meter whose packet fails",
           [](GraphBuilder& graph) {
             Meter& meter = graph.state.packet_meter("packets", 1'000, 3);
             return [&meter](Flow& flow) {
               flow.meter(meter);
               if (flow.has(layers::arp)) {
                 flow.set(ip::ttl, 1);
               }
               return flow.output(port(1));
             };
           }),
      {"mirrors",
       [](GraphBuilder& graph) {
         graph.stage([](Flow& flow) {
           flow.mirror(port(2));
           if (flow.has(layers::ipv4)) {
             flow.set(ip::src, ip_address("10.9.9.9"));
             flow.mirror(port(2));
             flow.decrement_ttl();
           }
           if (flow.has(layers::vlan)) {
             flow.pop_vlan();
           }
           flow.mirror(port(3));  // down
           flow.mirror(port(17));
           flow.set(eth::dst, mac(9));
           return flow.flood();
         });
         graph.set_up(port(3), false);
         graph.apply([](Update& update) { update.set_flood_ports({port(2), port(1), port(0)}); });
       }},
      with("mirrors before a failure",
           [](GraphBuilder& graph) {
             Counter& counter = graph.state.counter("counted");
             return [&counter](Flow& flow) {
               flow.mirror(port(2));
               flow.count(counter);
               flow.set(ip::ttl, 3);
               return flow.output(port(1));
             };
           }),
  };
}

void expect_alike(const std::vector<Program>& programs) {
  for (const Program& program : programs) {
    EXPECT_EQ(check(program), "") << program.name;
  }
}

TEST(Differential, Fields) { expect_alike(fields()); }
TEST(Differential, Tags) { expect_alike(tags()); }
TEST(Differential, Guards) { expect_alike(guards()); }
TEST(Differential, Effects) { expect_alike(effects()); }

TEST(Differential, MutatedRewrites) {
  for (const auto& programs : {fields(), tags(), guards(), effects()}) {
    for (const Program& program : programs) {
      EXPECT_EQ(check_mutations(program, 77, 600), "") << program.name;
    }
  }
}

// What all engines agree on is also right: packets with good checksums leave with good ones.
TEST(Reference, KeepsChecksumsRight) {
  for (const auto& programs : {fields(), tags(), guards()}) {
    for (const Program& program : programs) {
      for (const Specimen& specimen : corpus()) {
        if (!specimen.sound || !wrong_checksum(specimen.packet.bytes).empty()) {
          continue;
        }
        for (const auto& [number, sent] : reference_output(program.build, specimen.packet)) {
          if (number != 0) {  // not the ICMP errors that go back
            EXPECT_EQ(wrong_checksum(sent.at(0).bytes), "") << program.name << ": " << specimen.name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::testing
