#include <weir/service/service.h>

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/service/read_match.h>

namespace weir {

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

Result<> check_type(const Setting& setting, const Config& value) {
  const auto plain = [](const auto& result) { return result ? Result<>() : std::unexpected(result.error()); };
  switch (setting.type) {
    case SettingType::text:
      return setting.words.empty() ? plain(value.string()) : plain(value.one_of(views(setting.words)));
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

ServiceContext::ServiceContext(Node& to, const ServiceKind& kind, Config settings, std::filesystem::path folder)
    : node(to), kind_(kind), settings_(std::move(settings)), folder_(std::move(folder)) {}

const std::string& ServiceContext::name() const { return kind_.name; }

// A setting that the schema does not have is the service's mistake; it reads as one without a default.
const Setting& ServiceContext::schema(std::string_view setting) const {
  static const Setting none;
  const auto place = std::ranges::find(kind_.settings, setting, &Setting::name);
  return place == kind_.settings.end() ? none : *place;
}

Config ServiceContext::config(std::string_view setting) const {
  const Config* value = settings_.find(setting);
  return value == nullptr ? Config() : *value;
}

std::int64_t ServiceContext::number(std::string_view setting) const {
  const Setting& known = schema(setting);
  const Config value = config(setting);
  if (!value.is_null()) {
    return value.integer(known.min, known.max).value_or(0);
  }
  std::int64_t number = 0;
  std::from_chars(known.otherwise.data(), known.otherwise.data() + known.otherwise.size(), number);
  return number;
}

std::string ServiceContext::text(std::string_view setting) const {
  return config(setting).string().value_or(schema(setting).otherwise);
}

bool ServiceContext::boolean(std::string_view setting) const {
  return config(setting).boolean().value_or(schema(setting).otherwise == "true");
}

std::span<const Config> ServiceContext::list(std::string_view setting) const {
  const Config* value = settings_.find(setting);
  return value == nullptr ? std::span<const Config>() : value->list().value_or(std::span<const Config>());
}

std::span<const Config::Entry> ServiceContext::map(std::string_view setting) const {
  const Config* value = settings_.find(setting);
  return value == nullptr ? std::span<const Config::Entry>() : value->map().value_or(std::span<const Config::Entry>());
}

std::string ServiceContext::path(std::string_view setting) const { return folder_ / text(setting); }

Result<PortId> ServiceContext::port(const Config& value) const {
  const auto name = value.string("the name of a port");
  if (!name) {
    return std::unexpected(name.error());
  }
  if (const auto port = node.find_port(*name)) {
    return *port;
  }
  std::vector<std::string_view> known;
  for (const auto& port : node.ports()) {
    known.emplace_back(port->name);
  }
  return value.error("no port '{}'; there are: {}{}", *name, fmt::join(known, ", "), did_you_mean(*name, known));
}

Result<std::vector<Member>> ServiceContext::members(const Config& value) const {
  Errors errors;
  std::vector<Member> members;
  for (const Config& hop : errors.take(value.list("a list of next hops"))) {
    if (auto checked = hop.check_keys({"port", "mac", "from"}); !checked) {
      errors.take(checked);
      continue;
    }
    members.push_back({.port = errors.take(port(hop.get("port"))),
                       .dst = errors.take(read_mac(hop.get("mac"))),
                       .src = errors.take(read_mac(hop.get("from")))});
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return members;
}

void ServiceRegistry::add(ServiceKind kind) {
  std::erase_if(kinds_, [&](const ServiceKind& other) { return other.name == kind.name; });
  kinds_.push_back(std::move(kind));
}

const ServiceKind* ServiceRegistry::find(std::string_view name) const {
  const auto place = std::ranges::find(kinds_, name, &ServiceKind::name);
  return place == kinds_.end() ? nullptr : &*place;
}

Result<const ServiceKind*> ServiceRegistry::require(const Config& name) const {
  const auto wanted = name.string("the name of a service");
  if (!wanted) {
    return std::unexpected(wanted.error());
  }
  if (const ServiceKind* kind = find(*wanted)) {
    return kind;
  }
  std::vector<std::string_view> known;
  for (const ServiceKind& kind : kinds_) {
    known.emplace_back(kind.name);
  }
  return name.error("unknown service '{}'; there are: {}{}", *wanted, fmt::join(known, ", "),
                    did_you_mean(*wanted, known));
}

Result<> check_settings(const ServiceKind& kind, const Config& settings) {
  if (settings.kind() == Config::Kind::scalar || settings.kind() == Config::Kind::list) {
    return settings.error("expected the settings of {} as a map, found {}", kind.name, settings.found());
  }
  std::vector<std::string_view> names;
  for (const Setting& setting : kind.settings) {
    names.emplace_back(setting.name);
  }
  Errors errors;
  if (names.empty() && settings.kind() == Config::Kind::map && !settings.map()->empty()) {
    return settings.error("{} has no settings", kind.name);
  }
  errors.take(settings.check_keys(names));
  for (const Setting& setting : kind.settings) {
    const Config* value = settings.find(setting.name);
    if (value != nullptr && !value->is_null()) {
      errors.take(check_type(setting, *value));
    } else if (setting.required) {
      errors.take((value != nullptr ? *value : settings)
                      .error("{} needs the setting '{}': {}", kind.name, setting.name, setting.help));
    }
  }
  return errors.result();
}

Result<ServiceStages> build_service(Node& node, const ServiceKind& kind, const Config& settings,
                                    const std::filesystem::path& folder) {
  if (auto checked = check_settings(kind, settings); !checked) {
    return std::unexpected(checked.error());
  }
  ServiceContext context(node, kind, settings, folder);
  return kind.build(context);
}

}  // namespace weir
