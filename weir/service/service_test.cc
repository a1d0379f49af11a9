#include <weir/service/service.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

Config parsed(std::string_view text) {
  auto config = Config::parse(text, "s.yaml");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

std::string message(const auto& result) { return result ? "no error" : result.error().message; }

// Remembers what it was given.
struct Seen {
  std::int64_t size = -1;
  std::string word;
  bool flag = false;
  std::string path;
  std::size_t items = 0;
} seen;

ServiceKind sample() {
  return {"sample",
          "for this test",
          {number_setting("size", "how much", 7, 1, 100),
           word_setting("word", "which", {"one", "two"}),
           {.name = "flag", .type = SettingType::boolean, .help = "whether", .otherwise = "true"},
           {.name = "items", .type = SettingType::list, .help = "what"},
           required_setting("file", SettingType::text, "where")},
          [](ServiceContext& context) -> Result<std::unique_ptr<Service>> {
            seen = {context.number("size"), context.text("word"), context.boolean("flag"), context.path("file"),
                    context.list("items").size()};
            const FlowStage& stage = context.node.graph().stage(context.name(), [](Flow& flow) { return flow.next(); });
            return std::make_unique<Service>(ServiceStages{stage, stage});
          }};
}

struct Case {
  const char* description;
  const char* settings;
  const char* message;
};

class Settings : public testing::TestWithParam<Case> {};

TEST_P(Settings, AreChecked) {
  EXPECT_EQ(message(check_settings("sample", sample().settings, parsed(GetParam().settings))), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Service, Settings,
    testing::Values(
        Case{"good", "{file: x, size: 100, word: two, flag: false, items: [1]}", "no error"},
        Case{"an unknown one", "{file: x, sise: 1}",
             "s.yaml:1:11: unknown key 'sise'; allowed: size, word, flag, items, file; did you mean 'size'?"},
        Case{"a required one is missing", "{size: 5}", "s.yaml:1:1: sample needs the setting 'file': where"},
        Case{"a required one is empty", "{file: }", "s.yaml:1:8: sample needs the setting 'file': where"},
        Case{"out of range", "{file: x, size: 101}", "s.yaml:1:17: expected a whole number from 1 to 100, found '101'"},
        Case{"not one of the words", "{file: x, word: tow}",
             "s.yaml:1:17: expected one of one, two, found 'tow', did you mean 'two'?"},
        Case{"not a list", "{file: x, items: 1}", "s.yaml:1:18: expected a list, found '1'"},
        Case{"not a map", "[1]", "s.yaml:1:1: expected the settings of sample as a map, found a list of 1"},
        Case{"two mistakes", "{size: 0, flag: yes, file: x}",
             "s.yaml:1:8: expected a whole number from 1 to 100, found '0'\n"
             "s.yaml:1:17: expected true or false, found 'yes'"}));

TEST(Service, GivesWhatIsSetAndDefaults) {
  auto node = Node::create({.frames = 64});
  ASSERT_TRUE(node);
  ASSERT_TRUE(build_service(**node, sample(), parsed("{file: x.yaml}"), "folder"));
  EXPECT_EQ(seen.size, 7);
  EXPECT_EQ(seen.word, "one");
  EXPECT_TRUE(seen.flag);
  EXPECT_EQ(seen.path, "folder/x.yaml");
  EXPECT_EQ(seen.items, 0U);
  ASSERT_TRUE(
      build_service(**node, sample(), parsed("{file: /x, size: 3, word: two, flag: false, items: [a, b]}"), "f"));
  EXPECT_EQ(seen.size, 3);
  EXPECT_EQ(seen.word, "two");
  EXPECT_FALSE(seen.flag);
  EXPECT_EQ(seen.path, "/x");
  EXPECT_EQ(seen.items, 2U);
}

TEST(Service, RegistryKnowsNames) {
  ServiceRegistry registry;
  registry.add(sample());
  EXPECT_NE(registry.find("sample"), nullptr);
  EXPECT_EQ(registry.find("other"), nullptr);
  EXPECT_EQ(message(registry.require(parsed("smaple"))),
            "s.yaml:1:1: unknown service 'smaple'; there are: sample, did you mean 'sample'?");
}

TEST(Service, NextHopsNamePorts) {
  auto node = Node::create({.frames = 64});
  ASSERT_TRUE(node);
  ASSERT_TRUE((*node)->add_port("east", "memory:"));
  const ServiceKind kind = sample();
  const std::filesystem::path folder = ".";
  const std::vector<ServicePort> ports = service_ports(**node);
  const ServiceContext context(**node, kind, Config(), folder, ports, {});
  const auto good = context.members(parsed("[{port: east, mac: 02:00:00:00:00:01, from: 02:00:00:00:00:02}]"));
  ASSERT_TRUE(good) << message(good);
  EXPECT_EQ((*good)[0].dst.to_string(), "02:00:00:00:00:01");
  EXPECT_EQ(message(context.members(parsed("[{port: eats, mac: x, from: 02:00:00:00:00:02}]"))).substr(0, 66),
            "s.yaml:1:9: no port 'eats'; there are: east, did you mean 'east'?\n");
}

}  // namespace
}  // namespace weir
