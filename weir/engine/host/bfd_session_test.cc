// The state machine of RFC 5880, alone and two of them against each other.

#include <weir/engine/host/bfd_session.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

constexpr Nanoseconds ms = 1'000'000;
constexpr Nanoseconds second = 1'000 * ms;

BfdSettings every(Nanoseconds interval, std::uint8_t multiplier = 3) { return {interval, multiplier}; }

BfdPacket says(BfdState state, std::uint32_t your = 1, std::uint32_t interval_us = 10'000) {
  return {.state = state,
          .multiplier = 3,
          .my_discriminator = 99,
          .your_discriminator = your,
          .desired_transmit = interval_us,
          .required_receive = interval_us};
}

/// A session, brought to a state at time `second`.
BfdSession session_in(BfdState state, const BfdSettings& settings = every(10 * ms)) {
  BfdSession session(settings, 1, 7, 0);
  switch (state) {
    case BfdState::admin_down:
      session.shut_down(second);
      break;
    case BfdState::down:
      break;
    case BfdState::init:
      session.receive(says(BfdState::down), second);
      break;
    case BfdState::up:
      session.receive(says(BfdState::init), second);
      break;
  }
  while (session.transmit(second)) {
  }
  return session;
}

struct Step {
  BfdState from;
  BfdState heard;
  BfdState to;
  BfdDiagnostic diagnostic;
};

// RFC 5880, section 6.2 and 6.8.6.
TEST(BfdSession, EveryStateHearsEveryState) {
  using enum BfdState;
  constexpr auto none = BfdDiagnostic::none;
  constexpr auto neighbour_down = BfdDiagnostic::neighbour_down;
  const std::vector<Step> table{
      {down, admin_down, down, none},
      {down, down, init, none},
      {down, init, up, none},
      {down, up, down, none},
      {init, admin_down, down, neighbour_down},
      {init, down, init, none},
      {init, init, up, none},
      {init, up, up, none},
      {up, admin_down, down, neighbour_down},
      {up, down, down, neighbour_down},
      {up, init, up, none},
      {up, up, up, none},
      {admin_down, admin_down, admin_down, BfdDiagnostic::admin_down},
      {admin_down, down, admin_down, BfdDiagnostic::admin_down},
      {admin_down, init, admin_down, BfdDiagnostic::admin_down},
      {admin_down, up, admin_down, BfdDiagnostic::admin_down},
  };
  for (const Step& step : table) {
    SCOPED_TRACE(std::string(name_of(step.from)) + " hears " + std::string(name_of(step.heard)));
    BfdSession session = session_in(step.from);
    session.receive(says(step.heard), second + ms);
    EXPECT_EQ(session.state(), step.to);
    EXPECT_EQ(session.diagnostic(), step.diagnostic);
    EXPECT_EQ(session.remote_state(), step.heard);
  }
}

TEST(BfdSession, SilenceEndsInitAndUp) {
  for (const BfdState state : {BfdState::init, BfdState::up}) {
    BfdSession session = session_in(state);
    EXPECT_EQ(session.detection_deadline(), second + 30 * ms);
    session.expire(second + 30 * ms);
    EXPECT_EQ(session.state(), BfdState::down);
    EXPECT_EQ(session.diagnostic(), BfdDiagnostic::detection_expired);
    EXPECT_EQ(session.detection_deadline(), BfdSession::never);
    const auto told = session.transmit(second + 30 * ms);
    ASSERT_TRUE(told) << "at once";
    EXPECT_EQ(told->your_discriminator, 0U) << "it is forgotten";
  }
  BfdSession session = session_in(BfdState::down);
  EXPECT_EQ(session.detection_deadline(), BfdSession::never);
}

TEST(BfdSession, TheOtherSidesValuesMakeTheDetectionTime) {
  BfdSession session = session_in(BfdState::up);
  BfdPacket packet = says(BfdState::up, 1, 50'000);
  packet.multiplier = 5;
  session.receive(packet, 2 * second);
  EXPECT_EQ(session.detection_time(), 250 * ms);
  packet.desired_transmit = 1;  // it may not send faster than is asked for
  session.receive(packet, 2 * second);
  EXPECT_EQ(session.detection_time(), 50 * ms);
}

TEST(BfdSession, SlowWhileItIsNotUp) {
  BfdSession session(every(10 * ms), 1, 7, 0);
  std::vector<Nanoseconds> sent;
  for (Nanoseconds now = 0; now < 60 * second; now += ms) {
    if (const auto packet = session.transmit(now)) {
      EXPECT_EQ(packet->desired_transmit, 1'000'000U);
      EXPECT_EQ(packet->required_receive, 10'000U);
      sent.push_back(now);
    }
  }
  ASSERT_GT(sent.size(), 59U);
  for (std::size_t i = 1; i < sent.size(); ++i) {
    EXPECT_GE(sent[i] - sent[i - 1], 750 * ms);
    EXPECT_LE(sent[i] - sent[i - 1], 1001 * ms);
  }
}

TEST(BfdSession, Jitter) {
  for (const std::uint8_t multiplier : {std::uint8_t{1}, std::uint8_t{3}}) {
    BfdSession session = session_in(BfdState::up, every(100 * ms, multiplier));
    Nanoseconds least = BfdSession::never;
    Nanoseconds most = 0;
    Nanoseconds before = second;
    for (int i = 0; i < 2'000; ++i) {
      const Nanoseconds now = session.next_transmission();
      ASSERT_TRUE(session.transmit(now));
      if (i > 0) {
        least = std::min(least, now - before);
        most = std::max(most, now - before);
      }
      before = now;
      session.receive(says(BfdState::up), now);
    }
    EXPECT_GE(least, 75 * ms);
    EXPECT_LT(least, 76 * ms);
    EXPECT_LE(most, multiplier == 1 ? 90 * ms : 100 * ms);
    EXPECT_GT(most, multiplier == 1 ? 89 * ms : 99 * ms);
  }
}

TEST(BfdSession, AnswersAPollAtOnceAndOnce) {
  BfdSession session = session_in(BfdState::up);
  BfdPacket poll = says(BfdState::up);
  poll.poll = true;
  session.receive(poll, second + ms);
  const auto answer = session.transmit(second + ms);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->final);
  EXPECT_FALSE(answer->poll);
  EXPECT_FALSE(session.transmit(second + ms));
}

TEST(BfdSession, PollsUntilTheOtherSideAgrees) {
  BfdSession session = session_in(BfdState::up);  // it polls: the interval is no longer a second
  Nanoseconds now = session.next_transmission();
  EXPECT_TRUE(session.transmit(now)->poll);
  BfdPacket final = says(BfdState::up);
  final.final = true;
  session.receive(final, now);
  now = session.next_transmission();
  EXPECT_FALSE(session.transmit(now)->poll);

  // Slower: what it does changes only when the other side has heard of it, but it waits longer at once.
  session.configure(every(100 * ms), now);
  EXPECT_EQ(session.transmit_interval(), 10 * ms);
  EXPECT_EQ(session.detection_time(), 300 * ms);
  const auto told = session.transmit(now);
  ASSERT_TRUE(told) << "at once";
  EXPECT_TRUE(told->poll);
  EXPECT_EQ(told->desired_transmit, 100'000U);
  session.receive(final, now);
  EXPECT_EQ(session.transmit_interval(), 100 * ms);

  // Faster: it sends faster at once, and goes on waiting until then.
  session.configure(every(20 * ms), now);
  EXPECT_EQ(session.transmit_interval(), 20 * ms);
  EXPECT_EQ(session.detection_time(), 300 * ms);
  session.configure(every(40 * ms), now);  // another change on the way: one more sequence
  session.receive(final, now);
  EXPECT_EQ(session.detection_time(), 300 * ms);
  EXPECT_TRUE(session.transmit(now)->poll);
  session.receive(final, now);
  EXPECT_EQ(session.detection_time(), 120 * ms);
  EXPECT_EQ(session.transmit_interval(), 40 * ms);
}

TEST(BfdSession, SilentWhereTheOtherSideWantsNothing) {
  BfdPacket final = says(BfdState::up);
  final.final = true;
  for (const bool demand : {false, true}) {
    BfdSession session = session_in(BfdState::up);
    BfdPacket packet = final;
    packet.demand = demand;
    packet.required_receive = demand ? 10'000 : 0;
    session.receive(packet, second);
    const Nanoseconds now = session.next_transmission();
    EXPECT_TRUE(now == BfdSession::never || session.transmit(now));
    EXPECT_EQ(session.next_transmission(), BfdSession::never) << demand;
    packet.poll = true;
    session.receive(packet, 2 * second);
    EXPECT_TRUE(session.transmit(2 * second)->final) << "polls are answered";
    session.receive(says(BfdState::up), 3 * second);
    EXPECT_LE(session.next_transmission(), 3 * second + 10 * ms) << "it wants some again";
  }
}

TEST(BfdSession, WhatItSaysOfThePath) {
  BfdSession session(every(10 * ms), 1, 7, 0);
  EXPECT_EQ(session.verdict(), std::nullopt) << "it has never been up";
  session.receive(says(BfdState::down), second);
  EXPECT_EQ(session.verdict(), std::nullopt);
  session.receive(says(BfdState::up), second);
  EXPECT_EQ(session.verdict(), true);
  session.expire(2 * second);
  EXPECT_EQ(session.verdict(), false);
  EXPECT_EQ(session.flaps(), 1U);
  session.receive(says(BfdState::down, 0), 3 * second);
  EXPECT_EQ(session.verdict(), false) << "not before it is up again";
  session.receive(says(BfdState::init), 3 * second);
  EXPECT_EQ(session.verdict(), true);
  session.path_down(4 * second);
  EXPECT_EQ(session.verdict(), false);
  EXPECT_EQ(session.diagnostic(), BfdDiagnostic::path_down);
  session.receive(says(BfdState::admin_down), 5 * second);
  EXPECT_EQ(session.verdict(), std::nullopt) << "an administrator's wish is no failure";
  session.expire(9 * second);
  EXPECT_EQ(session.verdict(), std::nullopt);
}

/// Two sessions and a wire with a delay, that may be cut.
struct Pair {
  Pair(const BfdSettings& a, const BfdSettings& b) : ends{BfdSession(a, 11, 1, 0), BfdSession(b, 22, 2, 0)} {}

  void run(Nanoseconds until) {
    for (; now < until; now += ms / 2) {
      for (std::size_t i = 0; i < 2; ++i) {
        auto& arriving = wire[i];
        while (!arriving.empty() && arriving.front().first <= now) {
          ends[i].receive(arriving.front().second, now);
          arriving.pop_front();
        }
        if (now >= ends[i].detection_deadline()) {
          ends[i].expire(now);
        }
        while (const auto packet = ends[i].transmit(now)) {
          EXPECT_FALSE(packet->poll && packet->final);
          ++sent[i];
          if (!cut) {
            wire[1 - i].emplace_back(now + ms, *packet);
          }
        }
      }
    }
  }
  [[nodiscard]] bool both(BfdState state) const { return ends[0].state() == state && ends[1].state() == state; }

  std::vector<BfdSession> ends;
  std::array<std::deque<std::pair<Nanoseconds, BfdPacket>>, 2> wire;
  std::array<std::size_t, 2> sent{};
  Nanoseconds now = 0;
  bool cut = false;
};

TEST(BfdSession, TwoComeUpAgreeAndNoticeACut) {
  Pair pair(every(10 * ms), every(20 * ms, 5));
  pair.run(2 * second);
  ASSERT_TRUE(pair.both(BfdState::up));
  for (const BfdSession& end : pair.ends) {
    EXPECT_EQ(end.transmit_interval(), 20 * ms);
  }
  EXPECT_EQ(pair.ends[0].detection_time(), 100 * ms);
  EXPECT_EQ(pair.ends[1].detection_time(), 60 * ms);
  pair.sent = {};
  pair.run(12 * second);
  EXPECT_TRUE(pair.both(BfdState::up));
  EXPECT_EQ(pair.ends[0].flaps() + pair.ends[1].flaps(), 0U);
  EXPECT_NEAR(static_cast<double>(pair.sent[0]), 10'000 / 17.5, 60);
  pair.cut = true;
  pair.run(12 * second + 110 * ms);
  EXPECT_TRUE(pair.both(BfdState::down));
  pair.cut = false;
  pair.run(16 * second);
  EXPECT_TRUE(pair.both(BfdState::up));
  EXPECT_EQ(pair.ends[0].flaps(), 1U);
}

TEST(BfdSession, OneThatIsShutDownSaysSo) {
  Pair pair(every(10 * ms), every(10 * ms));
  pair.run(2 * second);
  ASSERT_TRUE(pair.both(BfdState::up));
  pair.ends[0].shut_down(pair.now);
  pair.run(pair.now + 5 * ms);
  EXPECT_EQ(pair.ends[1].state(), BfdState::down);
  EXPECT_EQ(pair.ends[1].verdict(), std::nullopt);
}

TEST(BfdSession, AnythingHeardLeavesItSound) {
  Random random(3);
  BfdSession session(every(10 * ms), 1, 7, 0);
  Nanoseconds now = 0;
  for (int i = 0; i < 200'000; ++i) {
    now += random.below(20'000'000);
    const auto number = [&] { return random.one_in(3) ? random.below(3) : static_cast<std::uint32_t>(random()); };
    session.receive({.state = static_cast<BfdState>(random.below(4)),
                     .poll = random.one_in(4),
                     .final = random.one_in(4),
                     .demand = random.one_in(4),
                     .multiplier = static_cast<std::uint8_t>(1 + random.below(255)),
                     .my_discriminator = 1 + random.below(100),
                     .your_discriminator = 1,
                     .desired_transmit = number(),
                     .required_receive = number(),
                     .required_echo_receive = number()},
                    now);
    if (now >= session.detection_deadline()) {
      session.expire(now);
    }
    int packets = 0;
    while (session.transmit(now)) {
      ASSERT_LE(++packets, 2) << "an answer and a change of state";
    }
    ASSERT_GT(session.next_transmission(), now);
    ASSERT_GE(session.transmit_interval(), 10 * ms);
    ASSERT_EQ(session.verdict() == true, session.state() == BfdState::up);
  }
}

}  // namespace
}  // namespace weir
