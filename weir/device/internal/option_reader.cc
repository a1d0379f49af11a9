#include <weir/device/internal/option_reader.h>

#include <charconv>
#include <cmath>

#include <fmt/ranges.h>

namespace weir::device_internal {

namespace {

// The number that is all of `text`.
template <class T>
std::optional<T> parse_all(std::string_view text) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

void OptionReader::fail(const std::string& key, std::string_view what) {
  if (!error_) {
    error_ = Error{fmt::format("option {}: {}", key, what)};
  }
}

void OptionReader::wrong_word(const std::string& key, std::string_view word,
                              const std::vector<std::string_view>& known) {
  const std::string hint = did_you_mean(word, known);
  fail(key,
       fmt::format("'{}' is not known{} give one of: {}", word, hint.empty() ? ";" : hint, fmt::join(known, ", ")));
}

std::optional<std::uint64_t> OptionReader::whole(const std::string& key, std::uint64_t least, std::uint64_t most) {
  const std::string* text = find(key);
  if (text == nullptr) {
    return std::nullopt;
  }
  const auto value = parse_all<std::uint64_t>(*text);
  if (!value || *value < least || *value > most) {
    fail(key, most == std::numeric_limits<std::uint64_t>::max()
                  ? fmt::format("'{}' is not a whole number of {} or more", *text, least)
                  : fmt::format("'{}' is not a whole number from {} to {}", *text, least, most));
    return std::nullopt;
  }
  return value;
}

void OptionReader::decimal(const std::string& key, double& value, double least, double most) {
  if (const std::string* text = find(key)) {
    const auto found = parse_all<double>(*text);
    if (!found || std::isnan(*found) || *found < least || *found > most) {
      return fail(key, fmt::format("'{}' is not a number from {} to {}", *text, least, most));
    }
    value = *found;
  }
}

void OptionReader::address(const std::string& key, std::optional<IpAddress>& value) {
  if (const std::string* text = find(key)) {
    const auto found = IpAddress::parse(*text);
    if (!found) {
      return fail(key, found.error().message);
    }
    value = *found;
  }
}

void OptionReader::mac(const std::string& key, MacAddress& value) {
  if (const std::string* text = find(key)) {
    const auto found = MacAddress::parse(*text);
    if (!found) {
      return fail(key, found.error().message);
    }
    value = *found;
  }
}

std::vector<std::string_view> OptionReader::list(const std::string& key) const {
  std::vector<std::string_view> words;
  if (const std::string* text = find(key)) {
    std::string_view rest = *text;
    std::size_t plus = 0;
    while ((plus = rest.find('+')) != std::string_view::npos) {
      words.push_back(rest.substr(0, plus));
      rest.remove_prefix(plus + 1);
    }
    words.push_back(rest);
  }
  return words;
}

}  // namespace weir::device_internal
