// Connections and their translation: all engines agree, with and without a rule cache.

#include <gmock/gmock.h>

#include <weir/engine/testing/conversations.h>
#include <weir/engine/testing/differential.h>

namespace weir::testing {
namespace {

constexpr DropReason invalid{"invalid_connection", "by a test"};
constexpr DropReason no_room{"no_room", "by a test"};

/// From port 0 come the hosts, from port 1 the servers; errors and strays from both.
Build firewall(std::uint32_t limit, ConnectionZone zone) {
  return [limit, zone](GraphBuilder& graph) {
    graph.state.limit_connections(limit);
    auto& policies = graph.state.classifier<bool>("policies");
    auto& closed = graph.state.versioned<bool>("closed", false);
    graph.stage([&, zone](Flow& flow) {
      if (!flow.has(layers::ip)) {
        return flow.next();
      }
      Connection connection = flow.connection(zone);
      if (connection.invalid()) {
        return flow.drop(invalid);
      }
      if (connection.is_new() && flow.read(closed)) {
        return flow.drop(refused);
      }
      const bool* allowed = flow.match(policies, connection);
      if (allowed != nullptr && !*allowed) {
        return flow.drop(refused);
      }
      if (connection.commit() == Committed::full) {
        return flow.drop(no_room);
      }
      return flow.output(port(connection.reply() ? 0 : 1));
    });
    graph.event("close", [&closed](Update& update) { update.set(closed, true); });
    graph.event("open", [&closed](Update& update) { update.set(closed, false); });
    graph.event("deny", [&policies](Update& update) {
      update.set(policies, 1, Match().with(ip::src, *IpPrefix::parse("10.0.0.1")).with(l4::dst_port, 80), false);
    });
    graph.event("allow", [&policies](Update& update) { update.erase(policies, 1); });
  };
}

Build translator(PortRange range) {
  return [range](GraphBuilder& graph) {
    graph.stage([range](Flow& flow) {
      if (!flow.has(layers::ip)) {
        return flow.next();
      }
      Connection connection = flow.connection(ConnectionZone::shared(1));
      if (connection.invalid()) {
        return flow.drop(invalid);
      }
      if (connection.is_new()) {
        const bool v6 = flow.has(layers::ipv6);
        Translation translation;
        translation.src_ports = range;
        if (flow.test(ip::src, inside(*IpPrefix::parse(v6 ? "2001:db8::/64" : "10.0.0.0/24")))) {
          translation.src = ip_address(v6 ? "2001:db8:9::1" : "203.0.113.1");
        }
        if (flow.test(ip::dst, equals(ip_address(v6 ? "2001:db8:1::9" : "10.0.1.9")))) {
          translation.dst = ip_address(v6 ? "2001:db8:1::1" : "10.0.1.1");
          if (flow.has(layers::ports)) {
            translation.dst_port = 53;
          }
        }
        const Committed committed = connection.commit(translation);
        if (committed == Committed::full || committed == Committed::no_port) {
          return flow.drop(no_room);
        }
      } else {
        connection.commit();
      }
      connection.translate();
      return flow.output(port(connection.reply() ? 0 : 1));
    });
  };
}

std::string run(const Build& build, const std::vector<std::string>& events, std::uint64_t seed) {
  Random random(seed);
  Differential nodes(build);
  Nanoseconds now = 1;
  for (unsigned batch = 0; batch < 400; ++batch) {
    std::vector<TestPacket> packets;
    for (std::uint32_t i = random.below(24); i > 0; --i) {
      packets.push_back({conversation_packet(random)});
    }
    std::string text = nodes.send(port(static_cast<std::uint16_t>(random.below(3))), packets, now);
    now += random.one_in(10) ? 20'000'000'000 : 1'000'000;
    if (text.empty() && random.one_in(8)) {
      text = nodes.idle(now);
    }
    if (text.empty() && !events.empty() && random.one_in(10)) {
      text = nodes.happen(events[random.below(static_cast<std::uint32_t>(events.size()))], now);
    }
    if (!text.empty()) {
      return fmt::format("seed {}, batch {}: {}", seed, batch, text);
    }
  }
  return nodes.close();
}

TEST(DifferentialConnection, Firewall) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(run(firewall(1000, {}), {"close", "open", "deny", "allow"}, seed), "");
  }
}

TEST(DifferentialConnection, FirewallThatIsFull) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(run(firewall(10, ConnectionZone::of_port(port(7))), {"close", "open"}, seed), "");
  }
}

TEST(DifferentialConnection, Translation) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EXPECT_EQ(run(translator({1024, 65'535}), {}, seed), "");
    EXPECT_EQ(run(translator({1024, 1027}), {}, seed), "");
  }
}

TEST(DifferentialConnection, WholeCorpus) {
  EXPECT_EQ(check({"firewall", firewall(1000, {})}), "");
  EXPECT_EQ(check({"translator", translator({1024, 1027})}), "");
}

}  // namespace
}  // namespace weir::testing
