#pragma once
// Labels and selectors, with their words as numbers: what a decision compares is small and needs no text.

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace weir {

/// A word's number.
using NameId = std::uint32_t;

/// Numbers of words, which stay known as long as this lives. One thread.
class Names {
 public:
  NameId id(std::string_view word) {
    const auto known = ids_.find(word);
    if (known != ids_.end()) {
      return known->second;
    }
    return ids_.emplace(words_.emplace_back(word), static_cast<NameId>(words_.size() - 1)).first->second;
  }
  [[nodiscard]] const std::string& word(NameId id) const { return words_[id]; }

 private:
  std::deque<std::string> words_;
  std::unordered_map<std::string_view, NameId> ids_;  // of `words_`, which do not move
};

struct Label {
  NameId key = 0;
  NameId value = 0;

  auto operator<=>(const Label&) const = default;
};

/// The labels of one thing, by key; each key once.
using Labels = std::vector<Label>;

Labels labels_of(const std::map<std::string, std::string>& words, Names& names);

/// One condition on a thing's labels.
struct Requirement {
  enum class Operator : std::uint8_t { in, not_in, exists, does_not_exist };

  NameId key = 0;
  Operator op = Operator::exists;
  std::vector<NameId> values{};  ///< of `in` and `not_in`

  bool operator==(const Requirement&) const = default;
  /// As Kubernetes has it, a thing without the key is `not_in` any values.
  [[nodiscard]] bool holds(const Labels& labels) const;
};

/// All conditions must hold; without any, it selects everything.
struct Selector {
  std::vector<Requirement> all;

  bool operator==(const Selector&) const = default;
  [[nodiscard]] bool selects(const Labels& labels) const;
};

}  // namespace weir
