#pragma once
// One BFD session: what it hears, what it says and when (RFC 5880, section 6). Nothing but state and a clock's
// readings; who uses it sends, and looks at the times.

#include <cstdint>
#include <optional>

#include <weir/base/clock.h>
#include <weir/base/random.h>
#include <weir/engine/host/bfd_packet.h>
#include <weir/flow/paths.h>

namespace weir {

/// Asynchronous mode, active role, no authentication, no echo. Demand mode is never asked for; who asks the node to be
/// silent between polls (RFC 5880, section 6.6) gets his will while both sides are up. One thread at a time; time does
/// not go back.
class BfdSession {
 public:
  static constexpr Nanoseconds never = ~Nanoseconds{0};
  /// While the session is not up, packets are at least so far apart (section 6.8.3).
  static constexpr Nanoseconds slow_interval = 1'000'000'000;

  /// `discriminator` is not 0, and no other session's of the node. `seed` is of the jitter.
  BfdSession(const BfdSettings& settings, std::uint32_t discriminator, std::uint64_t seed, Nanoseconds now);

  /// Other intervals; those of a session that is up are agreed on by a poll sequence.
  void configure(const BfdSettings& settings, Nanoseconds now);
  /// A packet for this session, which `read_bfd` found right.
  void receive(const BfdPacket& packet, Nanoseconds now);
  /// At `detection_deadline`: the other side is silent.
  void expire(Nanoseconds now);
  /// The link is down.
  void path_down(Nanoseconds now);
  /// By an administrator, for good.
  void shut_down(Nanoseconds now);
  /// The packet that is due, if one is. More than one may be.
  std::optional<BfdPacket> transmit(Nanoseconds now);

  /// When the next packet is due.
  [[nodiscard]] Nanoseconds next_transmission() const { return final_due_ ? 0 : next_transmission_; }
  /// When the silence has been too long.
  [[nodiscard]] Nanoseconds detection_deadline() const;

  /// What it knows of the path: that it is up or down; nothing, if it has never been up, or the other side was taken
  /// down by an administrator (RFC 5882, section 3.2).
  [[nodiscard]] std::optional<bool> verdict() const { return verdict_; }

  // ---- To show ----

  [[nodiscard]] BfdState state() const { return state_; }
  [[nodiscard]] BfdDiagnostic diagnostic() const { return diagnostic_; }
  [[nodiscard]] BfdState remote_state() const { return remote_state_; }
  [[nodiscard]] BfdDiagnostic remote_diagnostic() const { return remote_diagnostic_; }
  [[nodiscard]] std::uint32_t discriminator() const { return discriminator_; }
  [[nodiscard]] std::uint32_t remote_discriminator() const { return remote_discriminator_; }
  [[nodiscard]] const BfdSettings& settings() const { return settings_; }
  /// Between packets that it sends, before jitter.
  [[nodiscard]] Nanoseconds transmit_interval() const;
  /// Silence after which the other side counts as gone; 0 while nothing is known of it.
  [[nodiscard]] Nanoseconds detection_time() const;
  /// Times that it went down after it had been up.
  [[nodiscard]] std::uint64_t flaps() const { return flaps_; }
  [[nodiscard]] Nanoseconds changed_at() const { return changed_at_; }

 private:
  void go(BfdState state, BfdDiagnostic diagnostic, Nanoseconds now);
  void agree(Nanoseconds now);
  [[nodiscard]] Nanoseconds desired() const;
  [[nodiscard]] bool periodic() const;
  Nanoseconds jittered(Nanoseconds interval);
  void bring_forward(Nanoseconds now);

  BfdSettings settings_;
  std::uint32_t discriminator_;
  Random random_;
  BfdState state_ = BfdState::down;
  BfdDiagnostic diagnostic_ = BfdDiagnostic::none;
  std::optional<bool> verdict_;

  // Of the other side, as it last said.
  BfdState remote_state_ = BfdState::down;
  BfdDiagnostic remote_diagnostic_ = BfdDiagnostic::none;
  std::uint32_t remote_discriminator_ = 0;  ///< 0: not heard
  std::uint32_t remote_receive_ = 1;        ///< us
  std::uint32_t remote_transmit_ = 0;       ///< us
  std::uint8_t remote_multiplier_ = 0;
  bool remote_demand_ = false;

  // What holds until a poll sequence ends (section 6.8.3).
  Nanoseconds transmit_in_use_;
  Nanoseconds receive_in_use_;
  bool polling_ = false;
  bool poll_again_ = false;  ///< the intervals have changed since the sequence began
  bool final_due_ = false;

  Nanoseconds heard_ = 0;
  Nanoseconds sent_ = 0;
  Nanoseconds scheduled_ = never;  ///< the interval that `next_transmission_` was made with
  Nanoseconds next_transmission_;
  Nanoseconds changed_at_;
  std::uint64_t flaps_ = 0;
};

}  // namespace weir
