#include <weir/service/setting.h>

namespace weir {

namespace {

Result<> check_type(const Setting& setting, const Config& value) {
  const auto plain = [](const auto& result) { return result ? Result<>() : std::unexpected(result.error()); };
  switch (setting.type) {
    case SettingType::text: {
      const std::vector<std::string_view> words(setting.words.begin(), setting.words.end());
      return words.empty() ? plain(value.string()) : plain(value.one_of(words));
    }
    case SettingType::number:
      return plain(value.integer(setting.min, setting.max));
    case SettingType::boolean:
      return plain(value.boolean());
    case SettingType::list:
      return plain(value.list());
    case SettingType::map:
      return plain(value.map());
  }
  return {};
}

}  // namespace

Setting number_setting(std::string name, std::string help, std::int64_t otherwise, std::int64_t min, std::int64_t max) {
  return {.name = std::move(name),
          .type = SettingType::number,
          .help = std::move(help),
          .otherwise = std::to_string(otherwise),
          .min = min,
          .max = max};
}

Setting word_setting(std::string name, std::string help, std::vector<std::string> words) {
  std::string first = words.front();
  return {.name = std::move(name), .help = std::move(help), .otherwise = std::move(first), .words = std::move(words)};
}

Setting required_setting(std::string name, SettingType type, std::string help) {
  return {.name = std::move(name), .type = type, .help = std::move(help), .required = true};
}

Setting live(Setting setting) {
  setting.live = true;
  return setting;
}

Result<> check_settings(std::string_view service, std::span<const Setting> schema, const Config& settings) {
  if (settings.kind() == Config::Kind::scalar || settings.kind() == Config::Kind::list) {
    return settings.error("expected the settings of {} as a map, found {}", service, settings.found());
  }
  std::vector<std::string_view> names;
  for (const Setting& setting : schema) {
    names.emplace_back(setting.name);
  }
  Errors errors;
  if (names.empty() && settings.kind() == Config::Kind::map && !settings.map()->empty()) {
    return settings.error("{} has no settings", service);
  }
  errors.take(settings.check_keys(names));
  for (const Setting& setting : schema) {
    const Config* value = settings.find(setting.name);
    if (value != nullptr && !value->is_null()) {
      errors.take(check_type(setting, *value));
    } else if (setting.required) {
      errors.take((value != nullptr ? *value : settings)
                      .error("{} needs the setting '{}': {}", service, setting.name, setting.help));
    }
  }
  return errors.result();
}

}  // namespace weir
