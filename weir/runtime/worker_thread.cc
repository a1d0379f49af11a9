// A worker's thread: round after round, and asleep when there is nothing to do.

#include <algorithm>

#include <pthread.h>
#include <time.h>

#include <weir/base/log.h>
#include <weir/runtime/worker.h>

namespace weir {

namespace {

constexpr Nanoseconds longest_sleep = 50'000'000;         // until timers are looked at again
constexpr Nanoseconds longest_blind_sleep = 2'000'000;    // with a device that cannot wake us
constexpr Nanoseconds longest_sleep_with_kept = 100'000;  // while a packet stage or the host waits for something
constexpr unsigned empty_rounds_before_sleep = 2'000;
constexpr unsigned empty_rounds_between_yields = 8;
constexpr unsigned rounds_before_unwatched = 256;  // awake, until devices need not wake us

Nanoseconds thread_cpu_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<Nanoseconds>(t.tv_sec) * 1'000'000'000U + static_cast<Nanoseconds>(t.tv_nsec);
}

}  // namespace

// Waking up is all there is to do: the round polls every source. (g++ 12 compiles no co_await in a loop's condition.)
Task<> Worker::watch(int descriptor) {
  for (;;) {
    const Result<> ready = co_await loop_->readable(descriptor);
    if (!ready) {
      co_return;
    }
  }
}

void Worker::start(int cpu) {
  stop_.store(false, std::memory_order_release);
  running_.store(true, std::memory_order_release);
  thread_ = std::thread([this, cpu] {
    if (cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<unsigned>(cpu), &set);
      if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
        log::warn("worker {} could not be pinned to processor {}; it runs unpinned", number_, cpu);
      }
    }
    pthread_setname_np(pthread_self(), fmt::format("weir-{}", number_).c_str());
    thread_main();
    running_.store(false, std::memory_order_release);
  });
}

void Worker::stop() {
  stop_.store(true, std::memory_order_release);
  if (loop_ != nullptr) {
    loop_->post([] {});
  }
}

void Worker::join() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Worker::account_time() {
  cpu_time_.store(thread_cpu_time(), std::memory_order_relaxed);
  wall_time_.store(SystemClock::read() - started_, std::memory_order_relaxed);
}

void Worker::thread_main() {
  constexpr unsigned rounds_between_polls = 64;
  constexpr Nanoseconds time_between_accounts = 1'000'000;
  started_ = SystemClock::read();
  reader_.online();
  unsigned empty_rounds = 0;
  for (unsigned rounds = 0; !stop_.load(std::memory_order_relaxed); ++rounds) {
    reader_.quiescent();
    if (wakes_wanted_ && ++rounds_awake_ >= rounds_before_unwatched) {
      want_wake_ups(false);
    }
    const bool any = round() != 0;
    empty_rounds = any ? 0 : empty_rounds + 1;
    if (rounds % rounds_between_polls == 0) {
      loop_->poll_once();
      if (SystemClock::read() - started_ >= wall_time() + time_between_accounts) {
        account_time();
      }
    }
    if (!any) {
      note_input();
      if (shared_.idle == Idle::adaptive && empty_rounds % empty_rounds_between_yields == 0) {
        std::this_thread::yield();  // whoever would answer may be waiting for this processor
      }
    }
    if (!any && !shared_.endless.load(std::memory_order_relaxed) && finished()) {
      executor_->finish(shared_.clock.now());
      send();
      break;
    }
    const bool sleepy = shared_.idle == Idle::interrupt || sources_.empty() ||
                        (shared_.idle == Idle::adaptive && empty_rounds > empty_rounds_before_sleep);
    if (!any && sleepy) {
      sleep();
    }
  }
  want_wake_ups(true);
  reader_.offline();
  account_time();
}

void Worker::want_wake_ups(bool wanted) {
  wakes_wanted_ = wanted;
  rounds_awake_ = 0;
  for (const Source& source : sources_) {
    source.port->device->want_wake_ups(source.queue, wanted);
  }
}

void Worker::sleep() {
  const Nanoseconds now = shared_.clock.now();
  const Nanoseconds by = std::max(executor_->idle_by(), now);
  if (by == now) {
    return;
  }
  const Nanoseconds longest = std::min(by - now, stats_.kept.get() + stats_.waiting.get() != 0 ? longest_sleep_with_kept
                                                 : all_descriptors_                            ? longest_sleep
                                                                                               : longest_blind_sleep);
  if (!wakes_wanted_) {
    want_wake_ups(true);
  }
  rounds_awake_ = 0;
  reader_.offline();
  sleeping_.store(true, std::memory_order_seq_cst);
  const bool waiting = std::ranges::any_of(inbound_, [](const auto& ring) { return !ring->empty(); });
  if (!waiting && !stop_.load(std::memory_order_acquire)) {
    loop_->poll_once(std::chrono::nanoseconds(longest));
  }
  sleeping_.store(false, std::memory_order_relaxed);
  reader_.online();
}

}  // namespace weir
