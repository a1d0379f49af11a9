#include <weir/runtime/worker.h>

#include <algorithm>
#include <array>
#include <cassert>

#include <weir/engine/reference/reference_executor.h>
#include <weir/packet/flow_hash.h>
#include <weir/packet/pull_up.h>

namespace weir {

namespace {

constexpr std::int64_t budget_burst = 100'000;  // ns
constexpr std::int64_t budget_debt = 5'000;     // ns over the budget at which a port is no longer polled
constexpr std::int64_t budget_resume = 10'000;  // ns earned again at which it is: enough for some decisions
constexpr std::size_t pressed_batch = 4;        // packets at once of such a port: others wait meanwhile
constexpr unsigned most_deferred_rounds = 64;   // that such a port waits for others to catch up

}  // namespace

Worker::Worker(WorkerShared& shared, unsigned number)
    : shared_(shared), number_(number), frames_(shared.pool), reader_(shared.state.epochs().add()) {
  outputs_.on_relief([this] { send(); });
  const ExecutorContext context{shared.state, shared.pipeline, shared.port_table,  frames_, outputs_,
                                stats_,       number,          shared.worker_count};
  if (shared.engine == EngineKind::reference) {
    executor_ = std::make_unique<ReferenceExecutor>(context);
  } else {
    auto core = std::make_unique<CoreExecutor>(context, CoreOptions{shared.rule_cache});
    core_ = core.get();
    executor_ = std::move(core);
  }
}

Worker::~Worker() {
  stop();
  join();
  std::array<Packet*, 64> left;
  for (const auto& ring : inbound_) {
    while (const std::size_t n = ring->pop(left)) {
      for (std::size_t i = 0; i < n; ++i) {
        frames_.free(left[i]);
      }
    }
  }
  executor_.reset();
  shared_.state.epochs().remove(reader_);
}

Result<> Worker::prepare() {
  static const SystemClock system_clock;
  auto loop = Loop::create(system_clock);
  if (!loop) {
    return std::unexpected(loop.error());
  }
  loop_ = std::move(*loop);
  const std::size_t workers = shared_.workers.size();
  assert(workers != 0 && "this one is among them");
  for (std::size_t i = 0; i < workers; ++i) {
    inbound_.push_back(std::make_unique<PacketRing>());
  }
  for (std::uint16_t i = 0; i < shared_.ports.size(); ++i) {
    if (shared_.ports[i] != nullptr) {
      add(PortId{i}, *shared_.ports[i]);
    }
  }
  note_input();
  return {};
}

namespace {

/// One queue: its poller is picked by port number, so that ports spread over the workers.
std::size_t poller_of(PortId port, unsigned queue, unsigned queues, std::size_t workers) {
  return queues == 1 ? port.number % workers : queue % workers;
}

}  // namespace

bool Worker::polls(PortId port, const Port& on) const {
  for (unsigned queue = 0; queue < on.traits.queues; ++queue) {
    if (poller_of(port, queue, on.traits.queues, shared_.workers.size()) == number_) {
      return true;
    }
  }
  return false;
}

void Worker::add(PortId port, Port& on) {
  const std::size_t workers = shared_.workers.size();
  const unsigned queues = on.traits.queues;
  for (unsigned queue = 0; queue < queues; ++queue) {
    if (poller_of(port, queue, queues, workers) == number_) {
      const bool spread = workers > 1 && (queues < workers || !on.traits.symmetric);
      Source& source = sources_.emplace_back(Source{&on, port, queue, spread, {}});
      if (const int descriptor = on.device->descriptor(queue); descriptor >= 0) {
        source.wake_up = loop_->spawn_scoped(watch(descriptor));
      } else if (!on.device->finished(queue)) {
        all_descriptors_ = false;
      }
    }
  }
}

void Worker::remove(PortId port) {
  for (Source& source : sources_) {
    if (source.id == port && !source.wake_up.done()) {
      source.wake_up.cancel();
      loop_->forget(source.port->device->descriptor(source.queue));
    }
  }
  std::erase_if(sources_, [&](const Source& source) { return source.id == port; });
  executor_->forget(port);
  busy_sources_ = static_cast<std::size_t>(std::ranges::count_if(sources_, &Source::busy));
  all_descriptors_ = std::ranges::all_of(sources_, [](const Source& source) {
    return !source.wake_up.done() || source.port->device->finished(source.queue);
  });
}

std::size_t Worker::poll_once() {
  reader_.online();
  const std::size_t handled = round();
  reader_.offline();
  loop_->poll_once();
  return handled;
}

// One without ports goes on as long as others have packets: they may be handed over, and ports be added.
bool Worker::finished() const {
  return std::ranges::all_of(shared_.workers,
                             [](const auto& worker) { return worker->input_ended_.load(std::memory_order_acquire); }) &&
         std::ranges::all_of(inbound_, [](const auto& ring) { return ring->empty(); });
}

void Worker::drain() {
  reader_.online();  // a worker that sleeps is not
  std::size_t waiting = 0;
  for (const auto& ring : inbound_) {
    waiting = std::max(waiting, ring->size());
  }
  for (std::size_t handled = 0; handled < waiting; handled += shared_.batch) {
    poll_rings();
  }
  if (!running()) {
    reader_.offline();
  }
}

void Worker::note_input() {
  const bool ended =
      std::ranges::all_of(sources_, [](const Source& source) { return source.port->device->finished(source.queue); });
  input_ended_.store(ended, std::memory_order_release);
}

std::size_t Worker::held() const {
  std::size_t packets = stats_.kept.get() + stats_.waiting.get();
  for (const auto& ring : inbound_) {
    packets += ring->size();
  }
  return packets;
}

// Decision time: each port earns its share as time passes, up to a burst.
void Worker::refill(Nanoseconds now) {
  const auto earned = static_cast<std::int64_t>((now - refilled_) * shared_.decision_share.percent / 100);
  refilled_ = now;
  for (Source& source : sources_) {
    source.budget.tokens = std::min(budget_burst, source.budget.tokens + earned);
  }
  ring_budget_.tokens = std::min(budget_burst, ring_budget_.tokens + earned);
}

std::size_t Worker::round() {
  if (shared_.capture_time) {
    const std::size_t handled = poll_in_time_order() + poll_rings();
    executor_->idle(shared_.clock.now());
    send();
    return handled;
  }
  now_ = shared_.clock.now();
  shared_.state.expire(now_);
  const bool shared_time = sources_.size() > 1 && shared_.decision_share.percent < 100;
  if (shared_time) {
    refill(SystemClock::read());
  }
  std::size_t handled = 0;
  bool backlog = false;
  for (Source& source : sources_) {
    // A port that has used up its decisions waits while others have packets; alone, it may decide all the time. Just
    // over the budget it is polled, and only its misses are dropped.
    const bool others = shared_time && busy_sources_ > (source.busy() ? 1U : 0U);
    source.budget.limited = others && !source.port->traits.waits;
    source.paused = source.budget.tokens < (source.paused ? budget_resume : -budget_debt);
    source.pressed = source.paused || (source.pressed && source.budget.tokens < budget_burst / 2);
    const bool pressed = others && source.pressed;
    if (pressed && (source.paused || (backlog_ && source.deferred_rounds < most_deferred_rounds))) {
      ++source.deferred_rounds;
      continue;
    }
    source.deferred_rounds = 0;
    const std::size_t count = poll(source, pressed ? std::min(shared_.batch, pressed_batch) : shared_.batch);
    note_activity(source, count != 0);
    backlog = backlog || (!pressed && count == shared_.batch);
    handled += count;
  }
  backlog_ = backlog;
  handled += poll_rings();
  executor_->idle(now_);
  send();
  return handled;
}

void Worker::note_activity(Source& source, bool any) {
  const bool before = source.busy();
  source.empty_rounds = any ? 0 : std::min(source.empty_rounds, rounds_until_quiet) + 1;
  busy_sources_ += (source.busy() ? 1U : 0U) - (before ? 1U : 0U);
}

std::size_t Worker::poll(Source& source, std::size_t limit) {
  if (!shared_.port_table.ports[source.id.number].up.load(std::memory_order_relaxed)) [[unlikely]] {
    return 0;
  }
  std::array<Packet*, Executor::batch_limit> packets;
  if (source.hand_over && source.port->traits.waits) {
    limit = std::min(limit, room_to_hand_over());
  }
  const std::size_t count =
      source.port->device->receive(source.queue, std::span<Packet*>(packets.data(), limit), frames_);
  if (count == 0) {
    return 0;
  }
  const std::span<Packet*> batch(packets.data(), count);
  PortCounters& counters = source.port->counters[number_];
  counters.in_packets.add(count);
  counters.in_bytes.add(bytes_of(batch));
  if (source.hand_over) {
    hand_over(source.id, batch, source.budget);
  } else {
    run(source.id, batch, source.budget);
  }
  return count;
}

// Replays captures as they happened: the port whose next packet is the oldest goes first, for as long as it is.
std::size_t Worker::poll_in_time_order() {
  Source* first = nullptr;
  Nanoseconds first_time = ~Nanoseconds{0};
  Nanoseconds second_time = ~Nanoseconds{0};
  for (Source& source : sources_) {
    const Nanoseconds time = source.port->device->next_time(source.queue).value_or(~Nanoseconds{0});
    if (time < first_time) {
      second_time = first_time;
      first_time = time;
      first = &source;
    } else {
      second_time = std::min(second_time, time);
    }
  }
  if (first == nullptr) {
    // None of them knows: they are not captures.
    std::size_t handled = 0;
    for (Source& source : sources_) {
      handled += poll(source, shared_.batch);
    }
    return handled;
  }
  if (second_time == ~Nanoseconds{0}) {
    return poll(*first, shared_.batch);
  }
  return poll(*first, 1);
}

std::size_t Worker::poll_rings() {
  std::size_t handled = 0;
  std::array<Packet*, Executor::batch_limit> packets;
  for (const auto& ring : inbound_) {
    const std::size_t count = ring->pop(std::span<Packet*>(packets.data(), shared_.batch));
    // Runs of one port each.
    for (std::size_t from = 0; from < count;) {
      std::size_t to = from + 1;
      while (to < count && packets[to]->ingress == packets[from]->ingress) {
        ++to;
      }
      run(PortId{packets[from]->ingress}, std::span<Packet*>(packets.data() + from, to - from), ring_budget_);
      from = to;
    }
    handled += count;
  }
  return handled;
}

void Worker::run(PortId port, std::span<Packet*> packets, DecisionBudget& budget) {
  if (shared_.capture_time) {
    now_ = shared_.clock.now();  // moved by the packets just received
    shared_.state.expire(now_);
  }
  executor_->process(port, packets, now_, budget);
  send();
}

std::size_t Worker::room_to_hand_over() const {
  std::size_t room = PacketRing::capacity;
  for (const auto& worker : shared_.workers) {
    room = std::min(room, worker->inbound_[number_]->room());
  }
  return room;
}

void Worker::hand_over(PortId port, std::span<Packet*> packets, DecisionBudget& budget) {
  std::array<Packet*, Executor::batch_limit> own;
  std::size_t own_count = 0;
  std::uint64_t woken = 0;
  for (Packet* packet : packets) {
    packet->ingress = port.number;
    Key key;
    pull_up_and_parse(frames_, *packet, key);
    const std::size_t owner = (flow_hash(key, shared_.state.seed()) >> 16U) % shared_.workers.size();
    if (owner == number_) {
      own[own_count++] = packet;
    } else if (shared_.workers[owner]->inbound_[number_]->push(packet)) {
      woken |= std::uint64_t{1} << owner;
    } else {
      stats_.drop(drop::hand_over_full);
      frames_.free(packet);
    }
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (; woken != 0; woken &= woken - 1) {
    Worker& owner = *shared_.workers[static_cast<std::size_t>(std::countr_zero(woken))];
    if (owner.sleeping_.load(std::memory_order_seq_cst)) {
      owner.loop_->post([] {});
    }
  }
  if (own_count != 0) {
    run(port, std::span<Packet*>(own.data(), own_count), budget);
  }
}

}  // namespace weir
