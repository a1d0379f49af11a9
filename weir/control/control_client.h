#pragma once
// Asks a running node.

#include <filesystem>
#include <string>

#include <weir/base/error.h>

namespace weir {

/// The body of a node's answer to a GET of `target` ("/v1/ports"), from its control socket; blocking, for at most half
/// a minute without a byte. Errors: what `connect_control` has; the node went away; an answer that is an error, with
/// its remedy.
Result<std::string> ask_control(const std::filesystem::path& socket, const std::string& target);

}  // namespace weir
