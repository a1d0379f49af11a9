#pragma once

#include <cstdint>

namespace weir {

/// What a packet means to the conversation that it belongs to.
enum class Judgement : std::uint8_t {
  plain,    ///< the conversation stands, and this neither opens nor closes it
  noted,    ///< belongs to it
  reopens,  ///< begins another with the same ports after its end
  invalid,  ///< no sender of the conversation sends such a packet now
};

}  // namespace weir
