#include <weir/control/managed_node.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "mark" counts what passes it and can be told a number; "end" floods; "ports" names a port.
ServiceRegistry registry() {
  ServiceRegistry services;
  services.add({"mark",
                "",
                {live(number_setting("number", "any", 1, 0, 9)), number_setting("size", "any", 1, 0, 9)},
                [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                  auto& number = context.state().versioned<std::int64_t>("number", 0);
                  auto& counter = context.state().counter("marked");
                  const FlowStage& stage = context.node.graph().stage("mark", [&](Flow& flow) {
                    if (flow.read(number) == 9) {
                      return flow.drop({"nine", "the number is 9"});
                    }
                    flow.count(counter);
                    return flow.next();
                  });
                  return make_service({stage, stage}, [&number](const ServiceContext& now, Update& update) -> Result<> {
                    if (now.number("number") == 8) {
                      return now.config("number").error("8 is not possible");
                    }
                    update.assign(number, now.number("number"));
                    return {};
                  });
                }});
  services.add({"end", "", {}, [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                  return std::make_unique<Service>(
                      ServiceStages{context.node.graph().stage("end", [](Flow& flow) { return flow.flood(); }), {}});
                }});
  services.add({"ports",
                "",
                {live(required_setting("port", SettingType::text, "a port"))},
                [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                  const FlowStage& stage = context.node.graph().stage("ports", [](Flow& flow) { return flow.next(); });
                  return make_service({stage, stage}, [](const ServiceContext& now, Update&) -> Result<> {
                    const auto port = now.port(now.config("port"));
                    return port ? Result<>() : std::unexpected(port.error());
                  });
                },
                {"mark"}});
  return services;
}

const ServiceRegistry& kinds() {
  static const ServiceRegistry services = registry();
  return services;
}

NodeFile file(const std::string& text) {
  auto parsed = NodeFile::parse("weir: 1\n" + text, "n.yaml", "/", kinds());
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : NodeFile();
}

std::string words(const Result<std::vector<NodeChange>>& changes) {
  if (!changes) {
    return "error: " + changes.error().message;
  }
  std::string text;
  for (const NodeChange& change : *changes) {
    text += fmt::format("{}{} {}: {}", text.empty() ? "" : "\n", "+-~"[static_cast<unsigned>(change.kind)], change.what,
                        change.detail);
  }
  return text;
}

class ManagedNodeTest : public testing::Test {
 protected:
  void build(const std::string& text) {
    auto made = ManagedNode::build(file(text));
    ASSERT_TRUE(made) << made.error().message;
    managed_ = std::move(*made);
    ASSERT_TRUE(managed_->node().prepare());
  }
  Node& node() { return managed_->node(); }
  /// Sends a packet in by the port; where it left, or why it was dropped.
  std::vector<std::string> send(const std::string& port) {
    const auto id = node().find_port(port);
    if (!id) {
      return {"no such port"};
    }
    const Summary before = node().summary();
    auto& device = dynamic_cast<MemoryDevice&>(*node().port(*id).device);
    device.inject(PacketBuilder().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).bytes());
    while (node().poll_once() == 0) {
    }
    const Summary after = node().summary();
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < after.ports.size(); ++i) {
      if (after.ports[i].out_packets != before.ports[i].out_packets) {
        seen.push_back(after.ports[i].name);
      }
    }
    for (const auto& drop : after.drops) {
      const auto was = std::ranges::find(before.drops, drop.reason, &Summary::DropLine::reason);
      if (was == before.drops.end() || was->packets != drop.packets) {
        seen.push_back(drop.reason);
      }
    }
    if (after.counters[0].packets != before.counters[0].packets) {
      seen.emplace_back("marked");
    }
    return seen;
  }

  std::unique_ptr<ManagedNode> managed_;
};

constexpr const char* two_ports = "ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , end: }\n";

TEST_F(ManagedNodeTest, TheSameFileChangesNothing) {
  build(two_ports);
  EXPECT_EQ(words(managed_->apply(file(two_ports))), "");
  EXPECT_EQ(managed_->revision(), 0U);
}

TEST_F(ManagedNodeTest, PortsComeAndGo) {
  build(two_ports);
  EXPECT_THAT(send("a"), ElementsAre("b", "marked"));
  const NodeFile more =
      file("ports: {b: 'memory:', c: {device: 'memory:', role: uplink, labels: {x: y}}}\nservices: {mark: , end: }\n");
  EXPECT_EQ(words(managed_->compare(more)), "- port a: memory:\n+ port c: memory:, uplink, labels x=y");
  EXPECT_TRUE(node().find_port("a")) << "compared only";
  EXPECT_EQ(words(managed_->apply(more)), "- port a: memory:\n+ port c: memory:, uplink, labels x=y");
  EXPECT_EQ(managed_->revision(), 1U);
  EXPECT_THAT(send("b"), ElementsAre("c", "marked"));
  EXPECT_THAT(send("c"), ElementsAre("b", "marked"));
  EXPECT_THAT(send("a"), ElementsAre("no such port"));
}

TEST_F(ManagedNodeTest, SettingsLabelsAndChainsChange) {
  const std::string ports = "ports: {a: {device: 'memory:', labels: {x: y}}, b: 'memory:'}\n";
  const std::string services = "services: {mark: {number: 2}, end: }\n";
  build(ports + services);
  EXPECT_THAT(send("a"), ElementsAre("b", "marked"));
  EXPECT_EQ(words(managed_->apply(file(ports + "services: {mark: {number: 9}, end: }\n"))),
            "~ service mark: number: 2 -> 9\n~ number: 1 changed");
  EXPECT_THAT(send("a"), ElementsAre("nine"));
  const std::string chains =
      "chains: [{name: past, selector: {x: y}, services: [end]}, {name: default, services: [mark, end]}]\n";
  EXPECT_EQ(words(managed_->apply(file(ports + "services: {mark: {number: 9}, end: }\n" + chains))),
            "+ chain past: end for x=y");
  EXPECT_THAT(send("a"), ElementsAre("b"));
  EXPECT_THAT(send("b"), ElementsAre("nine"));
  const std::string other = "ports: {a: 'memory:', b: {device: 'memory:', labels: {x: y}}}\n";
  EXPECT_EQ(words(managed_->apply(file(other + "services: {mark: {number: 9}, end: }\n" + chains))),
            "~ port a: labels: x=y -> none\n~ port b: labels: none -> x=y");
  EXPECT_THAT(send("a"), ElementsAre("nine"));
  EXPECT_THAT(send("b"), ElementsAre("a"));
}

TEST_F(ManagedNodeTest, APortKeepsItsNumberAndFlowsWhenOthersChange) {
  build(two_ports);
  EXPECT_THAT(send("a"), ElementsAre("b", "marked"));
  const std::uint64_t misses = node().summary().misses;
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_EQ(
        words(managed_->apply(file("ports: {a: 'memory:', b: 'memory:', c: 'memory:'}\nservices: {mark: , end: }\n"))),
        "+ port c: memory:");
    EXPECT_THAT(send("a"), ElementsAre("b", "c", "marked"));
    ASSERT_EQ(words(managed_->apply(file(two_ports))), "- port c: memory:");
    EXPECT_THAT(send("a"), ElementsAre("b", "marked"));
  }
  EXPECT_EQ(node().summary().misses, misses) << "its rule held all the time";
}

TEST_F(ManagedNodeTest, ADeviceIsReplaced) {
  build("ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , end: }\n");
  EXPECT_EQ(
      words(managed_->apply(file("ports: {a: 'memory:flows=3,count=3', b: 'memory:'}\nservices: {mark: , end: }\n"))),
      "~ port a: device: memory: -> memory:count=3,flows=3");
  while (node().poll_once() == 0) {
  }
  EXPECT_EQ(node().summary().ports[0].out_packets + node().summary().ports[1].out_packets, 3U);
}

struct Refused {
  const char* description;
  const char* to;
  const char* problem;
};

class Refusals : public ManagedNodeTest, public testing::WithParamInterface<Refused> {};

TEST_P(Refusals, ChangeNothing) {
  build("ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , ports: {port: a}, end: }\n");
  const auto changes = managed_->apply(file(GetParam().to));
  EXPECT_THAT(words(changes), HasSubstr(GetParam().problem));
  EXPECT_EQ(managed_->revision(), 0U);
  EXPECT_EQ(node().port_count(), 2U);
  EXPECT_THAT(send("a"), ElementsAre("b", "marked"));
  EXPECT_THAT(send("b"), ElementsAre("a", "marked"));
  EXPECT_EQ(words(managed_->compare(
                file("ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , ports: {port: a}, end: }\n"))),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    ManagedNode, Refusals,
    testing::Values(
        Refused{
            "options",
            "node: x\nseed: 5\nworkers: {count: 2, idle: poll}\nports: {a: 'memory:', b: 'memory:'}\n"
            "services: {mark: , ports: {port: a}, end: }\n",
            "error: node: node -> x takes a restart of the node\nworkers.count: 1 -> 2 takes a restart of the node\n"
            "workers.idle: adaptive -> poll takes a restart of the node\nseed: 1 -> 5 takes a restart of the node"},
        Refused{"a service less", "ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , end: }\n",
                "error: service 'ports' is not in the new file"},
        Refused{
            "a setting that cannot change",
            "ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: {size: 2}, ports: {port: a}, end: }\n",
            "error: n.yaml:3:25: 'size' of mark cannot change while the node runs (nothing -> 2); restart the node"},
        Refused{"what the service refuses",
                "ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: {number: 8}, ports: {port: a}, end: }\n",
                "error: n.yaml:3:27: 8 is not possible"},
        Refused{"a port that a service names", "ports: {b: 'memory:'}\nservices: {mark: , ports: {port: a}, end: }\n",
                "error: n.yaml:3:34: no port 'a'; there are: b"},
        Refused{"a chain that does not end",
                "ports: {a: 'memory:', b: 'memory:'}\nservices: {mark: , ports: {port: a}, end: }\nchains: [{services: "
                "[mark]}]\n",
                "error: n.yaml:3:12: 'mark' passes packets on"},
        Refused{
            "a device that does not open",
            "ports: {a: 'memory:', b: 'memory:', c: 'memory:', d: 'pcap:,out=/nowhere/x'}\nservices: {mark: , ports: "
            "{port: a}, end: }\n",
            "error: n.yaml:2:54: port 'd': cannot write /nowhere/x"},
        Refused{"a device that does not open instead of another",
                "ports: {a: 'memory:', b: 'pcap:,out=/nowhere/x'}\nservices: {mark: , ports: {port: a}, end: }\n",
                "error: n.yaml:2:26: port 'b': cannot write /nowhere/x"}),
    [](const auto& of) {
      std::string name = of.param.description;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST_F(ManagedNodeTest, ServicesAreBuiltAfterThoseTheyNeed) {
  const auto built = [](const std::string& services) {
    const auto made = ManagedNode::build(file("ports: {a: 'memory:'}\nservices: " + services + "\n"));
    return made ? std::string("built") : made.error().message;
  };
  EXPECT_EQ(built("{ports: {port: a}, mark: , end: }"), "built");
  EXPECT_EQ(built("{ports: {port: a}, end: }"), "n.yaml:3:12: 'ports' works with 'mark'; add it to the services");
}

}  // namespace
}  // namespace weir
