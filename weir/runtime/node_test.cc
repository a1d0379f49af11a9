#include <weir/runtime/node.h>

#include <atomic>
#include <deque>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/base/descriptor.h>
#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using testing::HasSubstr;

std::unique_ptr<Node> make_node(NodeOptions options) {
  options.frames = 4096;
  options.rule_cache = options.rule_cache == 65'536 ? 1024 : options.rule_cache;
  auto node = Node::create(options);
  EXPECT_TRUE(node);
  return std::move(*node);
}

// in + cloned + originated = out + dropped + consumed + held (I4).
void expect_accounted(const Summary& s) {
  EXPECT_EQ(s.in_packets() + s.cloned + s.originated, s.out_packets() + s.dropped() + s.consumed + s.held);
}

TEST(Node, RefusesImpossibleOptions) {
  EXPECT_THAT(Node::create({.workers = 0}).error().message, HasSubstr("give 1 to 64"));
  EXPECT_THAT(Node::create({.batch = 257}).error().message, HasSubstr("give 1 to 256"));
  EXPECT_THAT(Node::create({.decision_share = {0}}).error().message, HasSubstr("give 1 to 100"));
  EXPECT_THAT(Node::create({.frames = 1}).error().message, HasSubstr("give 64"));
}

TEST(Node, NamesThePortThatIsWrong) {
  auto node = make_node({});
  EXPECT_THAT(node->add_port("a", "memry:").error().message, HasSubstr("did you mean 'memory'"));
  ASSERT_TRUE(node->add_port("a", "memory:"));
  EXPECT_THAT(node->add_port("a", "memory:").error().message, HasSubstr("two ports are named 'a'"));
  EXPECT_THAT(node->start().error().message, HasSubstr("port 'a' is not connected"));
}

struct Kind {
  EngineKind engine;
  unsigned workers;
  std::uint32_t rule_cache;
  Idle idle;
};

class NodeKinds : public testing::TestWithParam<Kind> {};

// The same packets, whatever the engine and however many workers: the digest does not depend on their order.
TEST_P(NodeKinds, ForwardsFiniteInputCompletely) {
  const Kind kind = GetParam();
  auto node =
      make_node({.workers = kind.workers, .idle = kind.idle, .engine = kind.engine, .rule_cache = kind.rule_cache});
  const auto in = node->add_port("in", "memory:flows=200,count=20000,order=random,size=200");
  const auto out = node->add_port("out", "memory:");
  ASSERT_TRUE(in && out);
  Counter& counter = node->state().counter("all");
  const auto& stage = node->graph().stage("stage", [to = *out, &counter](Flow& flow) {
    flow.count(counter);
    if (flow.test(l4::src_port, below(0))) {
      return flow.drop({"never", "cannot be"});
    }
    flow.set(eth::dst, MacAddress{{2, 0, 0, 0, 0, 9}});
    return flow.decrement_ttl() ? flow.output(to) : flow.reject(time_exceeded);
  });
  node->graph().connect(*in, stage);
  node->graph().connect(*out, stage);
  ASSERT_TRUE(node->run(std::chrono::seconds(60)));
  const Summary s = node->summary();
  EXPECT_EQ(s.ports[0].in_packets, 20'000U);
  EXPECT_EQ(s.ports[1].out_packets, 20'000U);
  EXPECT_EQ(counter.packets(), 20'000U);
  expect_accounted(s);
  if (kind.engine == EngineKind::core && kind.rule_cache != 0) {
    EXPECT_GT(s.hits(), 19'000U);
  } else {
    EXPECT_EQ(s.misses, 20'000U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NodeKinds,
                         testing::Values(Kind{EngineKind::core, 1, 1024, Idle::poll},
                                         Kind{EngineKind::core, 2, 1024, Idle::adaptive},
                                         Kind{EngineKind::core, 1, 0, Idle::interrupt},
                                         Kind{EngineKind::reference, 1, 1024, Idle::poll},
                                         Kind{EngineKind::reference, 2, 1024, Idle::poll}));

TEST(Node, EnginesGiveTheSameBytes) {
  std::vector<std::uint64_t> digests;
  for (const Kind kind : {Kind{EngineKind::core, 1, 1024, Idle::poll}, Kind{EngineKind::core, 1, 0, Idle::poll},
                          Kind{EngineKind::reference, 1, 0, Idle::poll}}) {
    auto node = make_node({.engine = kind.engine, .rule_cache = kind.rule_cache});
    const auto in = node->add_port("in", "memory:headers=random,count=5000");
    const auto out = node->add_port("out", "memory:");
    const auto& stage = node->graph().stage("stage", [to = *out](Flow& flow) {
      if (flow.has(layers::ports)) {
        flow.set(l4::dst_port, 80);
      }
      if (flow.has(layers::ip) && !flow.decrement_ttl()) {
        return flow.reject(time_exceeded);
      }
      return flow.output(to);
    });
    node->graph().connect(*in, stage);
    node->graph().connect(*out, stage);
    ASSERT_TRUE(node->run(std::chrono::seconds(60)));
    expect_accounted(node->summary());
    digests.push_back(node->summary().ports[1].digest);
  }
  EXPECT_EQ(digests[0], digests[1]);
  EXPECT_EQ(digests[0], digests[2]);
}

// I3: when `update` has returned, no packet that is taken afterwards is handled as before.
TEST(Node, UpdatesTakeEffectWhenTheCallReturns) {
  auto node = make_node({.workers = 2, .idle = Idle::adaptive});
  auto memory = make_device("memory:");
  auto* device = static_cast<MemoryDevice*>(memory->get());
  const auto in = node->add_port("in", std::move(*memory));
  const auto a = node->add_port("a", "memory:");
  const auto b = node->add_port("b", "memory:");
  // Keeps the workers busy.
  const auto busy = node->add_port("busy", "memory:flows=64,order=random");
  auto& routes = node->state().prefixes<PortId>("routes");
  const auto& stage = node->graph().stage("stage", [&routes, to = *b](Flow& flow) {
    const PortId* port = flow.lookup(routes, ip::dst);
    return flow.output(port != nullptr ? *port : to);
  });
  for (const PortId port : {*in, *a, *b, *busy}) {
    node->graph().connect(port, stage);
  }
  const auto packet = PacketBuilder().ipv4("1.0.0.1", "1.0.0.2").udp(1, 2).bytes();
  ASSERT_TRUE(node->start());
  const auto sent = [&](PortId port) { return node->summary().ports[port.number].out_packets; };
  for (int i = 0; i < 200; ++i) {
    const PortId to = i % 2 == 0 ? *a : *b;
    // The busy port's packets go elsewhere, so that only the injected ones move the counters of `a`.
    ASSERT_TRUE(node->update([&](Update& u) { u.set(routes, *IpPrefix::parse("1.0.0.0/8"), to); }));
    const std::uint64_t before = sent(*a);
    device->inject(packet);
    while (node->summary().ports[in->number].in_packets <= static_cast<std::uint64_t>(i)) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(node->update([](Update&) {}));  // waits until the batch with the packet is through
    ASSERT_EQ(sent(*a) - before, to == *a ? 1U : 0U) << "update " << i;
  }
  node->stop();
  ASSERT_TRUE(node->wait());
  expect_accounted(node->summary());
}

TEST(Node, AFailedUpdateChangesNothing) {
  auto node = make_node({});
  auto& table = node->state().table<std::uint32_t, std::uint32_t>("small", {.capacity = 2});
  ASSERT_TRUE(node->update([&](Update& u) { u.set(table, 1, 10); }));
  const auto failed = node->update([&](Update& u) {
    u.set(table, 1, 11);
    u.set(table, 2, 20);
    u.set(table, 3, 30);
  });
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("table 'small' is full (2 entries)"));
  std::map<std::uint32_t, std::uint32_t> content;
  table.for_each([&](std::uint32_t key, std::uint32_t value) { content[key] = value; });
  EXPECT_EQ(content, (std::map<std::uint32_t, std::uint32_t>{{1, 10}}));
}

TEST(Node, APortThatIsDownDropsAndIsNotRead) {
  auto node = make_node({});
  const auto in = node->add_port("in", "memory:flows=1,count=100");
  const auto out = node->add_port("out", "memory:");
  const auto& stage = node->graph().stage("stage", [to = *out](Flow& flow) { return flow.output(to); });
  node->graph().connect(*in, stage);
  node->graph().connect(*out, stage);
  ASSERT_TRUE(node->set_port_up(*out, false));
  ASSERT_TRUE(node->prepare());
  ASSERT_TRUE(node->set_port_up(*in, false));
  EXPECT_EQ(node->poll_once(), 0U);
  ASSERT_TRUE(node->set_port_up(*in, true));
  while (node->poll_once() != 0) {
  }
  const Summary s = node->summary();
  ASSERT_EQ(s.drops.size(), 1U);
  EXPECT_EQ(s.drops[0].reason, "port_down");
  EXPECT_EQ(s.drops[0].packets, 100U);
  expect_accounted(s);
}

/// A device that comes and goes.
class FickleDevice final : public Device {
 public:
  explicit FickleDevice(const std::atomic<bool>& there) : there_(there) {}
  Result<> open(const DeviceContext& /*context*/) override { return {}; }
  [[nodiscard]] DeviceTraits traits() const override { return {.finite = true}; }
  bool tend() override { return there_; }
  std::size_t receive(unsigned /*queue*/, std::span<Packet*> /*out*/, PacketCache& /*frames*/) override { return 0; }
  std::size_t transmit(unsigned /*queue*/, std::span<Packet*> packets, PacketCache& frames) override {
    frames.free_many(packets);
    return packets.size();
  }
  [[nodiscard]] bool finished(unsigned /*queue*/) const override { return true; }

 private:
  const std::atomic<bool>& there_;
};

TEST(Node, APortGoesDownAndUpWithItsDevice) {
  auto node = make_node({});
  std::atomic<bool> there = false;
  const auto in = node->add_port("in", "memory:");
  const auto out = node->add_port("out", std::make_unique<FickleDevice>(there));
  const auto& stage = node->graph().stage("stage", [to = *out](Flow& flow) { return flow.output(to); });
  node->graph().connect(*in, stage);
  node->graph().connect(*out, stage);
  ASSERT_TRUE(node->prepare());
  auto& device = dynamic_cast<MemoryDevice&>(*node->port(*in).device);
  const auto sent = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the node looks at devices every millisecond
    const std::uint64_t before = node->summary().ports[out->number].out_packets;
    device.inject(std::vector<std::uint8_t>(60));
    while (node->poll_once() == 0) {
    }
    return node->summary().ports[out->number].out_packets - before;
  };
  EXPECT_EQ(sent(), 0U);
  there = true;
  EXPECT_EQ(sent(), 1U);
  ASSERT_TRUE(node->set_port_up(*out, false));
  EXPECT_EQ(sent(), 0U) << "up only if both say so";
  there = false;
  EXPECT_EQ(sent(), 0U);
  ASSERT_TRUE(node->set_port_up(*out, true));
  EXPECT_EQ(sent(), 0U);
  there = true;
  EXPECT_EQ(sent(), 1U);
  const Summary s = node->summary();
  ASSERT_EQ(s.drops.size(), 1U);
  EXPECT_EQ(s.drops[0].reason, "port_down");
  expect_accounted(s);
}

/// A device that gives one packet each time its descriptor was written to.
class WakingDevice final : public Device {
 public:
  Result<> open(const DeviceContext& /*context*/) override { return {}; }
  [[nodiscard]] DeviceTraits traits() const override { return {}; }
  std::size_t receive(unsigned /*queue*/, std::span<Packet*> out, PacketCache& frames) override {
    std::uint64_t count = 0;
    if (read(event_.get(), &count, sizeof count) < 0) {
      return 0;
    }
    out[0] = frames.allocate(std::vector<std::uint8_t>(60));
    return 1;
  }
  std::size_t transmit(unsigned /*queue*/, std::span<Packet*> /*packets*/, PacketCache& /*frames*/) override {
    return 0;
  }
  [[nodiscard]] int descriptor(unsigned /*queue*/) const override { return event_.get(); }
  void wake() const {
    const std::uint64_t one = 1;
    ASSERT_EQ(write(event_.get(), &one, sizeof one), ssize_t{sizeof one});
  }

 private:
  Descriptor event_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

TEST(Node, ADeviceWakesASleepingWorkerByItsDescriptor) {
  auto node = make_node({.idle = Idle::interrupt});
  auto made = std::make_unique<WakingDevice>();
  const WakingDevice& device = *made;
  const auto in = node->add_port("in", std::move(made));
  const auto out = node->add_port("out", "memory:");
  const auto& stage = node->graph().stage("stage", [to = *out](Flow& flow) { return flow.output(to); });
  node->graph().connect(*in, stage);
  node->graph().connect(*out, stage);
  ASSERT_TRUE(node->start());
  for (std::uint64_t packets = 1; packets <= 3; ++packets) {
    device.wake();
    while (node->summary().out_packets() < packets) {
      std::this_thread::yield();
    }
  }
  node->stop();
  ASSERT_TRUE(node->wait());
  EXPECT_EQ(node->summary().out_packets(), 3U);
}

TEST(Node, CanBeEmbedded) {
  auto node = make_node({});
  const auto in = node->add_port("in", "memory:flows=8,count=1000");
  const auto& stage = node->graph().stage("stage", [to = *in](Flow& flow) { return flow.output(to); });
  node->graph().connect(*in, stage);
  ASSERT_TRUE(node->prepare());
  std::size_t handled = 0;
  while (const std::size_t now = node->poll_once()) {
    handled += now;
    ASSERT_TRUE(node->update([](Update&) {}));  // does not wait for the thread that is itself
  }
  EXPECT_EQ(handled, 1000U);
}

TEST(Node, EveryPortHasAnEthernetAddress) {
  const auto macs = [](const NodeOptions& options) {
    auto node = make_node(options);
    EXPECT_TRUE(node->add_port("a", "memory:"));
    EXPECT_TRUE(node->add_port("b", "memory:"));
    EXPECT_TRUE(node->add_port("c", "memory:", {.mac = MacAddress{{2, 1, 1, 1, 1, 1}}, .mtu = 9000}));
    EXPECT_EQ(node->port_table().ports[0].mtu, 1500U);
    EXPECT_EQ(node->port_table().ports[2].mtu, 9000U);
    std::vector<MacAddress> all;
    for (unsigned i = 0; i < 3; ++i) {
      all.push_back(node->port_table().ports[i].mac);
      EXPECT_EQ(all.back().bytes[0] & 3U, 2U) << "of one station, and of no maker's";
    }
    return all;
  };
  const auto first = macs({});
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first[2].to_string(), "02:01:01:01:01:01");
  EXPECT_EQ(macs({}), first) << "the same each time";
  EXPECT_NE(macs({.name = "other"})[0], first[0]);
}

// Two ports, of which the first one's packets wait for a neighbour behind the second.
std::unique_ptr<Node> waiting_node(unsigned workers, std::array<MemoryDevice*, 2>& devices) {
  auto node = make_node({.workers = workers});
  for (unsigned i = 0; i < 2; ++i) {
    auto device = std::move(*MemoryDevice::make(*DeviceSpec::parse("memory:record=8")));
    devices[i] = static_cast<MemoryDevice*>(device.get());
    PortOptions options{.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(i)}}};
    options.addresses.push_back(*IpPrefix::parse_interface(i == 0 ? "10.1.0.1/24" : "10.2.0.1/24"));
    EXPECT_TRUE(node->add_port(i == 0 ? "a" : "b", std::move(device), std::move(options)));
  }
  const auto& stage = node->graph().stage("route", [](Flow& flow) {
    const IpAddress next = Ipv4Address{{10, 2, 0, 10}};
    if (flow.has(layers::arp)) {
      return flow.to_host();
    }
    return flow.neighbour(PortId{1}, next) != nullptr ? flow.output(PortId{1}) : flow.resolve(PortId{1}, next);
  });
  node->graph().connect(PortId{0}, stage);
  node->graph().connect(PortId{1}, stage);
  EXPECT_TRUE(node->prepare());
  devices[0]->inject(PacketBuilder().ipv4("10.1.0.10", "10.2.0.10").udp(0, 2).bytes());
  node->poll_once();
  node->poll_once();
  EXPECT_EQ(node->summary().held, 1U);
  return node;
}

TEST(Node, PacketsThatWaitGoWithTheirPorts) {
  for (const std::uint16_t removed : {0, 1}) {  // where it came from, and where it was to go
    std::array<MemoryDevice*, 2> devices{};
    const auto node = waiting_node(1, devices);
    ASSERT_TRUE(node->remove_port(PortId{removed}));
    const Summary summary = node->summary();
    EXPECT_EQ(summary.held, 0U);
    ASSERT_EQ(summary.drops.size(), 1U);
    EXPECT_EQ(summary.drops[0].reason, "port_down");
    node->poll_once();
  }
}

// Packets wait on both workers, and one of them hears the answer.
TEST(Node, AWorkerHearsWhatAnotherAskedFor) {
  std::array<MemoryDevice*, 2> devices{};
  const auto node = waiting_node(2, devices);
  constexpr std::uint16_t flows = 16;
  for (std::uint16_t flow = 1; flow < flows; ++flow) {
    devices[0]->inject(PacketBuilder().ipv4("10.1.0.10", "10.2.0.10").udp(flow, 2).bytes());
  }
  const auto poll = [&] {
    for (int round = 0; round < 3; ++round) {
      node->poll_once();
    }
  };
  poll();
  EXPECT_EQ(node->summary().held, flows);
  EXPECT_GT(node->workers()[0]->stats().waiting.get(), 0U);
  EXPECT_GT(node->workers()[1]->stats().waiting.get(), 0U);
  devices[1]->inject(PacketBuilder()
                         .eth("02:00:00:00:00:0a", "02:00:00:00:00:01")
                         .arp(2, "02:00:00:00:00:0a", "10.2.0.10", "02:00:00:00:00:01", "10.2.0.1")
                         .bytes());
  poll();
  const Summary summary = node->summary();
  EXPECT_EQ(summary.held, 0U);
  EXPECT_EQ(summary.consumed, 1U);
  EXPECT_EQ(summary.originated, 2U) << "each worker has asked";
  EXPECT_EQ(devices[1]->packets(), 2U + flows);
  expect_accounted(summary);
}

TEST(Node, SeveralLiveInOneProcess) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) {
    auto node = make_node({.name = fmt::format("node-{}", i)});
    const auto in = node->add_port("in", "memory:flows=4,count=1000");
    const auto& stage = node->graph().stage("stage", [to = *in](Flow& flow) { return flow.output(to); });
    node->graph().connect(*in, stage);
    ASSERT_TRUE(node->start());
    nodes.push_back(std::move(node));
  }
  for (const auto& node : nodes) {
    ASSERT_TRUE(node->wait(std::chrono::seconds(30)));
    EXPECT_EQ(node->summary().out_packets(), 1000U);
  }
}

// Under 2 % of a core when there is nothing to do, also with a device that cannot wake its worker.
TEST(Node, AnIdleNodeSleeps) {
  for (const char* device : {"memory:", "memory:flows=1,rate=1"}) {
    auto node = make_node({.idle = Idle::adaptive});
    const auto in = node->add_port("in", device);
    const auto more = node->add_port("more", "memory:flows=1,rate=1");
    const auto& stage = node->graph().stage("stage", [to = *in](Flow& flow) { return flow.output(to); });
    node->graph().connect(*in, stage);
    node->graph().connect(*more, stage);
    ASSERT_TRUE(node->run(std::chrono::milliseconds(1500)));
    const Summary s = node->summary();
    EXPECT_LT(s.workers[0].cpu_ns * 100, s.workers[0].wall_ns * 2) << device;
  }
}

/// Keeps packets, and hands each back when two newer ones are there, or at the end.
class Laggard final : public PacketStage {
 public:
  explicit Laggard(bool hands_back) : hands_back_(hands_back) {}
  void process(Batch& batch) override {
    std::deque<KeptPacket>& kept = kept_[batch.worker()];
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (const auto number = batch.keep(i)) {
        kept.push_back(*number);
      }
    }
    while (hands_back_ && kept.size() > (batch.last() ? 0U : 2U)) {
      batch.hand_back(kept.front());
      kept.pop_front();
    }
  }
  [[nodiscard]] unsigned keep_limit() const override { return 100; }

 private:
  bool hands_back_;
  PerWorker<std::deque<KeptPacket>> kept_;
};

struct Keeping {
  EngineKind engine;
  unsigned workers;
  bool hands_back;
};

// Finite input ends although a stage keeps packets.
TEST(Node, EndsWithPacketsKept) {
  for (const Keeping c : {Keeping{EngineKind::core, 1, true}, Keeping{EngineKind::core, 2, true},
                          Keeping{EngineKind::reference, 1, true}, Keeping{EngineKind::core, 1, false}}) {
    auto node = make_node({.workers = c.workers, .engine = c.engine});
    const auto in = *node->add_port("in", "memory:flows=20,count=5000");
    const auto out = *node->add_port("out", "memory:");
    auto& laggard = node->graph().add<Laggard>("laggard", c.hands_back);
    const auto& stage = node->graph().stage("out", [out](Flow& flow) { return flow.output(out); });
    node->graph().connect(in, laggard);
    node->graph().connect(out, laggard);
    node->graph().connect(laggard, stage);
    ASSERT_TRUE(node->run(std::chrono::seconds(30)));
    const Summary s = node->summary();
    EXPECT_EQ(s.held, 0U);
    EXPECT_EQ(s.out_packets(), c.hands_back ? 5000U : 4900U);
    EXPECT_EQ(s.dropped(), c.hands_back ? 0U : 100U);
    expect_accounted(s);
  }
}

}  // namespace
}  // namespace weir
