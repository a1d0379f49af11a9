#include <weir/base/loop.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

bool readable_now(int fd, int timeout_ms = 0) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, timeout_ms) == 1;
}

struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    here.reset(fds[0]);
    there.reset(fds[1]);
  }
  void send(char byte = 'x') const { EXPECT_EQ(::write(there.get(), &byte, 1), 1); }
  [[nodiscard]] char receive() const {
    char byte = 0;
    return ::read(here.get(), &byte, 1) == 1 ? byte : '\0';
  }
  void fill() const {
    const std::array<char, 4096> block{};
    while (::write(here.get(), block.data(), block.size()) > 0) {
    }
  }
  void empty() const {
    std::array<char, 4096> block{};
    while (::read(there.get(), block.data(), block.size()) > 0) {
    }
  }
  Descriptor here;
  Descriptor there;
};

/// A loop on a clock that stands still.
class LoopTest : public ::testing::Test {
 protected:
  void poll(int turns = 4) {
    for (int i = 0; i < turns; ++i) {
      loop_->poll_once();
    }
  }
  ManualClock clock_{5'000};
  std::unique_ptr<Loop> loop_ = Loop::create(clock_).value();
  std::string log_;
};

/// A loop on the system's clock.
class RealLoopTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  std::unique_ptr<Loop> loop_ = Loop::create(clock_).value();
};

Task<> sleeper(Loop& loop, std::chrono::nanoseconds time, std::string& log, char name) {
  co_await loop.sleep(time);
  log += name;
}

Task<> waiter(Loop& loop, int fd, bool write, std::string& log, char name) {
  Result<> ready;
  if (write) {
    ready = co_await loop.writable(fd);
  } else {
    ready = co_await loop.readable(fd);
  }
  log += ready ? name : '!';
}

// --- time ---

TEST_F(LoopTest, SleepersWakeByTheClockInOrder) {
  loop_->spawn(sleeper(*loop_, 30ms, log_, 'c'));
  loop_->spawn(sleeper(*loop_, 10ms, log_, 'a'));
  loop_->spawn(sleeper(*loop_, 20ms, log_, 'b'));
  poll();
  EXPECT_EQ(log_, "");
  clock_.advance(nanoseconds(10ms) - 1);
  poll();
  EXPECT_EQ(log_, "");
  clock_.advance(1);
  EXPECT_EQ(loop_->poll_once(), 1U);
  EXPECT_EQ(log_, "a");
  clock_.advance(nanoseconds(1h));
  EXPECT_EQ(loop_->poll_once(), 2U);
  EXPECT_EQ(log_, "abc");
  EXPECT_EQ(loop_->poll_once(), 0U);
}

TEST_F(LoopTest, SleepingNoTimeGivesWay) {
  const auto task = [](Loop& loop, std::string& log, char name) -> Task<> {
    log += name;
    co_await loop.sleep(0ns);
    log += name;
    co_await loop.sleep(-1s);
    log += name;
  };
  loop_->spawn(task(*loop_, log_, 'a'));
  loop_->spawn(task(*loop_, log_, 'b'));
  poll();
  EXPECT_EQ(log_, "ababab");
}

TEST_F(LoopTest, SleepingForeverIsNotAnOverflow) {
  loop_->spawn(sleeper(*loop_, Loop::forever, log_, 'x'));
  poll();
  clock_.advance(nanoseconds(24h * 365 * 100));
  poll();
  EXPECT_EQ(log_, "");
}

TEST_F(LoopTest, AfterCallsOnceUnlessCancelled) {
  const Timer kept = loop_->after(1ms, [&] { log_ += 'k'; });
  Timer cancelled = loop_->after(1ms, [&] { log_ += 'c'; });
  {
    const Timer dropped = loop_->after(1ms, [&] { log_ += 'd'; });
  }
  EXPECT_TRUE(kept.pending());
  cancelled.cancel();
  clock_.advance(nanoseconds(1ms));
  poll();
  EXPECT_EQ(log_, "k");
  EXPECT_FALSE(kept.pending());
}

TEST_F(LoopTest, ATimerMayReplaceItself) {
  int ticks = 0;
  Timer timer;
  std::move_only_function<void()> tick;
  const auto again = [&] {
    ++ticks;
    timer = loop_->after(1ms, [&] { tick(); });
  };
  tick = again;
  timer = loop_->after(1ms, [&] { tick(); });
  for (int i = 0; i < 5; ++i) {
    clock_.advance(nanoseconds(1ms));
    poll();
  }
  EXPECT_EQ(ticks, 5);
}

TEST_F(LoopTest, TimersMayOutliveTheLoop) {
  const Timer timer = loop_->after(1ms, [&] { log_ += 'x'; });
  loop_.reset();
  EXPECT_FALSE(timer.pending());
}

TEST_F(RealLoopTest, SleepsRealTime) {
  const Nanoseconds start = clock_.now();
  loop_->spawn([](Loop& loop) -> Task<> {
    co_await loop.sleep(300us);
    co_await loop.sleep(5ms);
    loop.stop();
  }(*loop_));
  loop_->run();
  const Nanoseconds taken = clock_.now() - start;
  EXPECT_GE(taken, nanoseconds(5'300us));
  EXPECT_LT(taken, nanoseconds(2s));
}

TEST_F(RealLoopTest, AnEarlierTimerOvertakes) {
  std::string log;
  const Timer late = loop_->after(1h, [&] { log += 'l'; });
  loop_->poll_once();
  const Timer early = loop_->after(2ms, [&] {
    log += 'e';
    loop_->stop();
  });
  loop_->run();
  EXPECT_EQ(log, "e");
}

// --- descriptors ---

TEST_F(LoopTest, WaitsUntilReadable) {
  const Pair pair;
  loop_->spawn([](Loop& loop, const Pair& from, std::string& log) -> Task<> {
    for (;;) {
      EXPECT_TRUE(co_await loop.readable(from.here.get()));
      log += from.receive();
    }
  }(*loop_, pair, log_));
  poll();
  EXPECT_EQ(log_, "");
  for (const char byte : {'a', 'b', 'c'}) {
    pair.send(byte);
    EXPECT_EQ(loop_->poll_once(), 1U);
    EXPECT_EQ(loop_->poll_once(), 0U) << "no wake-up without cause";
  }
  EXPECT_EQ(log_, "abc");
}

TEST_F(LoopTest, IsLevelTriggered) {
  const Pair pair;
  pair.send('a');
  pair.send('b');
  loop_->spawn([](Loop& loop, const Pair& from, std::string& log) -> Task<> {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(co_await loop.readable(from.here.get()));
      log += from.receive();  // leaves one byte the first time
    }
  }(*loop_, pair, log_));
  poll();
  EXPECT_EQ(log_, "ab");
}

TEST_F(LoopTest, OneTaskForEachDirection) {
  const Pair pair;
  pair.fill();
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'r'));
  loop_->spawn(waiter(*loop_, pair.here.get(), true, log_, 'w'));
  poll();
  EXPECT_EQ(log_, "");
  pair.send();
  poll();
  EXPECT_EQ(log_, "r") << "and the writer still waits";
  pair.empty();
  poll();
  EXPECT_EQ(log_, "rw");
}

TEST_F(LoopTest, BothDirectionsAtOnce) {
  const Pair pair;
  pair.send();
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'r'));
  loop_->spawn(waiter(*loop_, pair.here.get(), true, log_, 'w'));
  poll();
  EXPECT_EQ(log_.size(), 2U);
}

TEST_F(LoopTest, ASecondWaiterGetsAnError) {
  const Pair pair;
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'a'));
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'b'));
  poll();
  EXPECT_EQ(log_, "!");
  pair.send();
  poll();
  EXPECT_EQ(log_, "!a");
}

TEST_F(LoopTest, TheOtherEndClosingCountsAsReady) {
  Pair pair;
  pair.fill();
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'r'));
  loop_->spawn(waiter(*loop_, pair.here.get(), true, log_, 'w'));
  poll();
  pair.there.reset();
  poll();
  EXPECT_EQ(log_, "rw");
}

TEST_F(LoopTest, BadDescriptorsAreErrorsAndRegularFilesAreReady) {
  const Descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  loop_->spawn([](Loop& loop, int regular, std::string& log) -> Task<> {
    for (const int fd : {-1, 1'000'000}) {
      const Result<> ready = co_await loop.readable(fd);
      EXPECT_FALSE(ready);
      log += ready ? "" : ready.error().message + "\n";
    }
    EXPECT_TRUE(co_await loop.readable(regular));
  }(*loop_, file.get(), log_));
  poll();
  EXPECT_EQ(log_,
            "cannot wait for descriptor -1: Bad file descriptor\n"
            "cannot wait for descriptor 1000000: Bad file descriptor\n");
}

TEST_F(LoopTest, AFailedWaitLeavesTheOtherDirectionWaiting) {
  // The reader's descriptor is closed under it (against the contract, on purpose): the writer's error must not harm.
  Pair pair;
  const int number = pair.here.get();
  loop_->spawn(waiter(*loop_, number, false, log_, 'r'));
  poll();
  const Descriptor copy(::dup(number));  // keeps the kernel's registration
  pair.here.reset();
  loop_->spawn(waiter(*loop_, number, true, log_, 'w'));
  poll();
  EXPECT_EQ(log_, "!");
  pair.send();
  poll();
  EXPECT_EQ(log_, "!r");
}

TEST_F(LoopTest, CancellingEndsTheWait) {
  const Pair pair;
  SpawnedTask first = loop_->spawn_scoped(waiter(*loop_, pair.here.get(), false, log_, 'a'));
  poll();
  first.cancel();
  pair.send();
  poll();
  EXPECT_EQ(log_, "");
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'b'));
  poll();
  EXPECT_EQ(log_, "b");
}

TEST_F(LoopTest, AReaderMayCancelTheWriterInTheSameTurn) {
  const Pair pair;
  SpawnedTask writer = loop_->spawn_scoped(waiter(*loop_, pair.here.get(), true, log_, 'w'));
  loop_->spawn([](Loop& loop, int fd, SpawnedTask& victim, std::string& log) -> Task<> {
    EXPECT_TRUE(co_await loop.readable(fd));
    victim.cancel();
    log += 'r';
  }(*loop_, pair.here.get(), writer, log_));
  pair.fill();
  poll();
  pair.send();
  pair.empty();
  poll();
  EXPECT_EQ(log_, "r");
}

TEST_F(LoopTest, ForgettingWakesWaitersWithAnError) {
  Pair pair;
  const int number = pair.here.get();
  pair.fill();
  loop_->spawn(waiter(*loop_, number, false, log_, 'r'));
  loop_->spawn(waiter(*loop_, number, true, log_, 'w'));
  poll();
  loop_->forget(number);
  pair.here.reset();
  EXPECT_TRUE(readable_now(loop_->descriptor()));
  EXPECT_EQ(log_, "");
  poll();
  EXPECT_EQ(log_, "!!");
  loop_->forget(number);
  loop_->forget(-1);
}

TEST_F(LoopTest, ATaskCancelledAfterForgettingStaysCancelled) {
  const Pair pair;
  SpawnedTask task = loop_->spawn_scoped(waiter(*loop_, pair.here.get(), false, log_, 'r'));
  poll();
  loop_->forget(pair.here.get());
  task.cancel();
  poll();
  EXPECT_EQ(log_, "");
}

TEST_F(LoopTest, NumbersMayBeUsedAgain) {
  for (const bool forget : {true, false}) {
    Pair old;
    const int number = old.here.get();
    SpawnedTask first = loop_->spawn_scoped(waiter(*loop_, number, false, log_, 'o'));
    poll();
    first.cancel();
    if (forget) {
      loop_->forget(number);  // allowed, and not needed since nobody waits
    }
    old.here.reset();
    const Pair fresh;
    const Descriptor same(::fcntl(fresh.here.get(), F_DUPFD_CLOEXEC, number));
    ASSERT_EQ(same.get() == number || fresh.here.get() == number, true);
    const SpawnedTask second = loop_->spawn_scoped(waiter(*loop_, number, false, log_, 'n'));
    poll();
    fresh.send();
    poll();
  }
  EXPECT_EQ(log_, "nn");
}

// Events that one wait collected must not reach a wait that began later, for a new descriptor of the same number.
TEST_F(LoopTest, StaleEventsAreIgnored) {
  const Pair trigger;
  auto old = std::make_unique<Pair>();
  std::unique_ptr<Pair> fresh;
  const int number = old->here.get();
  SpawnedTask victim = loop_->spawn_scoped(waiter(*loop_, number, false, log_, 'o'));
  const auto swap = [&] {
    victim.cancel();
    old.reset();
    fresh = std::make_unique<Pair>();
  };
  loop_->spawn([](Loop& loop, const Pair& first, int fd, const decltype(swap)& then, std::string& log) -> Task<> {
    EXPECT_TRUE(co_await loop.readable(first.here.get()));
    then();
    EXPECT_TRUE(co_await loop.readable(fd));
    log += 'n';
  }(*loop_, trigger, number, swap, log_));
  poll();
  trigger.send();  // epoll gives events in the order they came
  old->send();
  poll();
  ASSERT_EQ(fresh->here.get(), number);
  EXPECT_EQ(log_, "");
  fresh->send();
  poll();
  EXPECT_EQ(log_, "n");
}

TEST_F(LoopTest, ManyDescriptorsInOneTurn) {
  constexpr int count = 100;  // more than one call of epoll_wait returns
  std::vector<Pair> pairs(count);
  for (const Pair& pair : pairs) {
    loop_->spawn(waiter(*loop_, pair.here.get(), false, log_, 'x'));
  }
  poll();
  for (const Pair& pair : pairs) {
    pair.send();
  }
  poll();
  EXPECT_EQ(log_.size(), static_cast<std::size_t>(count));
}

// --- posting, stopping, signals ---

TEST_F(LoopTest, PostedFunctionsRunInOrderAtTheNextPoll) {
  loop_->post([&] {
    log_ += 'a';
    loop_->post([&] { log_ += 'c'; });
  });
  loop_->post([&] { log_ += 'b'; });
  EXPECT_EQ(log_, "");
  EXPECT_EQ(loop_->poll_once(), 2U);
  EXPECT_EQ(log_, "ab");
  EXPECT_EQ(loop_->poll_once(), 1U);
  EXPECT_EQ(log_, "abc");
}

TEST_F(RealLoopTest, PostsFromManyThreadsAllArrive) {
  constexpr int threads = 4;
  constexpr int each = 5'000;
  int sum = 0;  // touched on the loop's thread only
  std::array<int, threads> last{};
  std::vector<std::thread> posters;
  for (int thread = 0; thread < threads; ++thread) {
    posters.emplace_back([&, thread] {
      for (int i = 1; i <= each; ++i) {
        loop_->post([&, thread, i] {
          EXPECT_EQ(last[thread] + 1, i);
          last[thread] = i;
          if (++sum == threads * each) {
            loop_->stop();
          }
        });
      }
    });
  }
  loop_->run();
  for (std::thread& poster : posters) {
    poster.join();
  }
  EXPECT_EQ(sum, threads * each);
}

TEST_F(RealLoopTest, PostingWakesALoopThatWaits) {
  std::atomic<bool> ran{false};
  std::thread poster([&] {
    std::this_thread::sleep_for(10ms);
    loop_->post([&] { ran = true; });
  });
  const Nanoseconds start = clock_.now();
  while (!ran) {
    loop_->poll_once(10s);
  }
  EXPECT_LT(clock_.now() - start, nanoseconds(5s));
  poster.join();
}

TEST_F(RealLoopTest, StopEndsRunFromAnyThreadAndRunMayBeCalledAgain) {
  for (int round = 0; round < 20; ++round) {
    std::thread stopper([&] { loop_->stop(); });
    loop_->run();
    stopper.join();
  }
  loop_->stop();
  loop_->run();
}

TEST_F(RealLoopTest, PollWaitsNoLongerThanItsTimeout) {
  const Nanoseconds start = clock_.now();
  EXPECT_EQ(loop_->poll_once(), 0U);
  EXPECT_EQ(loop_->poll_once(2ms), 0U);
  EXPECT_GE(clock_.now() - start, nanoseconds(1'900us));
  EXPECT_LT(clock_.now() - start, nanoseconds(2s));
}

TEST_F(RealLoopTest, SignalsDoNotDisturbIt) {
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = [](int) {};  // without SA_RESTART, so that system calls end with EINTR
  ::sigaction(SIGUSR1, &ignore, &before);
  std::atomic<bool> woken{false};
  const pthread_t self = ::pthread_self();
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::sleep_for(500us);
    }
    loop_->post([&] {
      woken = true;
      loop_->stop();
    });
  });
  loop_->run();
  other.join();
  EXPECT_TRUE(woken);
  ::sigaction(SIGUSR1, &before, nullptr);
}

// --- embedding ---

TEST_F(RealLoopTest, ItsDescriptorTellsWhenToPoll) {
  const auto idle = [&] {
    for (int i = 0; i < 8 && readable_now(loop_->descriptor()); ++i) {
      loop_->poll_once();
    }
    return !readable_now(loop_->descriptor());
  };
  EXPECT_TRUE(idle());

  std::string log;
  loop_->post([&] { log += 'p'; });
  EXPECT_TRUE(readable_now(loop_->descriptor()));
  EXPECT_TRUE(idle());

  loop_->spawn(sleeper(*loop_, 3ms, log, 's'));
  EXPECT_TRUE(readable_now(loop_->descriptor()));
  loop_->poll_once();
  EXPECT_TRUE(idle());
  EXPECT_TRUE(readable_now(loop_->descriptor(), 5'000)) << "the sleeping task's time";
  while (log != "ps") {
    ASSERT_TRUE(readable_now(loop_->descriptor(), 5'000));
    loop_->poll_once();
  }
  EXPECT_TRUE(idle());

  const Timer timer = loop_->after(1ms, [&] { log += 't'; });  // started outside of a poll
  while (log != "pst") {
    ASSERT_TRUE(readable_now(loop_->descriptor(), 5'000));
    loop_->poll_once();
  }
  EXPECT_TRUE(idle());

  const Pair pair;
  loop_->spawn(waiter(*loop_, pair.here.get(), false, log, 'r'));
  loop_->poll_once();
  EXPECT_TRUE(idle());
  pair.send();
  EXPECT_TRUE(readable_now(loop_->descriptor()));
  EXPECT_TRUE(idle());
  EXPECT_EQ(log, "pstr");
}

TEST_F(LoopTest, WorkLeftByATurnKeepsTheDescriptorReadable) {
  loop_->spawn([](Loop& loop, std::string& log) -> Task<> {
    loop.spawn(sleeper(loop, 0ns, log, 'x'));
    co_return;
  }(*loop_, log_));
  int turns = 0;
  while (readable_now(loop_->descriptor())) {
    loop_->poll_once();
    ASSERT_LT(++turns, 10);
  }
  EXPECT_EQ(log_, "x");
}

TEST_F(RealLoopTest, OneLoopRunsAnother) {
  ManualClock still;
  const std::unique_ptr<Loop> inner = Loop::create(still).value();
  int ran = 0;
  loop_->spawn([](Loop& outer, Loop& other, int& count) -> Task<> {
    while (count < 3) {
      EXPECT_TRUE(co_await outer.readable(other.descriptor()));
      other.poll_once();
    }
    outer.stop();
  }(*loop_, *inner, ran));
  std::thread poster([&] {
    for (int i = 0; i < 3; ++i) {
      inner->post([&] { ++ran; });
      std::this_thread::sleep_for(1ms);
    }
  });
  loop_->run();
  poster.join();
  EXPECT_EQ(ran, 3);
}

// --- the end ---

TEST_F(LoopTest, ItsEndDestroysTasksAndPosts) {
  const Pair pair;
  const auto token = std::make_shared<int>(0);
  const auto hold = [](Loop& loop, std::shared_ptr<int>, int kind, int fd) -> Task<> {
    if (kind == 0) {
      co_await loop.sleep(1h);
    } else {
      (void)co_await loop.readable(fd);
    }
  };
  loop_->spawn(hold(*loop_, token, 0, -1));
  loop_->spawn(hold(*loop_, token, 1, pair.here.get()));
  poll();
  loop_->spawn(hold(*loop_, token, 0, -1));
  SpawnedTask handle = loop_->spawn_scoped(hold(*loop_, token, 0, -1));
  loop_->post([token] {});
  EXPECT_EQ(token.use_count(), 6);
  loop_.reset();
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_TRUE(handle.done());
}

TEST_F(LoopTest, WhatEndsWithItMayStillCallIt) {
  struct Caller {
    Loop& loop;
    std::shared_ptr<int> token;
    SpawnedTask other;
    ~Caller() {
      loop.post([kept = token] {});
      loop.spawn([](std::shared_ptr<int>) -> Task<> { co_return; }(token));
      loop.forget(0);
    }
  };
  const auto token = std::make_shared<int>(0);
  auto caller = std::make_unique<Caller>(*loop_, token, loop_->spawn_scoped(sleeper(*loop_, 1h, log_, 'x')));
  loop_->spawn(
      [](Loop& loop, std::unique_ptr<Caller>) -> Task<> { co_await loop.sleep(1h); }(*loop_, std::move(caller)));
  poll();
  loop_.reset();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Loop, LeaksNoDescriptors) {
  const std::size_t before = open_descriptors();
  const SystemClock clock;
  for (int i = 0; i < 10; ++i) {
    const std::unique_ptr<Loop> loop = Loop::create(clock).value();
    const Pair pair;
    std::string log;
    loop->spawn(waiter(*loop, pair.here.get(), false, log, 'x'));
    loop->spawn(sleeper(*loop, 1h, log, 'y'));
    loop->poll_once();
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Loop, SaysWhyItCannotBeCreated) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const SystemClock clock;
  const std::size_t before = open_descriptors();
  for (const rlim_t allowed : {0, 1, 2}) {
    // The lowest free number and those after it are what can still be opened (the tests leave no gaps).
    const int lowest = ::dup(0);
    ::close(lowest);
    const rlimit low{.rlim_cur = static_cast<rlim_t>(lowest) + allowed, .rlim_max = limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
    const auto loop = Loop::create(clock);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_FALSE(loop);
    EXPECT_NE(loop.error().message.find("ulimit -n"), std::string::npos) << loop.error().message;
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace weir
