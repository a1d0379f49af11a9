#pragma once

#include <weir/base/config.h>
#include <weir/flow/paths.h>

namespace weir {

/// The setting `bfd`: {interval: 10ms, multiplier: 3}, where what is left out is as usual. Errors name the place.
Result<BfdSettings> read_bfd_settings(const Config& setting);

/// "300ms" or "1s"
std::string interval_text(Nanoseconds interval);

}  // namespace weir
