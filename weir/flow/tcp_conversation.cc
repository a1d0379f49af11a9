#include <weir/flow/tcp_conversation.h>

#include <algorithm>
#include <memory>

namespace weir {

namespace {

bool is_syn(const TransportFacts& segment) { return (segment.flags & tcp_flag::control) == tcp_flag::syn; }

// Combinations that TCP uses. PSH, URG, ECE and CWR go with any.
bool sensible(std::uint8_t flags) {
  switch (flags & tcp_flag::control) {
    case tcp_flag::syn:
    case tcp_flag::syn | tcp_flag::ack:
    case tcp_flag::rst:
    case tcp_flag::rst | tcp_flag::ack:
    case tcp_flag::fin | tcp_flag::ack:
    case tcp_flag::ack:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view name_of(TcpState state) {
  constexpr std::string_view names[] = {"syn_sent", "syn_received", "established", "closing",
                                        "last_ack", "time_wait",    "closed"};
  return names[static_cast<std::size_t>(state)];
}

void TcpConversation::open(const TransportFacts& syn) {
  for (unsigned side = 0; side < 2; ++side) {
    std::construct_at(&numbers_[side]);
    sides_[side] = Side();
  }
  reset_ = false;
  note_syn(syn, 0);
}

bool TcpConversation::opening() const { return !sides_[0].syn_acknowledged || !sides_[1].syn_acknowledged; }

TcpState TcpConversation::state() const {
  const auto& [a, b] = sides_;
  if (reset_) {
    return TcpState::closed;
  }
  if (a.fin && b.fin) {
    return a.fin_acknowledged && b.fin_acknowledged ? TcpState::time_wait : TcpState::last_ack;
  }
  if (a.fin || b.fin) {
    return TcpState::closing;
  }
  if (!opening()) {
    return TcpState::established;
  }
  return a.syn_acknowledged || b.syn_acknowledged ? TcpState::syn_received : TcpState::syn_sent;
}

Judgement TcpConversation::judge(const TransportFacts& segment, unsigned side) const {
  if (!segment.whole || !sensible(segment.flags)) {
    return Judgement::invalid;
  }
  if ((segment.flags & tcp_flag::rst) != 0) {
    return judge_reset(segment, side);
  }
  if ((segment.flags & tcp_flag::syn) != 0) {
    return judge_syn(segment, side);
  }
  const Side& me = sides_[side];
  const Side& peer = sides_[1 - side];
  if (!me.syn) {
    // No SYN from here yet. An endpoint that knows an older connection with these ports may answer the SYN with an
    // acknowledgment of that (RFC 9293, section 3.5.1, case 2), so that it is reset.
    return (segment.flags & tcp_flag::control) == tcp_flag::ack && segment.payload == 0 ? Judgement::noted
                                                                                        : Judgement::invalid;
  }
  if (!peer.syn) {
    return Judgement::invalid;  // acknowledges what was never sent
  }
  if (!peer.syn_acknowledged &&
      (after(peer.first, segment.acknowledgment) || after(segment.acknowledgment, load(numbers_[1 - side].end)))) {
    return Judgement::invalid;  // does not complete the opening: it was guessed, or is of an older connection
  }
  const bool plain = state() == TcpState::established && (segment.flags & tcp_flag::control) == tcp_flag::ack;
  return plain ? Judgement::plain : Judgement::noted;
}

Judgement TcpConversation::judge_syn(const TransportFacts& segment, unsigned side) const {
  const Side& me = sides_[side];
  const Side& peer = sides_[1 - side];
  const TcpState now = state();
  if (is_syn(segment)) {
    return now == TcpState::time_wait || now == TcpState::closed ? Judgement::reopens : Judgement::noted;
  }
  if (!peer.syn || (me.syn && !opening() && segment.sequence + 1 != me.first)) {
    return Judgement::invalid;
  }
  // SYN and ACK: it must acknowledge the other's SYN, and may acknowledge data that came with it (RFC 7413).
  const bool acknowledges =
      !after(peer.first, segment.acknowledgment) && !after(segment.acknowledgment, load(numbers_[1 - side].end));
  return acknowledges ? Judgement::noted : Judgement::invalid;
}

// A reset must lie where the other side expects the next byte: between what it last acknowledged and the end of its
// window. Before it has said anything, a reset answers the SYN by acknowledging it, or withdraws it.
Judgement TcpConversation::judge_reset(const TransportFacts& segment, unsigned side) const {
  const Side& me = sides_[side];
  const Side& peer = sides_[1 - side];
  bool valid = false;
  if (!me.syn) {
    valid = (segment.flags & tcp_flag::ack) != 0 && !after(peer.first, segment.acknowledgment) &&
            !after(segment.acknowledgment, load(numbers_[1 - side].end));
  } else if (!peer.syn || !me.syn_acknowledged) {
    valid = segment.sequence == load(numbers_[side].end) || segment.sequence == me.first;
  } else {
    const std::uint32_t from = load(numbers_[1 - side].acknowledged);
    const std::uint32_t to = after(load(numbers_[side].limit), load(numbers_[side].end)) ? load(numbers_[side].limit)
                                                                                         : load(numbers_[side].end);
    valid = segment.sequence - from <= to - from;
  }
  return valid ? Judgement::noted : Judgement::invalid;
}

// One that the other side obeys at once. For any other in the window it asks its peer first (RFC 5961, section 3.2),
// and the connection goes on if that did not send it.
bool TcpConversation::exact_reset(const TransportFacts& segment, unsigned side) const {
  return opening() || segment.sequence == load(numbers_[1 - side].acknowledged) ||
         segment.sequence == load(numbers_[side].end);
}

void TcpConversation::note_syn(const TransportFacts& segment, unsigned side) {
  constexpr auto relaxed = std::memory_order_relaxed;
  Side& me = sides_[side];
  Numbers& mine = numbers_[side];
  me.syn = true;
  me.first = segment.sequence + 1;
  me.scales = segment.has_scale;
  me.scale = segment.scale;
  mine.end.store(me.first + segment.payload, relaxed);
  mine.window.store(std::max<std::uint32_t>(segment.window, 1), relaxed);
  mine.limit.store(me.first + segment.payload, relaxed);
  const Side& peer = sides_[1 - side];
  Numbers& theirs = numbers_[1 - side];
  if (!peer.syn) {
    return;
  }
  // The window of a SYN is never scaled, and those behind it only if both sides offered it (RFC 7323, section 2.2).
  theirs.limit.store(peer.first + std::max<std::uint32_t>(segment.window, load(theirs.end) - peer.first), relaxed);
  mine.limit.store(me.first + load(theirs.window), relaxed);
  const bool scaled = me.scales && peer.scales;
  mine.scale.store(scaled ? me.scale : 0, relaxed);
  theirs.scale.store(scaled ? peer.scale : 0, relaxed);
}

bool TcpConversation::note(const TransportFacts& segment, unsigned side) {
  const TcpState before = state();
  Side& me = sides_[side];
  Side& peer = sides_[1 - side];
  Numbers& mine = numbers_[side];
  const bool spoken = me.syn;
  if ((segment.flags & tcp_flag::rst) != 0) {
    reset_ = reset_ || exact_reset(segment, side);
  } else if (me.syn || (segment.flags & tcp_flag::syn) != 0) {
    // One that was not answered yet may be given up for another.
    if ((segment.flags & tcp_flag::syn) != 0 && !me.syn_acknowledged && (!me.syn || opening())) {
      note_syn(segment, side);
    }
    if ((segment.flags & tcp_flag::ack) != 0 && !peer.syn_acknowledged) {
      peer.syn_acknowledged = true;
      mine.acknowledged.store(segment.acknowledgment, std::memory_order_relaxed);
    }
    if ((segment.flags & tcp_flag::syn) == 0) {
      note_rest(segment, side);
    }
  }
  return state() != before || me.syn != spoken;
}

// A segment without SYN and RST.
void TcpConversation::note_rest(const TransportFacts& segment, unsigned side) {
  Side& me = sides_[side];
  Side& peer = sides_[1 - side];
  Numbers& mine = numbers_[side];
  advance({segment.sequence, segment.acknowledgment, segment.payload, segment.window}, side);
  const std::uint32_t end = segment.sequence + segment.payload;
  if ((segment.flags & tcp_flag::fin) != 0 && !me.fin && end == load(mine.end)) {
    me.fin = true;
    me.fin_end = end + 1;
    mine.end.store(end + 1, std::memory_order_relaxed);
  }
  if (peer.fin && !after(peer.fin_end, segment.acknowledgment) &&
      !after(segment.acknowledgment, load(numbers_[1 - side].end))) {
    peer.fin_acknowledged = true;
  }
}

}  // namespace weir
