#pragma once
// Services: named units that put stages into a node's graph, each with a schema of its settings.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weir/base/config.h>
#include <weir/runtime/node.h>

namespace weir {

enum class SettingType : std::uint8_t { text, number, boolean, list, map };

/// One setting of a service.
struct Setting {
  std::string name;
  SettingType type = SettingType::text;
  std::string help;       ///< a phrase, with its unit
  std::string otherwise;  ///< what it is if it is not given, as text
  bool required = false;
  std::int64_t min = 0;  ///< of a number
  std::int64_t max = 0xffffffff;
  std::vector<std::string> words;  ///< of a text, if not empty: those allowed
};

/// A number from `min` to `max`.
Setting number_setting(std::string name, std::string help, std::int64_t otherwise, std::int64_t min, std::int64_t max);
/// One of `words`, the first of which is the default.
Setting word_setting(std::string name, std::string help, std::vector<std::string> words);
Setting required_setting(std::string name, SettingType type, std::string help);

struct ServiceKind;

/// What building a service works with. Settings were checked against the schema: the accessors give what is there, or
/// the default, and cannot fail.
class ServiceContext {
 public:
  /// `folder`: what paths in the settings start from.
  ServiceContext(Node& to, const ServiceKind& kind, Config settings, std::filesystem::path folder);

  Node& node;

  /// The service's name: a prefix for those of its stages and tables.
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::int64_t number(std::string_view setting) const;
  [[nodiscard]] std::string text(std::string_view setting) const;
  [[nodiscard]] bool boolean(std::string_view setting) const;
  [[nodiscard]] std::span<const Config> list(std::string_view setting) const;
  [[nodiscard]] std::span<const Config::Entry> map(std::string_view setting) const;
  /// The setting's path, from the folder that it is relative to.
  [[nodiscard]] std::string path(std::string_view setting) const;
  /// The setting with its place; null if it is not given.
  [[nodiscard]] Config config(std::string_view setting) const;
  /// The port that `value` names. An error lists the ports.
  [[nodiscard]] Result<PortId> port(const Config& value) const;
  /// Next hops for a select group: a list of {port: NAME, mac: the next hop's, from: the node's own on that port}.
  [[nodiscard]] Result<std::vector<Member>> members(const Config& value) const;

 private:
  [[nodiscard]] const Setting& schema(std::string_view setting) const;

  const ServiceKind& kind_;
  Config settings_;
  std::filesystem::path folder_;
};

/// The part of the graph that a service made.
struct ServiceStages {
  StageRef entry;
  std::optional<StageRef> exit;  ///< the stage whose next() leaves the service; nothing if it always ends the chain
};

/// One kind of service.
struct ServiceKind {
  std::string name;
  std::string help;  ///< one line
  std::vector<Setting> settings;
  /// Adds stages and state to the node, which is not started. An error names the setting's place.
  Result<ServiceStages> (*build)(ServiceContext& context);
};

/// The kinds that a program knows. Plain data: every program fills its own.
class ServiceRegistry {
 public:
  /// Names are unique; the later of two of the same name stays.
  void add(ServiceKind kind);

  /// nullptr if there is none.
  [[nodiscard]] const ServiceKind* find(std::string_view name) const;
  [[nodiscard]] const std::vector<ServiceKind>& kinds() const { return kinds_; }

  /// The kind that `name` names. An error lists what there is.
  [[nodiscard]] Result<const ServiceKind*> require(const Config& name) const;

 private:
  std::vector<ServiceKind> kinds_;
};

/// Everything that is wrong with settings, a line each: unknown ones, wrong types, required ones that are missing.
Result<> check_settings(const ServiceKind& kind, const Config& settings);

/// Checks the settings, then builds.
Result<ServiceStages> build_service(Node& node, const ServiceKind& kind, const Config& settings,
                                    const std::filesystem::path& folder);

}  // namespace weir
