#include <weir/base/config.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Config parsed(std::string_view text) {
  auto config = Config::parse(text, "n.yaml");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : Config();
}

std::string message(const auto& result) { return result ? "no error" : result.error().message; }

TEST(Config, KnowsKindsOrderAndPlaces) {
  const Config config = parsed("b: 1\na: [x, 'y', {z: true}]\nempty:\n");
  ASSERT_EQ(config.kind(), Config::Kind::map);
  const auto entries = config.map();
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[1].name, "a");
  EXPECT_EQ((*entries)[1].key.place(), "n.yaml:2:1");
  const Config* a = config.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->place(), "n.yaml:2:4");
  EXPECT_EQ((*a->list())[1].place(), "n.yaml:2:8");
  EXPECT_EQ((*a->list())[2].find("z")->boolean(), true);
  EXPECT_TRUE(config.find("empty")->is_null());
  EXPECT_EQ(config.find("c"), nullptr);
}

TEST(Config, CopiesOutliveTheTree) {
  Config leaf;
  {
    const Config config = parsed("a: {b: text}");
    leaf = *config.find("a")->find("b");
  }
  EXPECT_EQ(leaf.string(), "text");
  EXPECT_EQ(leaf.place(), "n.yaml:1:8");
}

TEST(Config, AliasesRepeat) {
  const Config config = parsed("a: &x [1, 2]\nb: *x\n");
  EXPECT_EQ((*config.find("b")->list())[1].integer(0, 9), 2);
}

TEST(Config, ReadsSeveralDocuments) {
  const auto documents = Config::parse_documents("a: 1\n---\n---\n# nothing\n---\n- b\n...\n---\nc: &x 3\n", "n.yaml");
  ASSERT_TRUE(documents) << message(documents);
  ASSERT_EQ(documents->size(), 3U);
  EXPECT_EQ((*documents)[1].place(), "n.yaml:6:1");
  EXPECT_EQ((*documents)[2].find("c")->place(), "n.yaml:9:4");
  EXPECT_TRUE(Config::parse_documents("# nothing\n", "n.yaml")->empty());
  EXPECT_EQ(message(Config::parse_documents("a: 1\n---\nb: 1\nb: 2\n", "n.yaml")),
            "n.yaml:4:1: 'b' is there twice; the first is at n.yaml:3:1; remove one");
  EXPECT_EQ(message(Config::parse_documents("a: &x 1\n---\nb: *x\n", "n.yaml")).substr(0, 12), "n.yaml:3:4: ");
}

struct BadText {
  const char* description;
  std::string text;
  const char* message;
};

class BadYaml : public testing::TestWithParam<BadText> {};

TEST_P(BadYaml, IsExplained) { EXPECT_EQ(message(Config::parse(GetParam().text, "n.yaml")), GetParam().message); }

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string alias_bomb() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 8; ++i) {
    text += fmt::format("a{0}: &a{0} [", i);
    for (int j = 0; j < 10; ++j) {
      text += fmt::format("{}*a{}", j == 0 ? "" : ", ", i - 1);
    }
    text += "]\n";
  }
  return text;
}

INSTANTIATE_TEST_SUITE_P(
    Config, BadYaml,
    testing::Values(BadText{"a key twice", "a: 1\nb: 2\na: 3\n",
                            "n.yaml:3:1: 'a' is there twice; the first is at n.yaml:1:1; remove one"},
                    BadText{"a key twice in braces", "m: {k: 1, k: 2}",
                            "n.yaml:1:11: 'k' is there twice; the first is at n.yaml:1:5; remove one"},
                    BadText{"a tab indents", "a:\n\tb: 1\n", "n.yaml:2:1: a tab in the indentation; YAML wants spaces"},
                    BadText{"a map is a key", "{a: 1}: 2\n", "n.yaml:1:1: a map as a key; keys are plain words"},
                    BadText{"nothing is a key", "{~: 2}\n", "n.yaml:1:2: nothing as a key; keys are plain words"},
                    BadText{"binary",
                            std::string("\x7f"
                                        "ELF\0\0",
                                        6),
                            "n.yaml:1:1: byte 0x7f is no text; a YAML file in UTF-8 is wanted"},
                    BadText{"a null character", std::string("a: 1\nb: \0", 9),
                            "n.yaml:2:4: byte 0x00 is no text; a YAML file in UTF-8 is wanted"},
                    BadText{"Latin-1", "a: caf\xe9\n",
                            "n.yaml:1:7: byte 0xe9 is no text; a YAML file in UTF-8 is wanted"},
                    BadText{"two documents", "a: 1\n---\nb: 1\n", "n.yaml:3:1: a second document; one file holds one"},
                    BadText{"a list not closed", "a: [1, 2\n",
                            "n.yaml:2:1: end of sequence flow not found; a '[' is not closed, or a comma is missing"},
                    BadText{"an alias of its own", "a: &x [*x]\n",
                            "n.yaml:1:8: an alias inside of what it stands for; write it out"},
                    BadText{"a quote not closed", "a: 1\nb: 'it''s\nc: 2\n", "n.yaml:2:4: a quote that is not closed"},
                    BadText{"deep", nested(65), "n.yaml:1:65: nested more than 64 levels deep"},
                    BadText{"very deep", nested(100'000), "n.yaml:1:65: nested more than 64 levels deep"},
                    BadText{"an alias bomb", alias_bomb(),
                            "n.yaml:6:45: more than 1000000 values, with what aliases repeat; split the file"}));

TEST(Config, LaterMistakesOfSyntaxHaveAPlace) {
  for (const char* text :
       {"a: 'x\n", "a: b: c\n", "a: 1\n b: 2\n", "- a\nb: 1\n", "a: *nothing\n", "a: @x\n", "a: \"x\n"}) {
    EXPECT_THAT(message(Config::parse(text, "n.yaml")), StartsWith("n.yaml:")) << text;
  }
}

TEST(Config, ArgumentsHaveNoLines) {
  EXPECT_EQ(message(Config::parse_argument("[1", "setting 'a'")).substr(0, 13), "setting 'a': ");
  EXPECT_EQ(message(Config::parse_argument("x", "setting 'a'")->integer(0, 9)),
            "setting 'a': expected a whole number from 0 to 9, found 'x'");
}

TEST(Config, WrongTypesAreNamed) {
  const Config config = parsed("n: 70000\nt: text\nl: [1]\nm: {a: 1}\nq: '5'\nb: yes\nhex: 0x10\n");
  const auto at = [&](const char* key) { return *config.find(key); };
  EXPECT_EQ(message(at("n").integer(0, 65535)), "n.yaml:1:4: expected a whole number from 0 to 65535, found '70000'");
  EXPECT_EQ(message(at("t").integer(1, 9)), "n.yaml:2:4: expected a whole number from 1 to 9, found 'text'");
  EXPECT_EQ(message(at("q").integer(1, 9)), "n.yaml:5:4: expected a whole number from 1 to 9, found '5'");
  EXPECT_EQ(message(at("hex").integer(1, 99)), "n.yaml:7:6: expected a whole number from 1 to 99, found '0x10'");
  EXPECT_EQ(message(at("l").string()), "n.yaml:3:4: expected a text, found a list of 1");
  EXPECT_EQ(message(at("m").list()), "n.yaml:4:4: expected a list, found a map");
  EXPECT_EQ(message(at("l").map()), "n.yaml:3:4: expected a map, found a list of 1");
  EXPECT_EQ(message(at("b").boolean()), "n.yaml:6:4: expected true or false, found 'yes'");
  EXPECT_EQ(message(at("t").one_of({"test", "other"})),
            "n.yaml:2:4: expected one of test, other, found 'text', did you mean 'test'?");
}

TEST(Config, AllUnknownKeysAreToldAtOnce) {
  const Config config = parsed("node: a\nwokers: 1\nxyz: 2\n");
  EXPECT_EQ(message(config.check_keys({"node", "ports", "workers"})),
            "n.yaml:2:1: unknown key 'wokers'; allowed: node, ports, workers; did you mean 'workers'?\n"
            "n.yaml:3:1: unknown key 'xyz'; allowed: node, ports, workers");
  EXPECT_TRUE(config.check_keys({"node", "wokers", "xyz"}));
  EXPECT_EQ(message(parsed("[1]").check_keys({"a"})), "n.yaml:1:1: expected a map with the keys a, found a list of 1");
}

class ConfigFile : public testing::Test {
 protected:
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / fmt::format("config_test_{}", getpid());
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
};

TEST_F(ConfigFile, ThatCannotBeRead) {
  const std::string missing = folder_ / "missing.yaml";
  EXPECT_EQ(message(Config::read_file(missing)),
            fmt::format("cannot read {}: No such file or directory; check the path", missing));
  EXPECT_EQ(message(Config::read_file(folder_)), fmt::format("{} is a directory; give a YAML file", folder_.string()));
  const std::string empty = folder_ / "empty.yaml";
  std::ofstream(empty).flush();
  EXPECT_EQ(message(Config::read_file(empty)), empty + " is empty");
  const std::string large = folder_ / "large.yaml";
  std::ofstream(large) << std::string(Config::byte_limit + 1, '#');
  EXPECT_THAT(message(Config::read_file(large)), HasSubstr("bytes, and the limit is 16777216"));
}

}  // namespace
}  // namespace weir
