#include <weir/base/config.h>

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>

namespace weir {

struct Config::Content {
  Kind kind = Kind::null;
  Place place;
  std::string text;
  bool quoted = false;
  std::vector<Config> items;
  std::vector<Entry> entries;
};

std::string Config::Place::to_string() const {
  if (name == nullptr) {
    return "configuration";
  }
  return line == 0 ? *name : fmt::format("{}:{}:{}", *name, line, column);
}

Config Config::null(Place place) {
  Config config;
  config.content_ = std::make_shared<const Content>(Content{Kind::null, std::move(place), {}, false, {}, {}});
  return config;
}

Config Config::scalar(Place place, std::string text, bool quoted) {
  Config config;
  config.content_ =
      std::make_shared<const Content>(Content{Kind::scalar, std::move(place), std::move(text), quoted, {}, {}});
  return config;
}

Config Config::list(Place place, std::vector<Config> items) {
  Config config;
  config.content_ =
      std::make_shared<const Content>(Content{Kind::list, std::move(place), {}, false, std::move(items), {}});
  return config;
}

Config Config::map(Place place, std::vector<Entry> entries) {
  Config config;
  config.content_ =
      std::make_shared<const Content>(Content{Kind::map, std::move(place), {}, false, {}, std::move(entries)});
  return config;
}

Config::Kind Config::kind() const { return content_ == nullptr ? Kind::null : content_->kind; }

std::string Config::place() const { return content_ == nullptr ? Place{}.to_string() : content_->place.to_string(); }

bool Config::same_as(const Config& other) const {
  if (kind() != other.kind()) {
    return false;
  }
  const auto same_entries = [](const Entry& a, const Entry& b) { return a.name == b.name && a.value.same_as(b.value); };
  switch (kind()) {
    case Kind::null:
      return true;
    case Kind::scalar:
      return content_->text == other.content_->text;
    case Kind::list:
      return std::ranges::equal(content_->items, other.content_->items, &Config::same_as);
    case Kind::map:
      return std::ranges::equal(content_->entries, other.content_->entries, same_entries);
  }
  return false;
}

std::string Config::text() const {
  std::vector<std::string> parts;
  switch (kind()) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return content_->text;
    case Kind::list:
      std::ranges::transform(content_->items, std::back_inserter(parts), &Config::text);
      return fmt::format("[{}]", fmt::join(parts, ", "));
    case Kind::map:
      std::ranges::transform(content_->entries, std::back_inserter(parts),
                             [](const Entry& entry) { return fmt::format("{}: {}", entry.name, entry.value.text()); });
      return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return {};
}

std::string Config::found() const {
  constexpr std::size_t shown = 60;
  switch (kind()) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return content_->text.size() > shown ? fmt::format("'{}...'", content_->text.substr(0, shown))
                                           : fmt::format("'{}'", content_->text);
    case Kind::list:
      return fmt::format("a list of {}", content_->items.size());
    case Kind::map:
      return "a map";
  }
  return {};
}

Result<std::string> Config::string(std::string_view what) const {
  if (kind() != Kind::scalar) {
    return error("expected {}, found {}", what, found());
  }
  return content_->text;
}

Result<std::int64_t> Config::integer(std::int64_t min, std::int64_t max) const {
  const auto refuse = [&] { return error("expected a whole number from {} to {}, found {}", min, max, found()); };
  if (kind() != Kind::scalar || content_->quoted) {
    return refuse();
  }
  // 65_536 and 65'536 are not numbers in YAML; nor is anything that would be read in another base.
  const std::string& text = content_->text;
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || value < min || value > max) {
    return refuse();
  }
  return value;
}

Result<bool> Config::boolean() const {
  if (kind() == Kind::scalar && !content_->quoted && (content_->text == "true" || content_->text == "false")) {
    return content_->text == "true";
  }
  return error("expected true or false, found {}", found());
}

Result<std::size_t> Config::one_of(std::span<const std::string_view> words) const {
  if (kind() != Kind::scalar) {
    return error("expected one of {}, found {}", fmt::join(words, ", "), found());
  }
  const auto place = std::ranges::find(words, std::string_view(content_->text));
  if (place == words.end()) {
    return error("expected one of {}, found {}{}", fmt::join(words, ", "), found(),
                 did_you_mean(content_->text, words));
  }
  return static_cast<std::size_t>(place - words.begin());
}

Result<std::span<const Config>> Config::list(std::string_view what) const {
  if (kind() == Kind::null) {
    return std::span<const Config>();
  }
  if (kind() != Kind::list) {
    return error("expected {}, found {}", what, found());
  }
  return std::span<const Config>(content_->items);
}

Result<std::span<const Config::Entry>> Config::map(std::string_view what) const {
  if (kind() == Kind::null) {
    return std::span<const Entry>();
  }
  if (kind() != Kind::map) {
    return error("expected {}, found {}", what, found());
  }
  return std::span<const Entry>(content_->entries);
}

const Config* Config::find(std::string_view key) const {
  if (kind() != Kind::map) {
    return nullptr;
  }
  const auto place = std::ranges::find(content_->entries, key, &Entry::name);
  return place == content_->entries.end() ? nullptr : &place->value;
}

Config Config::get(std::string_view key) const {
  const Config* value = find(key);
  return value != nullptr ? *value : content_ == nullptr ? Config() : null(content_->place);
}

Result<> Config::check_keys(std::span<const std::string_view> allowed) const {
  const auto entries = map(fmt::format("a map with the keys {}", fmt::join(allowed, ", ")));
  if (!entries) {
    return std::unexpected(entries.error());
  }
  Errors errors;
  for (const Entry& entry : *entries) {
    if (std::ranges::find(allowed, std::string_view(entry.name)) != allowed.end()) {
      continue;
    }
    const std::string_view near = nearest(entry.name, allowed);
    errors.take(entry.key.error("unknown key {}; allowed: {}{}", entry.key.found(), fmt::join(allowed, ", "),
                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  return errors.result();
}

}  // namespace weir
