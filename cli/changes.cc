#include "changes.h"
#include <fmt/format.h>

namespace weir::cli {

std::string changes_text(const nlohmann::ordered_json& json) {
  std::string text = json.at("applied").get<bool>() ? "Changed\n" : "Would change (--dry-run)\n";
  for (const auto& change : json.at("changes")) {
    const std::string kind = change.at("kind").get<std::string>();
    text += fmt::format("  {} {}: {}\n",
                        kind == "add"      ? '+'
                        : kind == "remove" ? '-'
                                           : '~',
                        change.at("what").get<std::string>(), change.at("detail").get<std::string>());
  }
  return text;
}

}  // namespace weir::cli
