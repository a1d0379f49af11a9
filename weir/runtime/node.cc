#include <weir/runtime/node.h>

#include <algorithm>
#include <thread>

#include <sched.h>

namespace weir {

Node::Node(NodeOptions options)
    : options_(std::move(options)), state_(std::make_unique<State>(epochs_, options_.seed)) {
  state_->limit_connections(options_.connections, options_.connection_timeouts);
  ports_.reserve(max_ports);  // workers look into it while ports are added
}

Node::~Node() {
  for (const auto& worker : workers_) {
    worker->stop();
  }
  for (const auto& worker : workers_) {
    worker->join();
  }
  workers_.clear();
  ports_.clear();  // devices may still hold frames of the pool
}

Result<std::unique_ptr<Node>> Node::create(NodeOptions options) {
  if (options.workers < 1 || options.workers > max_workers) {
    return error("a node cannot have {} workers; give 1 to {}", options.workers, max_workers);
  }
  if (options.batch < 1 || options.batch > Executor::batch_limit) {
    return error("a batch cannot have {} packets; give 1 to {}", options.batch, Executor::batch_limit);
  }
  if (options.decision_share.percent < 1 || options.decision_share.percent > 100) {
    return error("a decision budget of {} % is not possible; give 1 to 100", options.decision_share.percent);
  }
  std::unique_ptr<Node> node(new Node(std::move(options)));
  auto pool = FramePool::create(node->options_.frames);
  if (!pool) {
    return std::unexpected(pool.error());
  }
  node->pool_ = std::move(*pool);
  return node;
}

const Clock& Node::clock() const {
  return options_.capture_time ? static_cast<const Clock&>(capture_clock_) : system_clock_;
}

// Runs `call` between two rounds of the worker, and waits for it; on this thread if the worker does not run.
void Node::on_worker(Worker& worker, const std::function<void(Worker&)>& call) {
  struct Shared {
    std::atomic<bool> taken{false};
    std::atomic<bool> done{false};
  };
  const auto shared = std::make_shared<Shared>();
  if (worker.running()) {
    worker.loop().post([shared, &worker, &call] {
      if (!shared->taken.exchange(true)) {
        call(worker);
        shared->done.store(true, std::memory_order_release);
      }
    });
    while (!shared->done.load(std::memory_order_acquire) && worker.running()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  if (!shared->taken.exchange(true)) {
    call(worker);
  } else {
    while (!shared->done.load(std::memory_order_acquire)) {
      std::this_thread::yield();
    }
  }
}

Result<> Node::prepare() {
  if (!workers_.empty()) {
    return {};
  }
  std::vector<std::string> names;
  for_each_port([&](PortId id, const Port& port) {
    names.resize(std::size_t{id.number} + 1);
    names.back() = port.name;
  });
  auto pipeline = graph_.compile(names);
  if (!pipeline) {
    return std::unexpected(pipeline.error());
  }
  pipeline_ = std::move(*pipeline);
  shared_.reset(new WorkerShared{*state_, pipeline_, port_table_, ports_, *pool_, clock(), options_.capture_time,
                                 options_.idle, options_.engine, options_.rule_cache, options_.decision_share,
                                 options_.batch, options_.workers, workers_, endless_});
  for (unsigned i = 0; i < options_.workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(*shared_, i));
  }
  for (const auto& worker : workers_) {
    if (auto prepared = worker->prepare(); !prepared) {
      workers_.clear();
      return prepared;
    }
  }
  return {};
}

Result<> Node::start() {
  if (auto prepared = prepare(); !prepared) {
    return prepared;
  }
  std::vector<int> cpus;
  cpu_set_t allowed;
  if (options_.pin && sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<unsigned>(cpu), &allowed)) {
        cpus.push_back(cpu);
      }
    }
  }
  // More workers than processors: pinning would only make them wait for each other.
  const bool pin = options_.workers <= cpus.size();
  ended_ = 0;
  started_ = SystemClock::read();
  pinned_.assign(cpus.begin(), pin ? cpus.begin() + static_cast<std::ptrdiff_t>(workers_.size()) : cpus.begin());
  for (unsigned i = 0; i < workers_.size(); ++i) {
    workers_[i]->start(pin ? cpus[i] : -1);
  }
  return {};
}

Result<> Node::wait(std::optional<std::chrono::nanoseconds> time) {
  const Nanoseconds limit = time ? SystemClock::read() + nanoseconds(*time) : ~Nanoseconds{0};
  while (!stop_.load(std::memory_order_acquire) && SystemClock::read() < limit &&
         std::ranges::any_of(workers_, [](const auto& worker) { return worker->running(); })) {
    tend();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& worker : workers_) {
    worker->stop();
  }
  for (const auto& worker : workers_) {
    worker->join();
  }
  ended_ = SystemClock::read();
  stop_.store(false, std::memory_order_release);
  Result<> result;
  for_each_port([&](PortId, const Port& port) {
    if (auto flushed = port.device->flush(); !flushed && result) {
      result = std::unexpected(flushed.error().at(fmt::format("port '{}'", port.name)));
    }
  });
  return result;
}

Result<> Node::run(std::optional<std::chrono::nanoseconds> time) {
  if (auto started = start(); !started) {
    return started;
  }
  return wait(time);
}

// Ports whose interface came or went go up or down.
void Node::tend() {
  constexpr Nanoseconds period = 1'000'000;
  const Nanoseconds now = SystemClock::read();
  if (now - tended_ < period) {
    return;
  }
  tended_ = now;
  {
    const std::lock_guard tend_guard(tend_mutex_);  // no device goes meanwhile
    for (std::size_t i = 0;; ++i) {
      Port* port = nullptr;
      {
        const std::lock_guard guard(ports_mutex_);
        if (i >= ports_.size()) {
          break;
        }
        port = ports_[i].get();
      }
      if (port == nullptr) {
        continue;
      }
      const bool up = port->device->tend();
      const std::lock_guard guard(ports_mutex_);
      if (up != port->device_up) {
        port->device_up = up;
        show_state(PortId{static_cast<std::uint16_t>(i)});
      }
    }
  }
  for (const auto& call : tending_) {
    call();
  }
}

std::size_t Node::poll_once() {
  tend();
  std::size_t handled = 0;
  for (const auto& worker : workers_) {
    handled += worker->poll_once();
  }
  return handled;
}

Result<UpdateReport> Node::update(const std::function<void(Update&)>& change) {
  Update update;
  change(update);
  auto report = update.commit(*state_, clock().now());
  if (report) {
    const Nanoseconds before = SystemClock::read();
    epochs_.barrier();
    report->barrier = SystemClock::read() - before;
  }
  return report;
}

void Node::keep_off_workers() const {
  cpu_set_t others;
  if (pinned_.empty() || sched_getaffinity(0, sizeof others, &others) != 0) {
    return;
  }
  for (const int cpu : pinned_) {
    CPU_CLR(static_cast<unsigned>(cpu), &others);
  }
  if (CPU_COUNT(&others) != 0) {
    sched_setaffinity(0, sizeof others, &others);
  }
}

Summary Node::summary() const {
  Summary summary;
  {
    const std::lock_guard guard(ports_mutex_);
    for (const auto& port : ports_) {
      if (port != nullptr) {
        summary.ports.push_back(port->line());
      }
    }
    summary.removed_ports = removed_ports_;
  }
  for (const Pipeline::Node& stage : pipeline_.stages) {
    summary.stages.push_back({stage.name, stage.packet != nullptr, 0, 0, 0});
  }
  std::vector<std::uint64_t> drops(max_reasons);
  {
    const EpochScope scope(const_cast<Epochs&>(epochs_));
    for (const auto& worker : workers_) {
      const WorkerStats& stats = worker->stats();
      for (std::size_t i = 0; i < drops.size(); ++i) {
        drops[i] += stats.drops[i].get();
      }
      const auto hits =
          worker->core() != nullptr ? worker->core()->cache().stage_hits() : std::array<std::uint64_t, 64>{};
      for (std::size_t i = 0; i < summary.stages.size(); ++i) {
        Summary::StageLine& line = summary.stages[i];
        line.decisions += stats.stages[i].decisions.get();
        line.decision_ns += stats.stages[i].decision_ns.get();
        line.hits += line.packet_stage ? stats.stages[i].processed.get() : hits[std::min<std::size_t>(i, 63)];
      }
      summary.exact_hits += stats.exact_hits.get();
      summary.masked_hits += stats.masked_hits.get();
      summary.port_hits += stats.port_hits.get();
      summary.misses += stats.misses.get();
      summary.probes += stats.probes.get();
      summary.installed += stats.installed.get();
      summary.not_installed += stats.not_installed.get();
      summary.widened += stats.widened.get();
      summary.evicted += stats.evicted.get();
      summary.aged += stats.aged.get();
      summary.revoked += stats.revoked.get();
      summary.hints_evicted += stats.hints_evicted.get();
      summary.cloned += stats.cloned.get();
      summary.originated += stats.originated.get();
      summary.consumed += stats.consumed.get();
      summary.held += worker->held();
      summary.workers.push_back({worker->cpu_time(), worker->wall_time()});
      if (worker->core() != nullptr) {
        summary.rules += worker->core()->cache().size();
        summary.masks = std::max<std::uint64_t>(summary.masks, worker->core()->cache().masks());
      }
    }
  }
  for (unsigned i = 0; i < state_->reasons(); ++i) {
    if (drops[i] != 0) {
      const DropReason reason = state_->reason(static_cast<ReasonId>(i));
      summary.drops.push_back({std::string(reason.name), std::string(reason.help), drops[i]});
    }
  }
  std::ranges::sort(summary.drops, std::greater{}, &Summary::DropLine::packets);
  state_->for_each_counter([&](const Counter& counter) {
    summary.counters.push_back({counter.name(), counter.packets(), counter.bytes()});
  });
  state_->for_each_table([&](const TableBase& table) {
    summary.tables.push_back({table.name(), table.size(), table.capacity(), table.rejected()});
  });
  summary.wall_ns = uptime();
  return summary;
}

Nanoseconds Node::uptime() const {
  const Nanoseconds started = started_.load();
  const Nanoseconds ended = ended_.load();
  return started == 0 ? 0 : (ended != 0 ? ended : SystemClock::read()) - started;
}

}  // namespace weir
