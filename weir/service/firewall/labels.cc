#include <weir/service/firewall/labels.h>

#include <algorithm>

namespace weir {

Labels labels_of(const std::map<std::string, std::string>& words, Names& names) {
  Labels labels;
  for (const auto& [key, value] : words) {
    labels.push_back({names.id(key), names.id(value)});
  }
  std::ranges::sort(labels);
  return labels;
}

bool Requirement::holds(const Labels& labels) const {
  const auto label = std::ranges::find(labels, key, &Label::key);
  const bool there = label != labels.end();
  const auto listed = [&] { return std::ranges::find(values, label->value) != values.end(); };
  switch (op) {
    case Operator::in:
      return there && listed();
    case Operator::not_in:
      return !there || !listed();
    case Operator::exists:
      return there;
    case Operator::does_not_exist:
      return !there;
  }
  return false;
}

bool Selector::selects(const Labels& labels) const {
  return std::ranges::all_of(all, [&](const Requirement& each) { return each.holds(labels); });
}

}  // namespace weir
