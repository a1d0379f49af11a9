#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <weir/control/managed_node.h>

namespace weir {
namespace {

// "pass" hands packets on, "end" sends them everywhere.
ServiceRegistry registry() {
  ServiceRegistry services;
  services.add({"pass", "", {}, [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                  const FlowStage& stage = context.node.graph().stage("pass", [](Flow& flow) { return flow.next(); });
                  return std::make_unique<Service>(ServiceStages{stage, stage});
                }});
  services.add({"end", "", {}, [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
                  return std::make_unique<Service>(
                      ServiceStages{context.node.graph().stage("end", [](Flow& flow) { return flow.flood(); }), {}});
                }});
  return services;
}

Result<NodeFile> parse(std::string_view text) {
  static const ServiceRegistry services = registry();
  return NodeFile::parse(text, "n.yaml", "folder", services);
}

std::string message(const auto& result) { return result ? "no error" : result.error().message; }

constexpr std::string_view smallest = "weir: 1\nports: {a: 'memory:'}\nservices: {end: {}}\n";

TEST(NodeFile, Defaults) {
  const auto file = parse(smallest);
  ASSERT_TRUE(file) << message(file);
  const NodeOptions& options = file->options;
  EXPECT_EQ(options.name, "node");
  EXPECT_EQ(options.workers, 1U);
  EXPECT_EQ(options.idle, Idle::adaptive);
  EXPECT_EQ(options.engine, EngineKind::core);
  EXPECT_EQ(options.rule_cache, 65'536U);
  EXPECT_EQ(options.decision_share.percent, 10U);
  EXPECT_FALSE(options.capture_time);
}

TEST(NodeFile, EverythingIsRead) {
  const auto file = parse(R"(weir: 1
node: ai-1
workers: {count: 3, idle: poll}
ports:
  pod: {device: "memory:count=5", role: uplink, labels: {app: web, tier: '1'}, addresses: [10.1.0.2/24, "fd00::2/64"]}
  file: "pcap:in.pcap,out=/abs/out.pcap"
services:
  end:
  pass: {}
chains:
  - {name: default, selector: {}, services: [pass, end]}
rule_cache: 1024
engines: [reference]
decision_budget: 25
seed: 99
frames: 512
batch: 64
pin: false
)");
  ASSERT_TRUE(file) << message(file);
  EXPECT_EQ(file->options.name, "ai-1");
  EXPECT_EQ(file->options.workers, 3U);
  EXPECT_EQ(file->options.idle, Idle::poll);
  EXPECT_EQ(file->options.engine, EngineKind::reference);
  EXPECT_EQ(file->options.rule_cache, 1024U);
  EXPECT_EQ(file->options.decision_share.percent, 25U);
  EXPECT_EQ(file->options.seed, 99U);
  EXPECT_EQ(file->options.frames, 512U);
  EXPECT_EQ(file->options.batch, 64U);
  EXPECT_FALSE(file->options.pin);
  ASSERT_EQ(file->ports.size(), 2U);
  EXPECT_EQ(file->ports[0].options.role, PortRole::uplink);
  EXPECT_EQ(file->ports[0].options.labels.at("tier"), "1");
  ASSERT_EQ(file->ports[0].options.addresses.size(), 2U);
  EXPECT_EQ(file->ports[0].options.addresses[0].first.to_string(), "10.1.0.2");
  EXPECT_EQ(file->ports[1].device.argument, "folder/in.pcap");
  EXPECT_EQ(file->ports[1].device.options.at("out"), "/abs/out.pcap");
  ASSERT_EQ(file->services.size(), 2U);
  EXPECT_EQ(file->services[0].kind->name, "end");
  EXPECT_EQ(file->services[1].kind->name, "pass");
}

TEST(NodeFile, APortMayHaveAnEthernetAddressAndAnMtu) {
  const auto file = parse(R"(weir: 1
ports:
  a: {device: 'memory:', mac: '02:00:00:00:00:aa', mtu: 9000}
  b: 'memory:'
services: {end: }
)");
  ASSERT_TRUE(file) << message(file);
  EXPECT_EQ(file->ports[0].options.mac->to_string(), "02:00:00:00:00:aa");
  EXPECT_EQ(file->ports[0].options.mtu, 9000U);
  EXPECT_FALSE(file->ports[1].options.mac);
  EXPECT_FALSE(file->ports[1].options.mtu);
}

TEST(NodeFile, SaysWhereItsControlSocketIs) {
  const auto control = [](std::string_view text) {
    const auto file = parse(fmt::format("weir: 1\nports: {{a: 'memory:'}}\nservices: {{end: }}\n{}", text));
    return file ? file->control : message(file);
  };
  EXPECT_EQ(control(""), "");
  EXPECT_EQ(control("control: off\n"), "off");
  EXPECT_EQ(control("control: x.sock\n"), "folder/x.sock");
  EXPECT_EQ(control("control: /abs/x.sock\n"), "/abs/x.sock");
  EXPECT_EQ(control("control: ''\n"),
            "n.yaml:4:10: expected the path of a socket, or off; leave it out for a path by the node's name");
}

TEST(NodeFile, ClockFollowsCapturesByItself) {
  const auto capture_time = [](std::string_view ports, std::string_view more = "") {
    const auto file = parse(fmt::format("weir: 1\nports: {{{}}}\nservices: {{end: }}\n{}", ports, more));
    EXPECT_TRUE(file) << message(file);
    return file && file->options.capture_time;
  };
  EXPECT_TRUE(capture_time("a: 'pcap:x.pcap', b: 'pcap:y.pcap', c: 'memory:', d: 'pcap:,out=z'"));
  EXPECT_FALSE(capture_time("a: 'pcap:x.pcap,rate=10'"));
  EXPECT_FALSE(capture_time("a: 'pcap:x.pcap', b: 'memory:flows=1'"));
  EXPECT_FALSE(capture_time("a: 'memory:'"));
  EXPECT_FALSE(capture_time("a: 'pcap:x.pcap'", "clock: system\n"));
  EXPECT_TRUE(capture_time("a: 'pcap:x.pcap,rate=10'", "clock: capture\n"));
}

TEST(NodeFile, TwoPortsMayReadOneFileButNotWriteIt) {
  EXPECT_TRUE(parse("weir: 1\nports: {a: 'pcap:x', b: 'pcap:x'}\nservices: {end: }\n"));
  EXPECT_FALSE(parse("weir: 1\nports: {a: 'pcap:x', b: 'pcap:y,out=x'}\nservices: {end: }\n"));
  EXPECT_FALSE(parse("weir: 1\nports: {a: 'pcap:y,out=x', b: 'pcap:x'}\nservices: {end: }\n"));
  EXPECT_TRUE(parse("weir: 1\nports: {a: 'pcap:,out=/dev/null', b: 'pcap:,out=/dev/null'}\nservices: {end: }\n"));
}

TEST(NodeFile, BuildsANodeThatRuns) {
  const auto file = parse("weir: 1\nports: {a: 'memory:count=100', b: 'memory:'}\nservices: {pass: , end: }\n");
  ASSERT_TRUE(file) << message(file);
  const auto node = ManagedNode::build(*file);
  ASSERT_TRUE(node) << message(node);
  ASSERT_TRUE((*node)->node().run());
  EXPECT_EQ((*node)->node().summary().ports[1].out_packets, 100U);
}

TEST(NodeFile, OverridesWin) {
  const auto file = parse(smallest);
  ASSERT_TRUE(file);
  const auto node = ManagedNode::build(*file, LoadMode::run, {.no_rule_cache = true, .engine = EngineKind::reference});
  ASSERT_TRUE(node);
  EXPECT_EQ((*node)->node().options().rule_cache, 0U);
  EXPECT_EQ((*node)->node().options().engine, EngineKind::reference);
}

TEST(NodeFile, ChainsMustEnd) {
  const auto built = [](std::string_view chain) {
    const auto file =
        parse(fmt::format("weir: 1\nports: {{a: 'memory:'}}\nservices: {{pass: , end: }}\n"
                          "chains: [{{services: {}}}]\n",
                          chain));
    return file ? message(ManagedNode::build(*file)) : message(file);
  };
  EXPECT_EQ(built("[pass, end]"), "no error");
  EXPECT_EQ(built("[end]"), "no error");
  EXPECT_EQ(built("[pass]"),
            "n.yaml:3:12: 'pass' passes packets on, and nothing is behind it; end the chain with a "
            "service that sends them to ports, such as l2_switch");
  EXPECT_EQ(built("[end, pass]"),
            "n.yaml:3:12: nothing reaches 'pass': 'end' before it passes no packets on; put it last");
  EXPECT_EQ(built("[pass, pass, end]"), "n.yaml:4:28: 'pass' is in the chain already");
}

TEST(NodeFile, ChainsAreForTheirPorts) {
  const auto file = parse(R"(weir: 1
ports:
  a: {device: "memory:", labels: {app: web, tier: front}}
  b: {device: "memory:", labels: {app: web}}
  c: "memory:"
services: {pass: , end: }
chains:
  - {name: front, selector: {app: web, tier: front}, services: [pass, end]}
  - {name: web, selector: {app: web}, services: [end]}
  - {name: rest, services: [pass, end]}
)");
  ASSERT_TRUE(file) << message(file);
  std::vector<std::string> chains;
  for (const auto& port : file->ports) {
    chains.push_back(file->chains[file->chain_of(port.options)].name);
  }
  EXPECT_THAT(chains, testing::ElementsAre("front", "web", "rest"));
  EXPECT_EQ(message(ManagedNode::build(*file)), "no error");
}

TEST(NodeFile, MistakesInChains) {
  const auto built = [](std::string_view chains) {
    const auto file =
        parse(fmt::format("weir: 1\nports: {{a: 'memory:'}}\nservices: {{pass: , end: }}\nchains:\n{}", chains));
    return file ? message(ManagedNode::build(*file)) : message(file);
  };
  EXPECT_EQ(built("- {selector: {app: web}, services: [end]}\n"),
            "n.yaml:5:1: no chain takes port 'a'; add one with an empty selector at the end, or give the port a label "
            "that one selects");
  EXPECT_EQ(built("- {services: [end]}\n- {selector: {app: web}, services: [end]}\n"),
            "n.yaml:6:3: no port reaches chain 'chain 2': 'chain 1' before it takes all; put the one with the empty "
            "selector last");
  EXPECT_EQ(built("- {name: x, selector: {app: web}, services: [end]}\n- {name: x, services: [end]}\n"),
            "n.yaml:6:3: two chains are named 'x'; rename one");
  EXPECT_EQ(built("- {services: []}\n"), "n.yaml:5:3: a chain without services; nothing would handle its packets");
  EXPECT_EQ(built("- {selector: {app: web}, services: [pass]}\n- {services: [end]}\n"),
            "n.yaml:3:12: 'pass' passes packets on, and nothing is behind it; end the chain with a service that sends "
            "them to ports, such as l2_switch");
}

}  // namespace
}  // namespace weir
