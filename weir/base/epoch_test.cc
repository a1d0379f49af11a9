#include <weir/base/epoch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <weir/base/published.h>
#include <weir/base/spin_lock.h>

namespace weir {
namespace {

using namespace std::chrono_literals;

TEST(Epochs, BarrierReturnsWithoutReadersAndWithOfflineOnes) {
  Epochs epochs;
  epochs.barrier();
  Epochs::Reader& never_online = epochs.add();
  Epochs::Reader& gone_offline = epochs.add();
  gone_offline.online();
  gone_offline.offline();
  epochs.barrier();
  epochs.remove(never_online);
  epochs.remove(gone_offline);
}

TEST(Epochs, PassedNeedsEveryOnlineReader) {
  Epochs epochs;
  Epochs::Reader& a = epochs.add();
  Epochs::Reader& b = epochs.add();
  a.online();
  b.online();
  const std::uint64_t epoch = epochs.advance();
  EXPECT_FALSE(epochs.passed(epoch));
  a.quiescent();
  EXPECT_FALSE(epochs.passed(epoch));
  b.quiescent();
  EXPECT_TRUE(epochs.passed(epoch));
  EXPECT_FALSE(epochs.passed(epochs.advance()));
  a.quiescent();
  epochs.remove(b);
  EXPECT_TRUE(epochs.passed(epoch + 1));
  epochs.remove(a);
}

TEST(Epochs, ComingOnlineCountsAsQuiescent) {
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  const std::uint64_t epoch = epochs.advance();
  reader.online();
  EXPECT_TRUE(epochs.passed(epoch));
  EXPECT_FALSE(epochs.passed(epochs.advance()));
  epochs.remove(reader);
}

TEST(Epochs, BarrierWaitsForAnOnlineReader) {
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  reader.online();
  std::atomic<bool> passed{false};
  std::thread writer([&] {
    epochs.barrier();
    passed = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(passed);
  // The barrier may not have begun yet, so one quiescent state might be too early.
  while (!passed) {
    reader.quiescent();
    std::this_thread::yield();
  }
  writer.join();
  epochs.remove(reader);
}

TEST(Epochs, BarrierEndsWhenTheReaderGoesOffline) {
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  reader.online();
  std::thread writer([&] { epochs.barrier(); });
  std::this_thread::sleep_for(1ms);
  reader.offline();
  writer.join();
  epochs.remove(reader);
}

TEST(Epochs, RetiredThingsWaitForQuiescence) {
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  reader.online();
  int destroyed = 0;
  epochs.retire([&] { ++destroyed; });
  epochs.retire([&] { ++destroyed; });
  EXPECT_EQ(epochs.reclaim(), 2U);
  EXPECT_EQ(destroyed, 0);
  reader.quiescent();
  epochs.retire([&] { destroyed += 10; });
  EXPECT_EQ(destroyed, 2) << "what came before the quiescent state, and no more";
  EXPECT_EQ(epochs.reclaim(), 1U);
  reader.offline();
  EXPECT_EQ(epochs.reclaim(), 0U);
  EXPECT_EQ(destroyed, 12);
  epochs.remove(reader);
}

TEST(Epochs, DestructionRunsWhatIsLeftAndWhatThatRetires) {
  int destroyed = 0;
  {
    Epochs epochs;
    Epochs::Reader& reader = epochs.add();
    reader.online();
    epochs.retire([&] {
      ++destroyed;
      epochs.retire([&] { ++destroyed; });
    });
    EXPECT_EQ(destroyed, 0);
  }
  EXPECT_EQ(destroyed, 2);
}

TEST(EpochScope, HoldsBackReclaimForItsLife) {
  Epochs epochs;
  bool destroyed = false;
  {
    const EpochScope scope(epochs);
    epochs.retire([&] { destroyed = true; });
    EXPECT_FALSE(destroyed);
  }
  epochs.reclaim();
  EXPECT_TRUE(destroyed);
}

// The store-load race of `online` against `barrier`, thousands of times: either the writer waits for the reader, or the
// reader finds the new value. Each round both sides start together, the writer a little later each time.
TEST(Epochs, OnlineRacesWithBarrier) {
  struct alignas(64) Line {
    std::atomic<unsigned> number{0};
  };
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  constexpr unsigned rounds = 100'000;
  Line round;
  Line value;
  Line destroyed;  // values below this one may no longer be used
  Line finished;
  std::atomic<unsigned> wrong{0};
  std::thread thread([&] {
    for (unsigned i = 1; i <= rounds; ++i) {
      for (unsigned spins = 0; round.number.load(std::memory_order_acquire) < i; ++spins) {
        if (spins > 1'000) {
          std::this_thread::yield();
        }
      }
      reader.online();
      const unsigned used = value.number.load(std::memory_order_relaxed);
      for (int use = 0; use < 20; ++use) {
        SpinLock::pause();
        if (destroyed.number.load(std::memory_order_relaxed) > used) {
          ++wrong;
          break;
        }
      }
      reader.offline();
      finished.number.store(i, std::memory_order_release);
    }
  });
  for (unsigned i = 1; i <= rounds; ++i) {
    round.number.store(i, std::memory_order_release);
    for (unsigned delay = 0; delay < i % 1'024; ++delay) {
      static_cast<void>(round.number.load(std::memory_order_relaxed));
    }
    value.number.store(i, std::memory_order_relaxed);
    epochs.barrier();
    destroyed.number.store(i, std::memory_order_relaxed);
    while (finished.number.load(std::memory_order_acquire) < i) {
      std::this_thread::yield();
    }
  }
  thread.join();
  EXPECT_EQ(wrong, 0U);
  epochs.remove(reader);
}

// A value that says when it is used after its end, whatever the allocator does with the memory.
class Poisoned {
 public:
  explicit Poisoned(std::uint64_t number) : number_(number), check_(~number) {}
  Poisoned(Poisoned&& other) noexcept : number_(other.number_), check_(other.check_) {}
  Poisoned& operator=(Poisoned&&) = delete;
  ~Poisoned() {
    // Volatile, or the compiler leaves out stores to what is about to be freed.
    static_cast<volatile std::uint64_t&>(number_) = 0xdead;
    static_cast<volatile std::uint64_t&>(check_) = 0xdead;
  }
  [[nodiscard]] bool alive() const { return number_ == ~check_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }

 private:
  std::uint64_t number_;
  std::uint64_t check_;
};

TEST(Epochs, ReadersNeverSeeFreedMemory) {
  Epochs epochs;
  Published<Poisoned> published(epochs, Poisoned(0));
  std::atomic<bool> stop{false};
  std::atomic<unsigned> wrong{0};
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> readers;
  // One polls, one sleeps now and then, one comes and goes.
  for (int kind = 0; kind < 3; ++kind) {
    readers.emplace_back([&, kind] {
      Epochs::Reader* reader = &epochs.add();
      reader->online();
      ++ready;
      std::uint64_t last = 0;
      for (unsigned i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        const Poisoned& value = published.read();
        for (int use = 0; use < 5; ++use) {
          const bool good = value.alive() && value.number() >= last;
          wrong += good ? 0 : 1;
          SpinLock::pause();
        }
        last = value.number();
        if (kind == 0 || i % 16 != 0) {
          reader->quiescent();
        } else if (kind == 1) {
          reader->offline();
          std::this_thread::yield();
          reader->online();
        } else {
          epochs.remove(*reader);
          reader = &epochs.add();
          reader->online();
        }
      }
      epochs.remove(*reader);
    });
  }
  while (ready < 3) {
    std::this_thread::yield();
  }
  std::thread other_writer([&] {
    for (int i = 0; i < 300; ++i) {
      epochs.barrier();
      epochs.reclaim();
    }
  });
  for (std::uint64_t number = 1; number <= 5'000; ++number) {
    published.publish(Poisoned(number));
    if (number % 64 == 0) {
      std::this_thread::yield();
    }
  }
  other_writer.join();
  stop = true;
  for (std::thread& reader : readers) {
    reader.join();
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(epochs.reclaim(), 0U);
}

// Its time is for bench/update_bench; here it only has to come back, again and again.
TEST(Epochs, BarriersFollowOneAnotherWithAPollingReader) {
  if (std::thread::hardware_concurrency() < 2) {
    GTEST_SKIP() << "reader and writer need a core each";
  }
  Epochs epochs;
  Epochs::Reader& reader = epochs.add();
  std::atomic<bool> stop{false};
  std::atomic<bool> polling{false};
  std::thread thread([&] {
    reader.online();
    polling = true;
    while (!stop.load(std::memory_order_relaxed)) {
      reader.quiescent();
      SpinLock::pause();
    }
    reader.offline();
  });
  while (!polling) {
    std::this_thread::yield();
  }
  for (int i = 0; i < 1'001; ++i) {
    epochs.barrier();
  }
  stop = true;
  thread.join();
  epochs.remove(reader);
}

}  // namespace
}  // namespace weir
