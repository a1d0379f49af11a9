#pragma once
// What a change of a running node changes, in words.

#include <string>

#include <nlohmann/json.hpp>

namespace weir::cli {

/// The node's answer to a change: its `changes`, of which there are some, and whether they were `applied`. Throws
/// nlohmann::json::exception if it is no such answer.
std::string changes_text(const nlohmann::ordered_json& json);

}  // namespace weir::cli
