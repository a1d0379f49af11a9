// Packets that wait for a neighbour's Ethernet address, through all engines.

#include <weir/engine/host/resolver.h>

#include <gmock/gmock.h>

#include <weir/engine/testing/differential.h>
#include <weir/packet/packet_builder.h>

namespace weir::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr Nanoseconds second = 1'000'000'000;
constexpr const char* own_mac = "02:00:00:00:ff:02";  // of port 1
constexpr const char* own_v4 = "192.0.2.2";
constexpr const char* own_v6 = "2001:db8:ff00::2";
constexpr const char* peer_mac = "02:00:00:00:00:0a";
constexpr const char* other_mac = "02:00:00:00:00:0b";
constexpr const char* peer_v4 = "192.0.2.10";
constexpr const char* peer_v6 = "2001:db8:ff00::a";

// Sends IP by port 1, ARP and neighbour discovery to the host; counts what it forwards.
Build router() {
  return [](GraphBuilder& graph) {
    Counter& counter = graph.state.counter("forwarded");
    graph.stage([&counter](Flow& flow) {
      const auto type = flow[icmp::type];
      if (flow.has(layers::arp) || (flow.has(layers::icmpv6) && type && (*type == 135 || *type == 136))) {
        return flow.to_host();
      }
      if (!flow.has(layers::ip)) {
        return flow.drop(refused);
      }
      flow.count(counter);
      flow.decrement_ttl();
      const IpAddress dst = *flow[ip::dst];
      const MacAddress* mac = flow.neighbour(port(1), dst);
      if (mac == nullptr) {
        return flow.resolve(port(1), dst);
      }
      flow.set(eth::dst, *mac);
      return flow.output(port(1));
    });
    graph.event("set", [&state = graph.state](Update& update) {
      update.set(state.neighbours().table(), {port(1), ip_address(peer_v4)}, *MacAddress::parse(peer_mac));
    });
    graph.event("down", [](Update&) {});
  };
}

TestPacket to(const char* address, std::uint16_t number = 1) {
  return {PacketBuilder().ipv4("198.51.100.1", address).udp(number, 2000).payload(20).bytes()};
}
TestPacket to_v6(const char* address) {
  return {PacketBuilder().ipv6("2001:db8:1::1", address).udp(1, 2000).payload(20).bytes()};
}
TestPacket arp_reply(const char* mac, const char* sender, const char* target = own_v4) {
  return {PacketBuilder().eth(mac, own_mac).arp(2, mac, sender, own_mac, target).bytes()};
}
Bytes arp_request(const char* to, const char* target_mac) {
  return PacketBuilder().eth(own_mac, to).arp(1, own_mac, own_v4, target_mac, peer_v4).pad_to(60).bytes();
}
Bytes arp_broadcast() { return arp_request("ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"); }

class Waiting : public ::testing::Test {
 protected:
  void send(std::uint16_t ingress, const std::vector<TestPacket>& packets) {
    ASSERT_EQ(nodes_.send(port(ingress), packets, now_), "");
    note();
  }
  // Time passes, and a worker is between batches.
  void pass(Nanoseconds time = 0) {
    now_ += time;
    ASSERT_EQ(nodes_.idle(now_), "");
    note();
  }
  void note() {
    for (const auto& [out, packets] : nodes_.observed().sent) {
      for (const Sent& sent : packets) {
        sent_[out].push_back(sent.bytes);
      }
    }
  }
  std::vector<Bytes> sent(std::uint16_t out) { return std::exchange(sent_[out], {}); }
  std::uint64_t dropped(const std::string& reason) const {
    const auto place = nodes_.observed().drops.find(reason);
    return place == nodes_.observed().drops.end() ? 0 : place->second;
  }
  void learn_peer() {
    send(0, {to(peer_v4)});
    send(1, {arp_reply(peer_mac, peer_v4)});
    pass();
    ASSERT_THAT(sent(1), SizeIs(2));
  }
  void end() { EXPECT_EQ(nodes_.close(), ""); }

  Differential nodes_{router()};
  Nanoseconds now_ = 1;
  std::map<std::uint16_t, std::vector<Bytes>> sent_;
};

Bytes forwarded(const TestPacket& packet, const char* mac) {
  Bytes bytes = packet.bytes;
  const MacAddress to = *MacAddress::parse(mac);
  std::ranges::copy(to.bytes, bytes.begin());
  --bytes[22];
  ++bytes[24];  // of the header's checksum, which is not at a carry here
  return bytes;
}

TEST_F(Waiting, PacketsLeaveInOrderWhenTheAnswerComes) {
  send(0, {to(peer_v4, 1), to(peer_v4, 2)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()}) << "it is asked for once";
  EXPECT_EQ(nodes_.observed().waiting, 2U);
  EXPECT_EQ(nodes_.observed().counters[0].second.first, 0U) << "not forwarded yet";
  send(0, {to(peer_v4, 3)});
  EXPECT_THAT(sent(1), IsEmpty());
  send(1, {arp_reply(peer_mac, peer_v4)});
  pass();
  EXPECT_EQ(sent(1), (std::vector<Bytes>{forwarded(to(peer_v4, 1), peer_mac), forwarded(to(peer_v4, 2), peer_mac),
                                         forwarded(to(peer_v4, 3), peer_mac)}));
  EXPECT_EQ(nodes_.observed().waiting, 0U);
  EXPECT_EQ(nodes_.observed().counters[0].second.first, 3U);
  send(0, {to(peer_v4, 4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4, 4), peer_mac)});
  end();
}

TEST_F(Waiting, Ipv6) {
  send(0, {to_v6(peer_v6)});
  const IpAddress peer = ip_address(peer_v6);
  const Bytes target(peer.bytes.begin(), peer.bytes.end());
  Bytes content = target;
  content.insert(content.end(), {1, 1, 2, 0, 0, 0, 0xff, 2});
  EXPECT_EQ(sent(1), std::vector<Bytes>{PacketBuilder()
                                            .eth(own_mac, "33:33:ff:00:00:0a")
                                            .ipv6(own_v6, "ff02::1:ff00:a")
                                            .ttl(255)
                                            .icmpv6(135)
                                            .payload(content)
                                            .bytes()});
  content = target;
  content.insert(content.end(), {2, 1, 2, 0, 0, 0, 0, 0x0a});
  send(1, {{PacketBuilder()
                .eth(peer_mac, own_mac)
                .ipv6(peer_v6, own_v6)
                .ttl(255)
                .icmpv6(136, 0, 0x60000000)
                .payload(content)
                .bytes()}});
  pass();
  ASSERT_THAT(sent(1), SizeIs(1));
  end();
}

TEST_F(Waiting, ThreeTriesThenTheSenderIsTold) {
  send(0, {to(peer_v4)});
  for (int i = 0; i < 4; ++i) {
    pass(second - 1);
    pass(1);
  }
  EXPECT_EQ(sent(1), (std::vector<Bytes>{arp_broadcast(), arp_broadcast(), arp_broadcast()}));
  EXPECT_EQ(dropped("neighbour_unreachable"), 1U);
  EXPECT_EQ(nodes_.observed().waiting, 0U);
  const auto told = sent(0);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0][34], 3);
  EXPECT_EQ(told[0][35], 1);
  EXPECT_EQ(wrong_checksum(told[0]), "");
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()}) << "the next packet asks anew";
  EXPECT_EQ(nodes_.finish(now_), "");
  EXPECT_EQ(dropped("kept_at_end"), 1U);
  end();
}

TEST_F(Waiting, TheNewestOfOneNeighbourStay) {
  std::vector<TestPacket> packets;
  for (std::uint16_t i = 0; i < Resolver::packets_each + 2; ++i) {
    packets.push_back(to(peer_v4, i));
  }
  send(0, packets);
  EXPECT_EQ(dropped("neighbour_queue_full"), 2U);
  send(1, {arp_reply(peer_mac, peer_v4)});
  pass();
  const auto out = sent(1);
  ASSERT_THAT(out, SizeIs(1 + Resolver::packets_each));
  EXPECT_EQ(out[1], forwarded(packets[2], peer_mac));
  end();
}

TEST_F(Waiting, NeighboursThatAreAskedForAreLimited) {
  std::vector<TestPacket> packets;
  for (unsigned i = 0; i < Resolver::resolving_limit + 4; ++i) {
    packets.push_back(to(fmt::format("192.0.{}.{}", 2 + i / 200, 20 + i % 200).c_str()));
    if (packets.size() == 100 || i == Resolver::resolving_limit + 3) {
      send(0, packets);
      packets.clear();
    }
  }
  EXPECT_EQ(dropped("resolving_limit"), 4U);
  EXPECT_EQ(nodes_.observed().waiting, Resolver::resolving_limit);
  pass(4 * second);
  pass(second);
  pass(second);
  pass(second);
  EXPECT_EQ(nodes_.observed().waiting, 0U) << "the limit is not used up for ever";
  end();
}

TEST_F(Waiting, FramesAreLimited) {
  // Of 9 neighbours with 16 packets of 8 frames each, 8 find room.
  constexpr std::size_t bytes = 21'000;
  std::vector<TestPacket> packets;
  for (unsigned i = 0; i < 9; ++i) {
    for (unsigned p = 0; p < Resolver::packets_each; ++p) {
      const std::string dst = fmt::format("192.0.2.{}", 20 + i);
      packets.push_back({PacketBuilder().ipv4("198.51.100.1", dst).udp(1, 2).payload(bytes).bytes()});
    }
    send(0, packets);
    packets.clear();
  }
  EXPECT_EQ(nodes_.observed().waiting, Resolver::frames_limit / 8);
  EXPECT_EQ(dropped("waiting_limit"), Resolver::packets_each);
  end();
}

TEST_F(Waiting, AnswersThatNobodyAskedForAddNothing) {
  send(1, {arp_reply(peer_mac, peer_v4), arp_reply(peer_mac, "192.0.2.200")});
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()});
  send(1, {arp_reply(peer_mac, "10.9.9.9"), arp_reply(peer_mac, peer_v4)});
  pass();
  EXPECT_THAT(nodes_.observed().tables, SizeIs(1));
  EXPECT_EQ(nodes_.observed().tables[0].second, 1U);
  end();
}

TEST_F(Waiting, AStrangerOnAnotherNetworkIsNotLearned) {
  send(0, {to("10.9.9.9")});
  send(1, {arp_reply(peer_mac, "10.9.9.9")});
  pass();
  EXPECT_EQ(nodes_.observed().waiting, 1U);
  EXPECT_EQ(nodes_.finish(now_), "");
  end();
}

TEST_F(Waiting, WhoAsksTheNodeIsLearned) {
  send(1, {{PacketBuilder()
                .eth(peer_mac, "ff:ff:ff:ff:ff:ff")
                .arp(1, peer_mac, peer_v4, "00:00:00:00:00:00", own_v4)
                .bytes()}});
  sent(1);
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), peer_mac)});
  end();
}

TEST_F(Waiting, AnAnnouncementMovesWhatIsKnown) {
  learn_peer();
  const TestPacket announcement{PacketBuilder()
                                    .eth(other_mac, "ff:ff:ff:ff:ff:ff")
                                    .arp(1, other_mac, peer_v4, "00:00:00:00:00:00", peer_v4)
                                    .bytes()};
  send(1, {announcement});
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), other_mac)});
  end();
}

TEST_F(Waiting, AnnouncementsOfOthersAddNothing) {
  send(1, {{PacketBuilder()
                .eth(other_mac, "ff:ff:ff:ff:ff:ff")
                .arp(1, other_mac, peer_v4, "00:00:00:00:00:00", peer_v4)
                .bytes()}});
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()});
  end();
}

TEST_F(Waiting, AKnownNeighbourIsAskedInTimeAndStaysKnown) {
  learn_peer();
  for (int minute = 0; minute < 3; ++minute) {
    pass(Resolver::refresh_after);
    EXPECT_EQ(sent(1), std::vector<Bytes>{arp_request(peer_mac, peer_mac)});
    send(1, {arp_reply(peer_mac, peer_v4)});
    send(0, {to(peer_v4)});
    EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), peer_mac)});
  }
  end();
}

TEST_F(Waiting, ANeighbourThatIsSilentIsForgottenAndAskedForAgain) {
  learn_peer();
  pass(Resolver::refresh_after);
  pass(second);
  pass(second);
  pass(second);
  EXPECT_EQ(sent(1), std::vector<Bytes>(3, arp_request(peer_mac, peer_mac)));
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), peer_mac)}) << "until its time is over";
  pass(Neighbours::lifetime - Resolver::refresh_after);
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()});
  send(1, {arp_reply(other_mac, peer_v4)});
  pass();
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), other_mac)}) << "nothing is lost";
  end();
}

TEST_F(Waiting, ControlMaySayTheAddress) {
  send(0, {to(peer_v4)});
  sent(1);
  EXPECT_EQ(nodes_.happen("set", now_), "");
  pass(second);
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), peer_mac)});
  end();
}

TEST_F(Waiting, ResolvesWhatIsWantedWithoutPackets) {
  for (const EngineKind kind : {EngineKind::cached, EngineKind::uncached, EngineKind::reference}) {
    nodes_.node(kind).state().neighbours().want({{port(1), ip_address(peer_v4)}});
  }
  pass(second);
  EXPECT_EQ(sent(1), std::vector<Bytes>{arp_broadcast()});
  send(1, {arp_reply(peer_mac, peer_v4)});
  send(0, {to(peer_v4)});
  EXPECT_EQ(sent(1), std::vector<Bytes>{forwarded(to(peer_v4), peer_mac)});
  end();
}

TEST(Resolve, StagesThatResolveWhatIsKnownDoNotGoOnForEver) {
  const Build stubborn = [](GraphBuilder& graph) {
    graph.stage([](Flow& flow) { return flow.resolve(port(1), ip_address(peer_v4)); });
    graph.apply([&state = graph.state](Update& update) {
      update.set(state.neighbours().table(), {port(1), ip_address(peer_v4)}, *MacAddress::parse(peer_mac));
    });
  };
  Differential nodes(stubborn);
  EXPECT_EQ(nodes.send(port(0), {{to(peer_v4), to(peer_v4)}}, 1), "");
  EXPECT_EQ(nodes.observed().drops.at("loop_limit"), 2U);
  EXPECT_EQ(nodes.close(), "");
}

TEST(Resolve, NotOnAPortThatIsDownOrMissing) {
  const Build nowhere = [](GraphBuilder& graph) {
    graph.stage(
        [](Flow& flow) { return flow.resolve(port(flow.has(layers::ipv4) ? 3 : 0xffff), ip_address(peer_v4)); });
    graph.set_up(port(3), false);
  };
  Differential nodes(nowhere);
  EXPECT_EQ(nodes.send(port(0), {{to(peer_v4), to_v6(peer_v6)}}, 1), "");
  EXPECT_EQ(nodes.observed().drops.at("port_down"), 1U);
  EXPECT_EQ(nodes.observed().drops.at("port_unknown"), 1U);
  EXPECT_EQ(nodes.close(), "");
}

// Whatever was done before, the packet waits as it came.
TEST(Resolve, PacketsOfEveryKind) {
  const auto undone = [](GraphBuilder& graph) {
    Counter& counter = graph.state.counter("done");
    return [&counter](Flow& flow) {
      flow.count(counter);
      flow.mirror(port(2));
      const bool vxlan = flow.has(layers::vxlan);
      if (flow.has(layers::ip)) {
        flow.decrement_ttl();
        flow.set(eth::src, mac(9));
      }
      if (!flow.neighbour(port(1), ip_address(peer_v4))) {
        if (vxlan) {
          flow.decapsulate();
        }
        return flow.resolve(port(1), ip_address(peer_v4));
      }
      return flow.output(port(1));
    };
  };
  EXPECT_EQ(check(with("resolve", undone)), "");
}

}  // namespace
}  // namespace weir::testing
