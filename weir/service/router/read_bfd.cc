#include <weir/service/router/read_bfd.h>

#include <charconv>
#include <optional>

namespace weir {

namespace {

constexpr Nanoseconds millisecond = 1'000'000;
constexpr Nanoseconds second = 1'000'000'000;

std::optional<Nanoseconds> duration(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (fault != std::errc{} || (unit != "ms" && unit != "s")) {
    return std::nullopt;
  }
  return number * (unit == "s" ? second : millisecond);
}

}  // namespace

std::string interval_text(Nanoseconds interval) {
  return interval % second == 0 ? fmt::format("{}s", interval / second) : fmt::format("{}ms", interval / millisecond);
}

Result<BfdSettings> read_bfd_settings(const Config& setting) {
  BfdSettings settings;
  if (auto keys = setting.check_keys({"interval", "multiplier"}); !keys) {
    return std::unexpected(keys.error());
  }
  if (const Config* interval = setting.find("interval")) {
    const auto time = duration(interval->string("a time").value_or(""));
    if (!time || *time < BfdSettings::least_interval || *time > BfdSettings::most_interval) {
      return interval->error("expected a time from {} to {}, such as 300ms or 1s, found {}",
                             interval_text(BfdSettings::least_interval), interval_text(BfdSettings::most_interval),
                             interval->found());
    }
    settings.interval = *time;
  }
  if (const Config* multiplier = setting.find("multiplier")) {
    const auto number = multiplier->integer(1, 255);
    if (!number) {
      return std::unexpected(number.error());
    }
    settings.multiplier = static_cast<std::uint8_t>(*number);
  }
  return settings;
}

}  // namespace weir
