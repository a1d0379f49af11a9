#pragma once
// What connection tracking knows of a TCP connection: who has said what, and which sequence numbers may come.
//
// State is not a table but follows from what was seen: an opening is complete when each side's SYN was acknowledged by
// the other, in whatever order (RFC 9293, figures 6 to 8); a closing is when both sides' FINs were. Numbers are
// compared modulo 2^32.
//
// Words that `advance` changes may be read and written by several workers at once. Each alone is right; a racing pair
// leaves a window a packet behind, which only makes the check of a RST stricter by that packet.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include <weir/flow/judgement.h>
#include <weir/packet/tcp.h>
#include <weir/packet/transport.h>

namespace weir {

enum class TcpState : std::uint8_t {
  syn_sent,      ///< one side's SYN, or both, without an acknowledgment
  syn_received,  ///< one side's SYN is acknowledged
  established,
  closing,    ///< a FIN was seen: the connection may stay half open for long
  last_ack,   ///< both FINs were seen
  time_wait,  ///< and acknowledged
  closed,     ///< reset
};

std::string_view name_of(TcpState state);

/// Of one segment, what `advance` goes by.
struct TcpSegment {
  std::uint32_t sequence;
  std::uint32_t acknowledgment;
  std::uint32_t payload;
  std::uint16_t window;  ///< unscaled
};

class TcpConversation {
 public:
  /// The conversation begins with this SYN of the initiator. Before anybody else can see it.
  void open(const TransportFacts& syn);

  /// Judges a segment of `side` (0: the initiator), without effect. What is `plain` takes no more than `advance`.
  [[nodiscard]] Judgement judge(const TransportFacts& segment, unsigned side) const;
  /// Takes in a segment that was judged `plain` or `noted`; whether the state or the other side's part changed.
  bool note(const TransportFacts& segment, unsigned side);

  /// Takes in the numbers of a segment with ACK and without SYN, FIN and RST; ignored if they are out of the window. A
  /// few nanoseconds.
  void advance(const TcpSegment& segment, unsigned side) {
    Numbers& me = numbers_[side];
    Numbers& peer = numbers_[1 - side];
    const std::uint32_t end = segment.sequence + segment.payload;
    const std::uint32_t window = std::uint32_t{segment.window} << me.scale.load(std::memory_order_relaxed);
    const std::uint32_t peer_end = load(peer.end);
    const std::uint32_t my_end = load(me.end);
    // Beyond what the other side takes; long before it; acknowledging what was not sent, or what was long ago.
    if (after(segment.sequence, load(me.limit)) || after(my_end - load(peer.window), end) ||
        after(segment.acknowledgment, peer_end) ||
        after(peer_end - (load(me.window) + old_acknowledgment), segment.acknowledgment)) [[unlikely]] {
      return;
    }
    raise(me.end, my_end, end);
    raise(me.acknowledged, load(me.acknowledged), segment.acknowledgment);
    raise(peer.limit, load(peer.limit), segment.acknowledgment + window);
    if (window > load(me.window)) {
      me.window.store(window, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] TcpState state() const;

 private:
  using Word = std::atomic<std::uint32_t>;
  /// How far an acknowledgment may lag behind what was sent, beside the window.
  static constexpr std::uint32_t old_acknowledgment = 65'535;

  /// What `advance` touches, together.
  struct Numbers {
    Word end{0};           ///< behind the last byte it sent
    Word limit{0};         ///< behind the last byte it may send
    Word acknowledged{0};  ///< its last acknowledgment
    Word window{0};        ///< the largest it offered, bytes
    std::atomic<std::uint8_t> scale{0};
  };
  struct Side {
    std::uint32_t first = 0;    ///< behind its SYN
    std::uint32_t fin_end = 0;  ///< behind its FIN
    bool syn = false, syn_acknowledged = false;
    bool fin = false, fin_acknowledged = false;
    bool scales = false;  ///< its SYN had the window scale option
    std::uint8_t scale = 0;
  };

  static bool after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }
  static std::uint32_t load(const Word& word) { return word.load(std::memory_order_relaxed); }
  static void raise(Word& word, std::uint32_t from, std::uint32_t to) {
    if (after(to, from)) {
      word.store(to, std::memory_order_relaxed);
    }
  }

  void note_syn(const TransportFacts& segment, unsigned side);
  void note_rest(const TransportFacts& segment, unsigned side);
  [[nodiscard]] bool opening() const;
  [[nodiscard]] Judgement judge_reset(const TransportFacts& segment, unsigned side) const;
  [[nodiscard]] Judgement judge_syn(const TransportFacts& segment, unsigned side) const;
  [[nodiscard]] bool exact_reset(const TransportFacts& segment, unsigned side) const;

  std::array<Numbers, 2> numbers_;
  std::array<Side, 2> sides_;
  bool reset_ = false;
};

}  // namespace weir
