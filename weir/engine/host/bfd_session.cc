#include <weir/engine/host/bfd_session.h>

#include <algorithm>

namespace weir {

namespace {

constexpr Nanoseconds microsecond = 1'000;

std::uint32_t microseconds(Nanoseconds time) {
  return static_cast<std::uint32_t>(std::min<Nanoseconds>(time / microsecond, 0xffffffff));
}

}  // namespace

BfdSession::BfdSession(const BfdSettings& settings, std::uint32_t discriminator, std::uint64_t seed, Nanoseconds now)
    : settings_(settings),
      discriminator_(discriminator),
      random_(seed),
      transmit_in_use_(settings.interval),
      receive_in_use_(settings.interval),
      next_transmission_(now),
      changed_at_(now) {}

void BfdSession::configure(const BfdSettings& settings, Nanoseconds now) {
  if (settings == settings_) {
    return;
  }
  settings_ = settings;
  if (state_ != BfdState::up) {
    transmit_in_use_ = receive_in_use_ = settings.interval;
    return;
  }
  // What makes the node send sooner or wait longer holds at once; the rest when the other side has agreed.
  transmit_in_use_ = std::min(transmit_in_use_, settings.interval);
  receive_in_use_ = std::max(receive_in_use_, settings.interval);
  poll_again_ = polling_;
  polling_ = true;
  next_transmission_ = now;
}

void BfdSession::receive(const BfdPacket& packet, Nanoseconds now) {
  remote_discriminator_ = packet.my_discriminator;
  remote_state_ = packet.state;
  remote_diagnostic_ = packet.diagnostic;
  remote_demand_ = packet.demand;
  remote_receive_ = packet.required_receive;
  remote_transmit_ = packet.desired_transmit;
  remote_multiplier_ = packet.multiplier;
  heard_ = now;
  if (packet.final && polling_) {
    agree(now);
  }
  if (state_ == BfdState::admin_down) {
    return;
  }
  if (packet.state == BfdState::admin_down) {
    if (state_ != BfdState::down) {
      go(BfdState::down, BfdDiagnostic::neighbour_down, now);
    }
    verdict_.reset();
  } else if (state_ == BfdState::down) {
    if (packet.state == BfdState::down) {
      go(BfdState::init, diagnostic_, now);
    } else if (packet.state == BfdState::init) {
      go(BfdState::up, BfdDiagnostic::none, now);
    }
  } else if (state_ == BfdState::init) {
    if (packet.state == BfdState::init || packet.state == BfdState::up) {
      go(BfdState::up, BfdDiagnostic::none, now);
    }
  } else if (packet.state == BfdState::down) {
    go(BfdState::down, BfdDiagnostic::neighbour_down, now);
  }
  final_due_ = final_due_ || packet.poll;
  bring_forward(now);
}

// The other side has seen the intervals that the poll sequence was about.
void BfdSession::agree(Nanoseconds now) {
  polling_ = poll_again_;
  if (poll_again_) {
    poll_again_ = false;
    next_transmission_ = now;
    return;
  }
  transmit_in_use_ = receive_in_use_ = settings_.interval;
}

void BfdSession::go(BfdState state, BfdDiagnostic diagnostic, Nanoseconds now) {
  if (state_ == BfdState::up) {
    ++flaps_;
    verdict_ = false;
  }
  state_ = state;
  diagnostic_ = diagnostic;
  changed_at_ = now;
  transmit_in_use_ = receive_in_use_ = settings_.interval;
  polling_ = poll_again_ = false;
  if (state == BfdState::up) {
    verdict_ = true;
    polling_ = true;  // the interval is no longer the slow one
  }
  next_transmission_ = now;  // whoever hears it need not wait to hear of it (section 6.8.7)
}

void BfdSession::expire(Nanoseconds now) {
  remote_discriminator_ = 0;
  remote_state_ = BfdState::down;
  remote_demand_ = false;
  if (state_ == BfdState::init || state_ == BfdState::up) {
    go(BfdState::down, BfdDiagnostic::detection_expired, now);
  }
}

void BfdSession::path_down(Nanoseconds now) {
  if (state_ == BfdState::init || state_ == BfdState::up) {
    go(BfdState::down, BfdDiagnostic::path_down, now);
  }
}

void BfdSession::shut_down(Nanoseconds now) {
  if (state_ != BfdState::admin_down) {
    go(BfdState::admin_down, BfdDiagnostic::admin_down, now);
    verdict_.reset();
  }
}

std::optional<BfdPacket> BfdSession::transmit(Nanoseconds now) {
  const bool final = final_due_;
  if (!final && now < next_transmission_) {
    return std::nullopt;
  }
  if (!final) {
    sent_ = now;
    scheduled_ = periodic() ? transmit_interval() : never;
    next_transmission_ = scheduled_ != never ? now + jittered(scheduled_) : never;
  }
  final_due_ = false;
  return BfdPacket{.diagnostic = diagnostic_,
                   .state = state_,
                   .poll = polling_ && !final,
                   .final = final,
                   .control_plane_independent = true,
                   .multiplier = settings_.multiplier,
                   .my_discriminator = discriminator_,
                   .your_discriminator = remote_discriminator_,
                   .desired_transmit = microseconds(desired()),
                   .required_receive = microseconds(settings_.interval)};
}

Nanoseconds BfdSession::detection_deadline() const {
  return remote_discriminator_ == 0 ? never : heard_ + detection_time();
}

Nanoseconds BfdSession::detection_time() const {
  return remote_discriminator_ == 0
             ? 0
             : remote_multiplier_ * std::max<Nanoseconds>(receive_in_use_, remote_transmit_ * microsecond);
}

// As it is announced.
Nanoseconds BfdSession::desired() const {
  return state_ == BfdState::up ? settings_.interval : std::max(settings_.interval, slow_interval);
}

Nanoseconds BfdSession::transmit_interval() const {
  return std::max<Nanoseconds>(state_ == BfdState::up ? transmit_in_use_ : desired(), remote_receive_ * microsecond);
}

// Whether the other side wants to hear from the node without asking (section 6.8.7).
bool BfdSession::periodic() const {
  const bool silent = remote_demand_ && state_ == BfdState::up && remote_state_ == BfdState::up && !polling_;
  return remote_receive_ != 0 && !silent;
}

// 75 to 100 % of it; at most 90 % where one packet that is late would already be missed.
Nanoseconds BfdSession::jittered(Nanoseconds interval) {
  constexpr std::uint32_t least = 75'000;
  const std::uint32_t most = settings_.multiplier == 1 ? 90'000 : 100'000;
  return interval * (least + random_.below(most - least + 1)) / 100'000;
}

// The interval may have become a shorter one.
void BfdSession::bring_forward(Nanoseconds now) {
  const Nanoseconds interval = transmit_interval();
  if (periodic() && interval < scheduled_) {
    next_transmission_ = std::min(next_transmission_, std::max(now, sent_ + jittered(interval)));
    scheduled_ = interval;
  }
}

}  // namespace weir
