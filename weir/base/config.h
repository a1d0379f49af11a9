#pragma once
// A configuration file as a tree of which every node knows its place, so that every error can name it.
//
//     const auto config = Config::read_file("node.yaml");
//     if (auto keys = config->check_keys({"workers", "ports"}); !keys) { ... }  // node.yaml:7:3: unknown key 'wokers';
//     ...

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/base/error.h>

namespace weir {

/// One node: nothing, a scalar, a list or a map. A value; copies share their content. Errors of all accessors begin
/// with the node's place and say what was found and what is allowed.
class Config {
 public:
  enum class Kind : std::uint8_t { null, scalar, list, map };

  /// Limits of what is read; beyond them it is refused.
  static constexpr std::size_t byte_limit = 16U << 20U;
  static constexpr std::size_t node_limit = 1'000'000;  ///< with what aliases repeat
  static constexpr unsigned depth_limit = 64;

  /// A null node without a place.
  Config() = default;

  /// Reads a YAML file. Errors: it cannot be read, is too large or no text, a syntax error, a key that is there twice
  /// (with the places of both), more than one document, the limits above.
  static Result<Config> read_file(const std::string& path);
  /// The same of a text; errors call it `name`.
  static Result<Config> parse(std::string_view text, std::string name);
  /// A file's documents, in their order; those that say nothing are left out. The limits hold for all of them together.
  static Result<std::vector<Config>> read_documents(const std::string& path);
  static Result<std::vector<Config>> parse_documents(std::string_view text, std::string name);
  /// A file's text as it is, up to a little more than `byte_limit`; errors as of `read_file`.
  static Result<std::string> read_text(const std::string& path);
  /// A value given on the command line: its places are `name` alone, without line and column.
  static Result<Config> parse_argument(std::string_view text, std::string name);

  // ---- Made by code: for settings that do not come from a file, and by the reader ----

  /// Line and column count from 1; line 0: the place is the name alone.
  struct Place {
    std::shared_ptr<const std::string> name;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    [[nodiscard]] std::string to_string() const;
  };
  struct Entry;

  static Config null(Place place);
  static Config scalar(Place place, std::string text, bool quoted = false);
  static Config list(Place place, std::vector<Config> items);
  static Config map(Place place, std::vector<Entry> entries);

  // ---- Reading ----

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is_null() const { return kind() == Kind::null; }
  /// "node.yaml:12:5"
  [[nodiscard]] std::string place() const;
  /// Whether both say the same, wherever they stand.
  [[nodiscard]] bool same_as(const Config& other) const;
  /// As one would write it on one line: "{a: 1, b: [x, y]}".
  [[nodiscard]] std::string text() const;
  /// "'abc'", "a list of 3", "a map", "nothing": what errors say was found.
  [[nodiscard]] std::string found() const;

  /// An error at this node's place: `return config.error("port '{}' is used twice", name);`.
  template <class... Args>
  [[nodiscard]] std::unexpected<Error> error(fmt::format_string<Args...> format, Args&&... args) const {
    return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...)}.at(place()));
  }

  /// `what` names the value in errors: "expected a device, found a list of 2".
  [[nodiscard]] Result<std::string> string(std::string_view what = "a text") const;
  [[nodiscard]] Result<std::int64_t> integer(std::int64_t min, std::int64_t max) const;
  /// true or false
  [[nodiscard]] Result<bool> boolean() const;
  /// One of `words`; its index.
  [[nodiscard]] Result<std::size_t> one_of(std::span<const std::string_view> words) const;
  [[nodiscard]] Result<std::size_t> one_of(std::initializer_list<std::string_view> words) const {
    return one_of(std::span(words.begin(), words.size()));
  }
  /// Valid as long as a copy of this node is; nothing is an empty list, and an empty map.
  [[nodiscard]] Result<std::span<const Config>> list(std::string_view what = "a list") const;
  [[nodiscard]] Result<std::span<const Entry>> map(std::string_view what = "a map") const;

  /// The value of `key`; nullptr if there is none or this is no map.
  [[nodiscard]] const Config* find(std::string_view key) const;
  /// The value of `key`; if there is none, nothing, at this map's place: reading it as what is wanted is then the
  /// error.
  [[nodiscard]] Config get(std::string_view key) const;

  /// Everything that is wrong with a map's keys, a line each: unknown ones (with what is allowed, and the nearest).
  /// Anything but a map or nothing is an error too.
  [[nodiscard]] Result<> check_keys(std::span<const std::string_view> allowed) const;
  [[nodiscard]] Result<> check_keys(std::initializer_list<std::string_view> allowed) const {
    return check_keys(std::span(allowed.begin(), allowed.size()));
  }

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

/// One pair of a map.
struct Config::Entry {
  Config key;  ///< a scalar
  std::string name;
  Config value;
};

/// Several errors as one, a line each: so that a file's mistakes are all told at once.
class Errors {
 public:
  void add(const Error& error) { message_ += (message_.empty() ? "" : "\n") + error.message; }
  /// The value, or `otherwise` and a line more.
  template <class T>
  T take(Result<T> result, T otherwise = {}) {
    if (!result) {
      add(result.error());
      return otherwise;
    }
    return std::move(*result);
  }
  void take(const Result<>& result) {
    if (!result) {
      add(result.error());
    }
  }
  void take(std::unexpected<Error> failed) { add(failed.error()); }
  [[nodiscard]] bool empty() const { return message_.empty(); }
  [[nodiscard]] Result<> result() const {
    if (empty()) {
      return {};
    }
    return std::unexpected(Error{message_});
  }

 private:
  std::string message_;
};

}  // namespace weir
