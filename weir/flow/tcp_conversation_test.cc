#include <weir/flow/tcp_conversation.h>

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace weir {
namespace {

constexpr std::uint8_t S = tcp_flag::syn, A = tcp_flag::ack, F = tcp_flag::fin, R = tcp_flag::rst;

/// One segment of a story: who sends what, what it is taken for, and the state after it.
struct Step {
  unsigned side;
  std::uint8_t flags;
  std::uint32_t sequence, acknowledgment;
  std::uint32_t payload;
  Judgement judgement;
  TcpState state;
};

struct Story {
  std::string name;
  std::vector<Step> steps;  ///< behind the initiator's SYN with sequence number 999 and a window of 10,000
};

TransportFacts segment(std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgment, std::uint32_t payload,
                       std::uint16_t window = 10'000) {
  return {.whole = true,
          .sequence = sequence,
          .acknowledgment = acknowledgment,
          .payload = payload,
          .window = window,
          .flags = flags};
}

constexpr auto plain = Judgement::plain, noted = Judgement::noted, reopens = Judgement::reopens,
               invalid = Judgement::invalid;
constexpr auto syn_sent = TcpState::syn_sent, syn_received = TcpState::syn_received,
               established = TcpState::established, closing = TcpState::closing, last_ack = TcpState::last_ack,
               time_wait = TcpState::time_wait, closed = TcpState::closed;

const Step answer{1, S | A, 4999, 1000, 0, noted, syn_received};
const Step third{0, A, 1000, 5000, 0, noted, established};

const std::vector<Story> stories = {
    {"opening, data, closing",
     {answer,
      third,
      {0, A, 1000, 5000, 100, plain, established},
      {1, A, 5000, 1100, 0, plain, established},
      {0, F | A, 1100, 5000, 0, noted, closing},
      {1, A, 5000, 1101, 0, noted, closing},
      {1, F | A, 5000, 1101, 0, noted, last_ack},
      {0, A, 1101, 5001, 0, noted, time_wait}}},
    {"a retransmitted SYN opens nothing", {{0, S, 999, 0, 0, noted, syn_sent}, {0, S, 999, 0, 0, noted, syn_sent}}},
    {"an acknowledgment without an answer", {{0, A, 1000, 5000, 0, invalid, syn_sent}}},
    {"an answer that acknowledges another SYN", {{1, S | A, 4999, 1001, 0, invalid, syn_sent}}},
    {"an old connection's acknowledgment, then its reset, then the new one",
     {{1, A, 77'777, 88'888, 0, noted, syn_sent},
      {0, R, 88'888, 0, 0, invalid, syn_sent},
      {0, S, 999, 0, 0, noted, syn_sent},
      answer,
      third}},
    {"the third segment acknowledges what was not sent", {answer, {0, A, 1000, 5001, 0, invalid, syn_received}}},
    {"the third segment is lost, and data completes the opening", {answer, {0, A, 1000, 5000, 10, noted, established}}},
    {"a retransmitted answer", {answer, answer, third, {1, S | A, 4999, 1000, 0, noted, established}}},
    {"simultaneous opening",
     {{1, S, 4999, 0, 0, noted, syn_sent},
      {0, S | A, 999, 5000, 0, noted, syn_received},
      {1, S | A, 4999, 1000, 0, noted, established},
      {0, A, 1000, 5000, 10, plain, established}}},
    {"refused", {{1, R | A, 0, 1000, 0, noted, closed}}},
    {"a refusal of another SYN", {{1, R | A, 0, 1003, 0, invalid, syn_sent}}},
    {"half open: the responder goes on for long",
     {answer,
      third,
      {0, F | A, 1000, 5000, 0, noted, closing},
      {1, A, 5000, 1001, 1000, noted, closing},
      {0, A, 1001, 6000, 0, noted, closing},
      {1, A, 6000, 1001, 1000, noted, closing},
      {1, F | A, 7000, 1001, 0, noted, last_ack},
      {0, A, 1001, 7001, 0, noted, time_wait}}},
    {"both close at once",
     {answer,
      third,
      {0, F | A, 1000, 5000, 0, noted, closing},
      {1, F | A, 5000, 1000, 0, noted, last_ack},
      {0, A, 1001, 5001, 0, noted, last_ack},
      {1, A, 5001, 1001, 0, noted, time_wait}}},
    {"a reset where the next byte is expected", {answer, third, {0, R, 1000, 0, 0, noted, closed}}},
    {"a reset in the window that the receiver will question",
     {answer, third, {0, A, 1000, 5000, 100, plain, established}, {0, R, 1050, 0, 0, noted, established}}},
    {"a reset before the window", {answer, third, {0, R, 999, 0, 0, invalid, established}}},
    {"a reset beyond the window", {answer, third, {0, R, 11'001, 0, 0, invalid, established}}},
    {"a guessed reset of the responder", {answer, third, {1, R, 123'456, 0, 0, invalid, established}}},
    {"a SYN on an established connection", {answer, third, {0, S, 50'000, 0, 0, noted, established}}},
    {"the ports are used again",
     {answer,
      third,
      {0, F | A, 1000, 5000, 0, noted, closing},
      {1, F | A, 5000, 1001, 0, noted, last_ack},
      {0, A, 1001, 5001, 0, noted, time_wait},
      {0, S, 70'000, 0, 0, reopens, time_wait},
      {1, S, 70'000, 0, 0, reopens, time_wait}}},
    {"flags that nobody sends",
     {{0, 0, 1000, 0, 0, invalid, syn_sent},
      {0, S | F, 999, 0, 0, invalid, syn_sent},
      {0, S | R, 999, 0, 0, invalid, syn_sent},
      {0, F, 1000, 0, 0, invalid, syn_sent}}},
};

TEST(TcpConversation, Stories) {
  for (const Story& story : stories) {
    TcpConversation tcp;
    tcp.open(segment(S, 999, 0, 0));
    EXPECT_EQ(tcp.state(), syn_sent);
    for (std::size_t i = 0; i < story.steps.size(); ++i) {
      const Step& step = story.steps[i];
      const TransportFacts facts = segment(step.flags, step.sequence, step.acknowledgment, step.payload);
      const Judgement judgement = tcp.judge(facts, step.side);
      EXPECT_EQ(static_cast<int>(judgement), static_cast<int>(step.judgement)) << story.name << ", step " << i;
      if (judgement == plain || judgement == noted) {
        tcp.note(facts, step.side);
      }
      EXPECT_EQ(name_of(tcp.state()), name_of(step.state)) << story.name << ", step " << i;
    }
  }
}

/// A connection that is established, across the end of the number space; the responder's window is scaled by 2^3.
TcpConversation& establish(TcpConversation& tcp, std::uint32_t client, std::uint32_t server) {
  TransportFacts syn = segment(S, client - 1, 0, 0, 1000);
  syn.has_scale = true;
  syn.scale = 2;
  tcp.open(syn);
  TransportFacts answered = segment(S | A, server - 1, client, 0, 8000);
  answered.has_scale = true;
  answered.scale = 3;
  tcp.note(answered, 1);
  tcp.note(segment(A, client, server, 0, 1000), 0);
  return tcp;
}

bool resets(const TcpConversation& tcp, unsigned side, std::uint32_t sequence) {
  return tcp.judge(segment(R, sequence, 0, 0), side) != Judgement::invalid;
}

TEST(TcpConversation, WindowMovesWithTheData) {
  for (const std::uint32_t client : {1000U, 0xffffff00U, 0U, 0x7fffff00U}) {
    TcpConversation tcp;
    establish(tcp, client, 5000);
    // The SYN's window is not scaled.
    EXPECT_TRUE(resets(tcp, 0, client + 8000));
    EXPECT_FALSE(resets(tcp, 0, client + 8001));
    tcp.advance({client, 5000, 500, 1000}, 0);
    tcp.advance({5000, client + 500, 0, 2000}, 1);  // 16,000 bytes from client + 500 on
    EXPECT_TRUE(resets(tcp, 0, client + 16'500));
    EXPECT_FALSE(resets(tcp, 0, client + 16'501));
    EXPECT_FALSE(resets(tcp, 0, client + 499));
    EXPECT_TRUE(resets(tcp, 0, client + 500));
  }
}

TEST(TcpConversation, SegmentsOutOfTheWindowMoveNothing) {
  TcpConversation tcp;
  establish(tcp, 1000, 5000);
  tcp.advance({1000, 5000, 500, 1000}, 0);
  tcp.advance({5000, 1500, 0, 2000}, 1);
  const auto edges = [&tcp] {
    return std::pair(resets(tcp, 0, 1500) && resets(tcp, 0, 17'500), resets(tcp, 0, 17'501) || resets(tcp, 0, 1499));
  };
  ASSERT_EQ(edges(), std::pair(true, false));
  tcp.advance({5000, 1501, 0, 60'000}, 1);             // acknowledges what was not sent
  tcp.advance({5000 + 100'000, 1500, 0, 60'000}, 1);   // beyond the client's window
  tcp.advance({17'501, 5000, 100, 1000}, 0);           // beyond the server's
  tcp.advance({1000U - 100'000, 5000, 0, 1000}, 0);    // long before
  tcp.advance({5000, 1500U - 200'000, 0, 60'000}, 1);  // acknowledges what is long past
  EXPECT_EQ(edges(), std::pair(true, false));
}

TEST(TcpConversation, NoScaleUnlessBothOfferIt) {
  TcpConversation tcp;
  TransportFacts syn = segment(S, 999, 0, 0, 1000);
  syn.has_scale = true;
  syn.scale = 7;
  tcp.open(syn);
  tcp.note(segment(S | A, 4999, 1000, 0, 1000), 1);
  tcp.note(segment(A, 1000, 5000, 0, 1000), 0);
  EXPECT_TRUE(resets(tcp, 1, 6000));
  EXPECT_FALSE(resets(tcp, 1, 6001));
}

// Random conversations of two honest ends, over a path that loses, repeats and reorders: nothing of theirs is ever
// invalid, and the window follows them, so that a reset at the sender's place passes and one far away does not.
TEST(TcpConversation, HonestEndsAreNeverRefused) {
  std::mt19937_64 random(20'261'201);
  RecordProperty("seed", 20'261'201);
  for (int round = 0; round < 300; ++round) {
    const auto client = static_cast<std::uint32_t>(random());
    const auto server = static_cast<std::uint32_t>(random());
    TcpConversation tcp;
    establish(tcp, client, server);
    std::array<std::uint32_t, 2> sent{client, server};
    std::array<std::uint32_t, 2> received{client, server};  // by the other side
    std::array<std::uint32_t, 2> acknowledged = received;   // as the sender has heard
    std::array<std::uint32_t, 2> offered{4000, 8000};       // windows that the other side has heard of
    const std::array<std::uint32_t, 2> window{4000, 64'000};
    std::vector<std::pair<unsigned, TcpSegment>> in_flight;
    for (int step = 0; step < 200; ++step) {
      const auto side = static_cast<unsigned>(random() % 2);
      const unsigned other = 1 - side;
      const auto payload = static_cast<std::uint32_t>(random() % 1461);
      if (sent[side] + payload - acknowledged[side] <= offered[other]) {
        const auto field = static_cast<std::uint16_t>(window[side] >> (side == 0 ? 2 : 3));
        in_flight.push_back({side, {sent[side], received[other], payload, field}});
        sent[side] += payload;
      }
      if (random() % 8 == 0 && in_flight.size() > 1) {
        std::swap(in_flight.back(), in_flight[in_flight.size() - 2]);
      }
      while (in_flight.size() > random() % 4) {
        const auto [from, it] = in_flight.front();
        const TransportFacts facts = segment(A, it.sequence, it.acknowledgment, it.payload, it.window);
        ASSERT_EQ(static_cast<int>(tcp.judge(facts, from)), static_cast<int>(Judgement::plain)) << "round " << round;
        tcp.advance(it, from);
        if (random() % 16 != 0) {  // else lost behind us
          if (it.sequence == received[from]) {
            received[from] += it.payload;
          }
          if (static_cast<std::int32_t>(it.acknowledgment - acknowledged[1 - from]) >= 0) {
            acknowledged[1 - from] = it.acknowledgment;
            offered[from] = window[from];
          }
        }
        in_flight.erase(in_flight.begin());
      }
      if (in_flight.empty()) {
        sent = acknowledged;  // retransmit
      }
    }
    for (const unsigned side : {0U, 1U}) {
      EXPECT_TRUE(resets(tcp, side, received[side])) << "round " << round;
      EXPECT_FALSE(resets(tcp, side, sent[side] + 0x40000000U)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace weir
