#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir {

/// The candidate that `word` was most likely meant to be: the least edit distance, at most a third of its length
/// (at least 1). Empty if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// ", did you mean 'X'?" or nothing: to end an error message with.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace weir
