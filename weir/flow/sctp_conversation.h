#pragma once
// What connection tracking knows of an SCTP association (RFC 9260).

#include <array>
#include <cstdint>
#include <string_view>

#include <weir/flow/judgement.h>
#include <weir/packet/transport.h>

namespace weir {

enum class SctpState : std::uint8_t { opening, established, closing, closed };

std::string_view name_of(SctpState state);

/// Follows the chunk that a packet begins with. A packet of data is not looked into for a second one that closes: such
/// an association ends by age.
class SctpConversation {
 public:
  /// The association begins with this INIT.
  void open(const TransportFacts& init);

  /// Judges a packet of `side` (0: the initiator), without effect.
  [[nodiscard]] Judgement judge(const TransportFacts& packet, unsigned side) const;
  /// Takes in a packet that was judged `plain` or `noted`; whether the state changed.
  bool note(const TransportFacts& packet, unsigned side);

  [[nodiscard]] SctpState state() const { return state_; }

 private:
  std::array<std::uint32_t, 2> tags_{};  ///< that packets to each side carry; 0: not known
  SctpState state_ = SctpState::opening;
};

}  // namespace weir
