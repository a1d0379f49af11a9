#include <weir/service/service_context.h>

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/service/read_match.h>
#include <weir/service/service.h>

namespace weir {

ServiceContext::ServiceContext(Node& to, const ServiceKind& kind, Config settings, const std::filesystem::path& folder,
                               std::span<const ServicePort> ports, std::span<const NamedService> built)
    : node(to), kind_(kind), settings_(std::move(settings)), folder_(folder), ports_(ports), built_(built) {}

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

std::string ServiceContext::path(std::string_view setting) const { return path_of(text(setting)); }

std::string ServiceContext::path_of(const std::string& text) const { return folder_ / text; }

Result<PortId> ServiceContext::port(const Config& value) const {
  const auto name = value.string("the name of a port");
  if (!name) {
    return std::unexpected(name.error());
  }
  const auto port = std::ranges::find(ports_, *name, &ServicePort::name);
  if (port != ports_.end()) {
    return port->id;
  }
  std::vector<std::string_view> known;
  for (const ServicePort& other : ports_) {
    known.emplace_back(other.name);
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

Service* ServiceContext::find(std::string_view other) const {
  const auto place = std::ranges::find(built_, other, &NamedService::name);
  return place == built_.end() || std::ranges::find(kind_.needs, other) == kind_.needs.end() ? nullptr
                                                                                             : place->service.get();
}

}  // namespace weir
