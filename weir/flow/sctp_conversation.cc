#include <weir/flow/sctp_conversation.h>

#include <weir/packet/sctp.h>

namespace weir {

std::string_view name_of(SctpState state) {
  constexpr std::string_view names[] = {"opening", "established", "closing", "closed"};
  return names[static_cast<std::size_t>(state)];
}

void SctpConversation::open(const TransportFacts& init) {
  tags_ = {init.initiate_tag, 0};
  state_ = SctpState::opening;
}

// A packet carries the tag that its receiver asked for (section 8.5); INIT, which nobody has asked for, none.
Judgement SctpConversation::judge(const TransportFacts& packet, unsigned side) const {
  if (!packet.whole) {
    return Judgement::invalid;
  }
  const std::uint32_t expected = tags_[1 - side];
  switch (packet.chunk) {
    case sctp_chunk::init:
      if (packet.verification_tag != 0 || packet.initiate_tag == 0) {
        return Judgement::invalid;
      }
      return state_ == SctpState::closed ? Judgement::reopens : Judgement::noted;
    case sctp_chunk::init_ack:
      return side == 1 && packet.verification_tag == expected && packet.initiate_tag != 0 ? Judgement::noted
                                                                                          : Judgement::invalid;
    case sctp_chunk::abort:
    case sctp_chunk::shutdown_complete:
      // With the T bit its sender has none of the association, and returns the tag that it was sent (section 8.5.1).
      return packet.verification_tag != 0 &&
                     (packet.verification_tag == expected || packet.verification_tag == tags_[side])
                 ? Judgement::noted
                 : Judgement::invalid;
    default:
      if (expected == 0 || packet.verification_tag != expected) {
        return Judgement::invalid;
      }
      return state_ == SctpState::established && !sctp_chunk::opens_or_closes(packet.chunk) ? Judgement::plain
                                                                                            : Judgement::noted;
  }
}

bool SctpConversation::note(const TransportFacts& packet, unsigned side) {
  const SctpState before = state_;
  switch (packet.chunk) {
    case sctp_chunk::init:
      if (state_ == SctpState::opening) {
        tags_[side] = packet.initiate_tag;
      }
      break;
    case sctp_chunk::init_ack:
      if (state_ == SctpState::opening) {
        tags_[side] = packet.initiate_tag;
      }
      break;
    case sctp_chunk::cookie_ack:
      if (state_ == SctpState::opening) {
        state_ = SctpState::established;
      }
      break;
    case sctp_chunk::shutdown:
    case sctp_chunk::shutdown_ack:
      if (state_ != SctpState::closed) {
        state_ = SctpState::closing;
      }
      break;
    case sctp_chunk::abort:
    case sctp_chunk::shutdown_complete:
      state_ = SctpState::closed;
      break;
    default:
      break;
  }
  return state_ != before;
}

}  // namespace weir
