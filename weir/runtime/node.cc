#include <weir/runtime/node.h>

#include <algorithm>
#include <thread>

#include <sched.h>

#include <weir/device/device_spec.h>

namespace weir {

namespace {

Summary::PortLine line_of(const Port& port) {
  const DeviceCounters device = port.device->counters();
  return {port.name,
          port.sum(&PortCounters::in_packets),
          port.sum(&PortCounters::in_bytes),
          port.sum(&PortCounters::out_packets),
          port.sum(&PortCounters::out_bytes),
          device.lost,
          device.digest,
          device.bad_input};
}

constexpr std::uint32_t usual_mtu = 1500;  // of Ethernet

// An address that no maker gave out (IEEE 802, clause 8.4), the same each time a node of this name and seed starts.
MacAddress made_up_mac(const std::string& port, const NodeOptions& options) {
  MacAddress mac;
  std::uint64_t bits = hash_value(port, hash_value(options.name, options.seed));
  for (std::uint8_t& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(bits);
    bits >>= 8U;
  }
  constexpr std::uint8_t local = 2;
  constexpr std::uint8_t group = 1;
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] | local) & ~group);
  return mac;
}

}  // namespace

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

std::string_view name_of(PortRole role) {
  switch (role) {
    case PortRole::host:
      return "host";
    case PortRole::uplink:
      return "uplink";
    case PortRole::gateway:
      return "gateway";
  }
  return {};
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

Result<PortId> Node::add_port(std::string name, std::string_view device, PortOptions options) {
  auto made = make_device(device);
  if (!made) {
    return std::unexpected(made.error().at(fmt::format("port '{}'", name)));
  }
  return add_port(std::move(name), std::move(*made), std::move(options));
}

Result<PortId> Node::add_port(std::string name, std::unique_ptr<Device> device, PortOptions options) {
  const auto port = attach_port(std::move(name), std::move(device), std::move(options));
  if (!port) {
    return port;
  }
  if (auto done = update([&](Update& change) { change.flood_to(*port); }); !done) {
    return std::unexpected(done.error());
  }
  if (auto up = set_port_up(*port, true); !up) {
    return std::unexpected(up.error());
  }
  return port;
}

Result<> Node::remove_port(PortId port) {
  if (auto down = set_port_up(port, false); !down) {
    return down;
  }
  if (auto done = update([&](Update& change) { change.forget(port); }); !done) {
    return std::unexpected(done.error());
  }
  detach_port(port);
  return {};
}

Result<PortId> Node::attach_port(std::string name, std::unique_ptr<Device> device, PortOptions options) {
  if (find_port(name)) {
    return error("two ports are named '{}'; rename one", name);
  }
  if (ports_.size() == max_ports && free_numbers_.empty()) {
    return error("port '{}' is one too many; a node has at most {}", name, max_ports);
  }
  if (!workers_.empty() && pipeline_.entry_of(PortId{max_ports - 1}) == Pipeline::nowhere) {
    return error(
        "port '{}' cannot be added while the node runs: its graph does not say where packets of such ports "
        "enter (Graph::connect_ports)",
        name);
  }
  const DeviceContext context{*pool_, clock(), options_.capture_time ? &capture_clock_ : nullptr, options_.workers,
                              options_.seed};
  if (auto opened = device->open(context); !opened) {
    return std::unexpected(opened.error().at(fmt::format("port '{}'", name)));
  }
  auto port = std::make_unique<Port>();
  port->name = std::move(name);
  port->device = std::move(device);
  port->traits = port->device->traits();
  port->wanted_up = false;
  port->device_up = port->device->tend();
  port->counters = std::vector<PortCounters>(options_.workers);
  if (!port->traits.finite) {
    endless_.store(true, std::memory_order_relaxed);
  }
  Port& attached = *port;
  PortId id;
  {
    const std::lock_guard guard(ports_mutex_);
    if (ports_.size() < max_ports) {
      id.number = static_cast<std::uint16_t>(ports_.size());
      ports_.push_back(std::move(port));
    } else {
      id.number = free_numbers_.front();
      free_numbers_.pop_front();
      ports_[id.number] = std::move(port);
    }
    port_table_.ports[id.number].name = attached.name;
    port_table_.count.store(static_cast<std::uint16_t>(ports_.size()), std::memory_order_release);
  }
  set_port_options(id, std::move(options));
  for (const auto& worker : workers_) {
    if (worker->polls(id, attached)) {
      on_worker(*worker, [&](Worker& to) { to.add(id, attached); });
    }
  }
  return id;
}

void Node::detach_port(PortId port) {
  for (const auto& worker : workers_) {
    on_worker(*worker, [port](Worker& from) { from.remove(port); });
  }
  for (const auto& worker : workers_) {
    on_worker(*worker, [](Worker& with) { with.drain(); });
  }
  const std::lock_guard tend_guard(tend_mutex_);
  std::unique_ptr<Port> detached;
  {
    const std::lock_guard guard(ports_mutex_);
    detached = std::move(ports_[port.number]);
    free_numbers_.push_back(port.number);
    const Summary::PortLine line = line_of(*detached);
    removed_ports_.in_packets += line.in_packets;
    removed_ports_.in_bytes += line.in_bytes;
    removed_ports_.out_packets += line.out_packets;
    removed_ports_.out_bytes += line.out_bytes;
    removed_ports_.lost += line.lost;
    removed_ports_.bad_input += line.bad_input;
  }
}

void Node::set_port_options(PortId port, PortOptions options) {
  const std::lock_guard guard(ports_mutex_);
  std::vector<PortAddress> addresses;
  for (const auto& [address, network] : options.addresses) {
    addresses.push_back({address, network});
  }
  PortTable::Port& entry = port_table_.ports[port.number];
  // Workers may be reading what stays as it is.
  if (const auto mac = mac_with(port, options); mac != entry.mac) {
    entry.mac = mac;
  }
  if (const auto mtu = mtu_with(port, options); mtu != entry.mtu) {
    entry.mtu = mtu;
  }
  if (addresses != entry.addresses) {
    entry.addresses = std::move(addresses);
  }
  ports_[port.number]->options = std::move(options);
}

MacAddress Node::mac_with(PortId port, const PortOptions& options) const {
  const Port& on = *ports_[port.number];
  const auto mac = options.mac ? options.mac : on.device->mac();
  return mac.value_or(made_up_mac(on.name, options_));
}

std::uint32_t Node::mtu_with(PortId port, const PortOptions& options) const {
  return options.mtu.value_or(ports_[port.number]->device->mtu().value_or(usual_mtu));
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

void Node::show_state(PortId port) {
  const Port& shown = *ports_[port.number];
  const bool up = shown.wanted_up && shown.device_up;
  port_table_.ports[port.number].up.store(up, std::memory_order_release);
  state_->paths().link(port, up);
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

Result<> Node::set_port_up(PortId port, bool up) {
  {
    const std::lock_guard guard(ports_mutex_);
    if (port.number >= ports_.size() || ports_[port.number] == nullptr) {
      return error("there is no port number {}", port.number);
    }
    Port& changed = *ports_[port.number];
    changed.wanted_up = up;
    show_state(port);
  }
  epochs_.barrier();
  return {};
}

std::size_t Node::port_count() const {
  std::size_t count = 0;
  for_each_port([&](PortId, const Port&) { ++count; });
  return count;
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

std::optional<PortId> Node::find_port(std::string_view name) const {
  std::optional<PortId> found;
  for_each_port([&](PortId id, const Port& port) {
    if (port.name == name) {
      found = id;
    }
  });
  return found;
}

Summary Node::summary() const {
  Summary summary;
  {
    const std::lock_guard guard(ports_mutex_);
    for (const auto& port : ports_) {
      if (port != nullptr) {
        summary.ports.push_back(line_of(*port));
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
