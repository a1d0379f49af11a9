#include <weir/control/table_text.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace weir {

TableText::TableText(std::vector<std::string> titles) : titles_(std::move(titles)) {
  for (std::string& title : titles_) {
    const bool marked = title.ends_with('<');
    left_.push_back(left_.empty() || marked);
    if (marked) {
      title.pop_back();
    }
  }
}

std::string TableText::to_string() const {
  if (rows_.empty()) {
    return {};
  }
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < titles_.size(); ++column) {
    std::size_t width = titles_[column].size();
    for (const auto& row : rows_) {
      width = std::max(width, row[column].size());
    }
    widths.push_back(width);
  }
  std::string text;
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string line = "  ";
    for (std::size_t column = 0; column < cells.size(); ++column) {
      line += left_[column] ? fmt::format("{:<{}}  ", cells[column], widths[column])
                            : fmt::format("{:>{}}  ", cells[column], widths[column]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  print(titles_);
  for (const auto& row : rows_) {
    print(row);
  }
  return text;
}

std::string grouped(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) {
      text += ',';
    }
    text += digits[i];
  }
  return text;
}

std::string scaled(double number) {
  static constexpr std::array<const char*, 5> units{"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (number >= 999.5 && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f}{}", number, number >= 99.95 || number == 0 ? 0 : number >= 9.995 ? 1 : 2, units[unit]);
}

}  // namespace weir
