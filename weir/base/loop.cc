#include <weir/base/loop.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace weir {

namespace {

/// What epoll gives back: the descriptor, and which of our requests for it this answers. Generation 0 is the loop's
/// own.
std::uint64_t tag(int fd, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32U) | static_cast<std::uint32_t>(fd);
}

std::string reason(int number) { return std::generic_category().message(number); }

int milliseconds(std::chrono::nanoseconds timeout) {
  if (timeout == Loop::forever) {
    return -1;
  }
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return static_cast<int>(std::clamp<decltype(+rounded)>(rounded, 0, INT_MAX));
}

void drain(const Descriptor& descriptor) {
  std::uint64_t count = 0;
  while (::read(descriptor.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::create(const Clock& clock) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  Descriptor event(epoll ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1);
  Descriptor timer(event ? ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK) : -1);
  if (!timer) {
    return error("cannot create an event loop: {}; raise the limit of open files (ulimit -n)", reason(errno));
  }
  for (const Descriptor* own : {&event, &timer}) {
    epoll_event interest{.events = EPOLLIN, .data = {.u64 = tag(own->get(), 0)}};
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, own->get(), &interest) != 0) {
      return error("cannot create an event loop: {}", reason(errno));
    }
  }
  return std::unique_ptr<Loop>(new Loop(clock, std::move(epoll), std::move(event), std::move(timer)));
}

Loop::Loop(const Clock& clock, Descriptor epoll, Descriptor event, Descriptor timer)
    : clock_(clock),
      epoll_(std::move(epoll)),
      event_(std::move(event)),
      timer_(std::move(timer)),
      wheel_(clock.now()) {}

Loop::~Loop() {
  assert(!in_turn_ && "a loop is not destroyed by what it runs");
  // What is destroyed here may still call us: cancel another task, post, even spawn.
  for (;;) {
    while (task_detail::Root* root = started_.empty() ? ready_.front() : started_.front()) {
      root->destroy();
    }
    std::vector<Function> posted;
    {
      const std::lock_guard guard(mutex_);
      posted.swap(posted_);
    }
    if (posted.empty()) {
      return;
    }
  }
}

void Loop::spawn(Task<> task) {
  ready_.push_back(task_detail::Root::create(*this, std::move(task)));
  wake();
}

SpawnedTask Loop::spawn_scoped(Task<> task) {
  task_detail::Root& root = task_detail::Root::create(*this, std::move(task));
  SpawnedTask owner(root);
  ready_.push_back(root);
  wake();
  return owner;
}

Timer Loop::after(std::chrono::nanoseconds duration, Function call) {
  Timer timer(std::move(call));
  start_timer(*timer.callback_, duration);
  return timer;
}

void Loop::start_timer(WheelTimer& timer, std::chrono::nanoseconds duration) {
  const Nanoseconds now = clock_.now();
  const Nanoseconds wait = nanoseconds(std::max(duration, std::chrono::nanoseconds::zero()));
  wheel_.start(timer, now + std::min(wait, TimerWheel::never - now));
  if (!in_turn_) {
    settle();
  }
}

void Loop::post(Function call) {
  {
    const std::lock_guard guard(mutex_);
    posted_.push_back(std::move(call));
  }
  if (!signalled_.exchange(true, std::memory_order_acq_rel)) {
    ::eventfd_write(event_.get(), 1);
  }
}

void Loop::run() {
  while (!stop_.load(std::memory_order_acquire)) {
    turn(forever);
  }
  stop_.store(false, std::memory_order_relaxed);
  settle();
}

void Loop::stop() {
  const int saved = errno;  // a signal handler must leave it
  stop_.store(true, std::memory_order_release);
  if (!signalled_.exchange(true, std::memory_order_acq_rel)) {
    ::eventfd_write(event_.get(), 1);
  }
  errno = saved;
}

std::size_t Loop::poll_once(std::chrono::nanoseconds timeout) {
  const std::size_t done = turn(timeout);
  settle();
  return done;
}

/// Before somebody else waits for our descriptor: makes it readable now, or at the next timer's time.
void Loop::settle() {
  if (has_work()) {
    wake();
  } else {
    arm_timer();
  }
}

/// In a turn nothing waits, and after it `settle` or the next turn looks, so the system call is saved.
void Loop::wake() {
  if (!in_turn_ && !signalled_.exchange(true, std::memory_order_acq_rel)) {
    ::eventfd_write(event_.get(), 1);
  }
}

bool Loop::has_work() const {
  return !ready_.empty() || !failed_.empty() || (wheel_.size() != 0 && wheel_.next() <= clock_.now());
}

void Loop::arm_timer() {
  const Nanoseconds next = wheel_.next();
  // An earlier setting stays: it costs one idle turn, where following every cancelled timer would cost a call each.
  if (next >= armed_for_ || !clock_.runs()) {
    return;
  }
  const Nanoseconds now = clock_.now();
  constexpr Nanoseconds longest = 86'400'000'000'000;
  const Nanoseconds wait = next <= now ? 1 : std::min(next - now, longest);
  const itimerspec setting{.it_interval = {},
                           .it_value = {.tv_sec = static_cast<time_t>(wait / 1'000'000'000),
                                        .tv_nsec = static_cast<long>(wait % 1'000'000'000)}};
  ::timerfd_settime(timer_.get(), 0, &setting, nullptr);
  armed_for_ = next;
}

std::size_t Loop::turn(std::chrono::nanoseconds timeout) noexcept {
  assert(!in_turn_ && "what runs on a loop must not poll it");
  const int wait = has_work() ? 0 : milliseconds(timeout);
  if (wait != 0) {
    arm_timer();
  }
  in_turn_ = true;
  std::array<epoll_event, 64> events;
  // EINTR: the caller looks at what the signal changed, and calls again.
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait);
  std::size_t done = 0;
  for (int i = 0; i < count; ++i) {
    const int fd = static_cast<int>(static_cast<std::uint32_t>(events[i].data.u64));
    const auto generation = static_cast<std::uint32_t>(events[i].data.u64 >> 32U);
    if (generation != 0) {
      done += dispatch(fd, generation, events[i].events);
    } else if (fd == timer_.get()) {
      drain(timer_);
      armed_for_ = TimerWheel::never;
    } else {
      // In this order: whoever posts after the exchange writes again, and what was posted before is seen below.
      drain(event_);
      signalled_.exchange(false, std::memory_order_acq_rel);
      done += run_posted();
    }
  }
  done += wheel_.advance(clock_.now());
  done += run_ready();
  in_turn_ = false;
  return done;
}

std::size_t Loop::run_posted() {
  std::vector<Function> posted;
  {
    const std::lock_guard guard(mutex_);
    posted.swap(posted_);
  }
  for (Function& call : posted) {
    call();
    call = nullptr;  // what it holds goes before the next runs
  }
  return posted.size();
}

std::size_t Loop::run_ready() {
  std::size_t done = 0;
  List<Readiness> failed;
  failed.take(failed_);
  while (Readiness* readiness = failed.pop_front()) {
    ++done;
    resume(*readiness->root_, readiness->task_);
  }
  List<task_detail::Root> ready;
  ready.take(ready_);
  while (task_detail::Root* root = ready.pop_front()) {
    ++done;
    started_.push_back(*root);
    resume(*root, root->handle());
  }
  return done;
}

void Loop::resume(task_detail::Root& root, std::coroutine_handle<> at) {
  assert(current_ == nullptr);
  current_ = &root;
  at.resume();
  current_ = nullptr;
  if (root.over()) {
    root.destroy();
  }
}

void Loop::cancel(task_detail::Root& root) {
  if (&root == current_) {
    root.cancel_later();
  } else {
    root.destroy();
  }
}

void SpawnedTask::cancel() {
  if (root_ != nullptr) {
    root_->loop().cancel(*root_);
  }
}

/// Registers `readiness`; false if there is nothing to wait for (it failed, or the file is always ready).
bool Loop::wait(Readiness& readiness) {
  const auto [found, added] = interests_.try_emplace(readiness.fd_);
  Interest& interest = found->second;
  Readiness*& place = readiness.write_ ? interest.writer : interest.reader;
  if (place != nullptr) {
    readiness.result_ = error("descriptor {} is already waited for by another task", readiness.fd_);
    return false;
  }
  place = &readiness;
  if (const int number = arm(readiness.fd_, interest); number != 0) {
    place = nullptr;
    if (added) {
      interests_.erase(found);
    }
    if (number != EPERM) {  // as poll(2) has it, what cannot be polled is ready
      readiness.result_ = error("cannot wait for descriptor {}: {}", readiness.fd_, reason(number));
    }
    return false;
  }
  readiness.waiting_ = true;
  return true;
}

/// Asks the kernel for the next event only: a descriptor nobody waits for must not wake us. Returns errno, or 0.
int Loop::arm(int fd, Interest& interest) {
  const std::uint32_t before = interest.generation;
  if (++generation_ == 0) {
    ++generation_;
  }
  interest.generation = generation_;
  epoll_event wanted{.events = EPOLLONESHOT, .data = {.u64 = tag(fd, generation_)}};
  wanted.events |= interest.reader != nullptr ? EPOLLIN : 0U;
  wanted.events |= interest.writer != nullptr ? EPOLLOUT : 0U;
  if (::epoll_ctl(epoll_.get(), before != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &wanted) == 0) {
    return 0;
  }
  // The descriptor may have been closed and its number used again since.
  if (before != 0 && errno == ENOENT && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0) {
    return 0;
  }
  interest.generation = before;  // what the kernel had registered still holds
  return errno;
}

/// The kernel's registration stays; its event, if it comes, finds nobody.
void Loop::give_up(Readiness& readiness) {
  Interest& interest = interests_.at(readiness.fd_);
  (readiness.write_ ? interest.writer : interest.reader) = nullptr;
}

std::size_t Loop::dispatch(int fd, std::uint32_t generation, std::uint32_t events) {
  constexpr std::uint32_t both = EPOLLERR | EPOLLHUP;
  std::size_t done = 0;
  // Each resumed task may wait again (a new generation, which asks for the other direction too), cancel the other one,
  // or forget the descriptor; so look again each time.
  const auto current = [&]() -> Interest* {
    const auto found = interests_.find(fd);
    return found != interests_.end() && found->second.generation == generation ? &found->second : nullptr;
  };
  if (Interest* interest = current(); interest != nullptr && (events & (EPOLLIN | both)) != 0) {
    done += wake_up(interest->reader) ? 1 : 0;
  }
  if (Interest* interest = current(); interest != nullptr && (events & (EPOLLOUT | both)) != 0) {
    done += wake_up(interest->writer) ? 1 : 0;
  }
  Interest* interest = current();
  if (interest != nullptr && (interest->reader != nullptr || interest->writer != nullptr)) {
    if (const int number = arm(fd, *interest); number != 0) {
      const Error why{fmt::format("cannot wait for descriptor {}: {}", fd, reason(number))};
      fail(interest->reader, why);
      fail(interest->writer, why);
    }
  }
  return done;
}

bool Loop::wake_up(Readiness*& waiter) {
  Readiness* const woken = std::exchange(waiter, nullptr);
  if (woken == nullptr) {
    return false;
  }
  woken->waiting_ = false;
  resume(*woken->root_, woken->task_);
  return true;
}

void Loop::fail(Readiness*& waiter, const Error& why) {
  if (Readiness* const failed = std::exchange(waiter, nullptr)) {
    failed->waiting_ = false;
    failed->result_ = std::unexpected(why);
    failed_.push_back(*failed);
    wake();
  }
}

void Loop::forget(int fd) {
  const auto found = interests_.find(fd);
  if (found == interests_.end()) {
    return;
  }
  const Error why{fmt::format("descriptor {} was closed while a task waited for it", fd)};
  fail(found->second.reader, why);
  fail(found->second.writer, why);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  interests_.erase(found);
}

}  // namespace weir
