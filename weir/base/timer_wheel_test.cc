#include <weir/base/timer_wheel.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/random.h>

namespace weir {
namespace {

struct Recorder {
  std::vector<int> fired;
  Timer at(TimerWheel& wheel, Nanoseconds deadline, int name) {
    return {wheel, deadline, [this, name] { fired.push_back(name); }};
  }
};

TEST(TimerWheel, FiresExactlyAtTheDeadlineAndOnce) {
  for (const Nanoseconds start : {Nanoseconds{0}, Nanoseconds{12'345'678'901}, ~Nanoseconds{0} / 2}) {
    for (const Nanoseconds wait : {Nanoseconds{1}, Nanoseconds{63}, Nanoseconds{64}, Nanoseconds{65},
                                   Nanoseconds{4'096}, Nanoseconds{1'000'000'000}, Nanoseconds{1} << 60U}) {
      TimerWheel wheel(start);
      Recorder recorder;
      const Timer timer = recorder.at(wheel, start + wait, 1);
      EXPECT_EQ(wheel.next(), start + wait);
      EXPECT_EQ(wheel.advance(start + wait - 1), 0U);
      EXPECT_TRUE(timer.pending());
      EXPECT_EQ(wheel.advance(start + wait), 1U);
      EXPECT_FALSE(timer.pending());
      EXPECT_EQ(wheel.advance(start + wait + 1), 0U);
      EXPECT_EQ(wheel.next(), TimerWheel::never);
      EXPECT_EQ(wheel.size(), 0U);
    }
  }
}

TEST(TimerWheel, FiresInOrderOfDeadlinesThenOfStarting) {
  TimerWheel wheel(0);
  Recorder recorder;
  const Timer late = recorder.at(wheel, 1'000'000, 4);
  const Timer first = recorder.at(wheel, 5'000, 1);
  wheel.advance(4'990);  // so that the next one starts at another level than `first` did
  const Timer second = recorder.at(wheel, 5'000, 2);
  const Timer passed = recorder.at(wheel, 10, 0);
  const Timer third = recorder.at(wheel, 5'001, 3);
  EXPECT_EQ(wheel.advance(2'000'000), 5U);
  EXPECT_EQ(recorder.fired, (std::vector{0, 1, 2, 3, 4}));
}

TEST(TimerWheel, CancelsByHandle) {
  TimerWheel wheel(0);
  Recorder recorder;
  Timer cancelled = recorder.at(wheel, 10, 1);
  Timer replaced = recorder.at(wheel, 10, 2);
  {
    const Timer out_of_scope = recorder.at(wheel, 10, 3);
    EXPECT_EQ(wheel.size(), 3U);
  }
  cancelled.cancel();
  cancelled.cancel();
  replaced = recorder.at(wheel, 20, 4);
  EXPECT_EQ(wheel.size(), 1U);
  EXPECT_EQ(wheel.next(), 20U);
  wheel.advance(100);
  EXPECT_EQ(recorder.fired, (std::vector{4}));
}

TEST(TimerWheel, CallbacksMayDestroyAndStartTimers) {
  TimerWheel wheel(0);
  std::vector<int> fired;
  std::optional<Timer> itself;
  std::optional<Timer> victim;
  Timer again;
  const auto token = std::make_shared<int>(7);
  itself.emplace(wheel, 10, [&, token] {
    itself.reset();
    victim.reset();
    fired.push_back(*token);  // the captures outlive the handle
    again = Timer(wheel, 5, [&] { fired.push_back(8); });
  });
  victim.emplace(wheel, 10, [&] { fired.push_back(9); });
  EXPECT_EQ(wheel.advance(10), 1U);
  EXPECT_EQ(fired, (std::vector{7})) << "a timer started by a timer waits for the next call, even if due";
  EXPECT_LE(wheel.next(), 10U);
  EXPECT_EQ(token.use_count(), 1);
  wheel.advance(10);
  EXPECT_EQ(fired, (std::vector{7, 8}));
}

TEST(TimerWheel, MayEndBeforeItsTimers) {
  Recorder recorder;
  Timer timer;
  {
    TimerWheel wheel(0);
    timer = recorder.at(wheel, 1'000, 1);
  }
  EXPECT_FALSE(timer.pending());
}

TEST(TimerWheel, TimeNeverGoesBack) {
  TimerWheel wheel(1'000);
  Recorder recorder;
  wheel.advance(500);
  const Timer timer = recorder.at(wheel, 900, 1);
  wheel.advance(600);
  EXPECT_EQ(recorder.fired.size(), 1U) << "900 had passed before";
}

TEST(TimerWheel, NextIsNeverTooLateWithManyTimersInASlot) {
  TimerWheel wheel(0);
  Recorder recorder;
  std::vector<Timer> timers;
  for (int i = 0; i < 100; ++i) {
    timers.push_back(recorder.at(wheel, 1'000'000 + static_cast<Nanoseconds>(i), i));
  }
  int turns = 0;
  while (recorder.fired.empty()) {
    ASSERT_LE(wheel.next(), 1'000'000U);
    wheel.advance(wheel.next());
    ASSERT_LT(++turns, 20);
  }
  EXPECT_EQ(recorder.fired, (std::vector{0}));
}

// Against a plain list, with starting, moving, cancelling and advancing by steps of all sizes.
TEST(TimerWheel, AgreesWithAModel) {
  struct Model : WheelTimer {
    std::vector<int>* log = nullptr;
    int name = 0;
    Nanoseconds due = 0;
    std::uint64_t order = 0;
    bool running = false;
    void expired() override { log->push_back(name); }
  };
  for (std::uint64_t round = 0; round < 20; ++round) {
    Random random(round);
    Nanoseconds now = random() >> (1 + random.below(63));
    TimerWheel wheel(now);
    std::vector<int> fired;
    std::vector<std::unique_ptr<Model>> models;
    for (int i = 0; i < 50; ++i) {
      models.push_back(std::make_unique<Model>());
      models.back()->log = &fired;
      models.back()->name = i;
    }
    std::uint64_t order = 0;
    for (int step = 0; step < 3'000; ++step) {
      Model& model = *models[random.below(50)];
      switch (random.below(4)) {
        case 0:
        case 1:
          model.due = now + (random() >> (4 + random.below(60)));
          model.order = ++order;
          model.running = true;
          wheel.start(model, model.due);
          break;
        case 2:
          model.running = false;
          model.cancel();
          break;
        default: {
          now += random() >> (20 + random.below(44));
          std::vector<Model*> due;
          Nanoseconds first = TimerWheel::never;
          for (const auto& each : models) {
            if (each->running) {
              first = std::min(first, each->due);
              if (each->due <= now) {
                due.push_back(each.get());
              }
            }
          }
          ASSERT_LE(wheel.next(), first);
          std::ranges::sort(due, [](const Model* a, const Model* b) {
            return std::pair(a->due, a->order) < std::pair(b->due, b->order);
          });
          std::vector<int> expected;
          for (Model* each : due) {
            expected.push_back(each->name);
            each->running = false;
          }
          fired.clear();
          ASSERT_EQ(wheel.advance(now), due.size());
          ASSERT_EQ(fired, expected) << "round " << round << " step " << step;
        }
      }
      ASSERT_EQ(wheel.size(),
                static_cast<std::size_t>(std::ranges::count_if(models, [](const auto& m) { return m->running; })));
    }
  }
}

}  // namespace
}  // namespace weir
