#pragma once
// Aligned columns for people.

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Rows of cells, printed with each column as wide as its widest cell. The first column stands left, numbers right.
class TableText {
 public:
  /// Column titles; one that ends with '<' stands left (the mark is not shown), as the first does.
  explicit TableText(std::vector<std::string> titles);

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// With titles, two spaces of indentation, a line each; empty without rows.
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;
};

/// "12,345"
std::string grouped(std::uint64_t number);
/// Three significant digits: "1.23 M", "512 k", "0".
std::string scaled(double number);

}  // namespace weir
