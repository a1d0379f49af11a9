#pragma once
// What a service can be told: a schema, and what a file says checked against it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/base/config.h>

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
  std::vector<std::string> words = {};  ///< of a text, if not empty: those allowed
  bool live = false;                    ///< whether it can change while the node runs: Service::configure reads it
};

/// A number from `min` to `max`.
Setting number_setting(std::string name, std::string help, std::int64_t otherwise, std::int64_t min, std::int64_t max);
/// One of `words`, the first of which is the default.
Setting word_setting(std::string name, std::string help, std::vector<std::string> words);
Setting required_setting(std::string name, SettingType type, std::string help);
/// The setting as one that can change while the node runs.
Setting live(Setting setting);

/// Everything that is wrong with the settings of `service`, a line each: unknown ones, wrong types, required ones that
/// are missing.
Result<> check_settings(std::string_view service, std::span<const Setting> schema, const Config& settings);

}  // namespace weir
