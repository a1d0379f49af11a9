#pragma once
// From the text of options to values: each error names the option, what was found and what is allowed.

#include <concepts>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/base/nearest.h>
#include <weir/device/device_spec.h>
#include <weir/packet/address.h>

namespace weir::device_internal {

/// Reads one spec's options. An option that is not given leaves its value as it is. The first error is kept, and
/// reading goes on; `result` tells it.
class OptionReader {
 public:
  explicit OptionReader(const DeviceSpec& spec) : spec_(spec) {}

  [[nodiscard]] bool has(const std::string& key) const { return spec_.options.contains(key); }

  /// A whole number from `least` to `most`.
  template <std::unsigned_integral T>
  void number(const std::string& key, T& value, std::type_identity_t<T> least = 0,
              std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
    if (const auto found = whole(key, least, most)) {
      value = static_cast<T>(*found);
    }
  }

  /// A decimal fraction from `least` to `most`.
  void decimal(const std::string& key, double& value, double least, double most);

  /// One of some words.
  template <class T>
  void choice(const std::string& key, T& value, std::initializer_list<std::pair<std::string_view, T>> choices) {
    const std::string* text = find(key);
    if (text == nullptr) {
      return;
    }
    std::vector<std::string_view> words;
    for (const auto& [word, meaning] : choices) {
      if (word == *text) {
        value = meaning;
        return;
      }
      words.push_back(word);
    }
    wrong_word(key, *text, words);
  }

  void text(const std::string& key, std::string& value) {
    if (const std::string* found = find(key)) {
      value = *found;
    }
  }
  void address(const std::string& key, std::optional<IpAddress>& value);
  void mac(const std::string& key, MacAddress& value);

  /// Words joined by '+'.
  [[nodiscard]] std::vector<std::string_view> list(const std::string& key) const;
  void wrong_word(const std::string& key, std::string_view word, const std::vector<std::string_view>& known);

  /// Records that `key` is wrong; `what` says why and what would be right.
  void fail(const std::string& key, std::string_view what);

  [[nodiscard]] Result<> result() const { return error_ ? Result<>(std::unexpected(*error_)) : Result<>(); }

 private:
  [[nodiscard]] const std::string* find(const std::string& key) const {
    const auto found = spec_.options.find(key);
    return found == spec_.options.end() ? nullptr : &found->second;
  }
  std::optional<std::uint64_t> whole(const std::string& key, std::uint64_t least, std::uint64_t most);

  const DeviceSpec& spec_;
  std::optional<Error> error_;
};

}  // namespace weir::device_internal
