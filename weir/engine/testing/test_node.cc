#include <weir/engine/testing/test_node.h>

#include <algorithm>
#include <stdexcept>

#include <weir/engine/core/core_executor.h>
#include <weir/engine/reference/reference_executor.h>

namespace weir::testing {

namespace {

constexpr std::uint16_t usual_ports = 6;

std::string hex(const Bytes& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{}{:02x}", i % 16 == 0 ? "\n    " : i % 2 == 0 ? " " : "", bytes[i]);
  }
  return text;
}

std::string text_of(const Sent& sent) {
  return fmt::format("{} bytes, tunnel {} vni {}, offload flags {} start {} offset {} gso {} {}{}", sent.bytes.size(),
                     sent.tunnel, sent.vni, sent.offload.flags, sent.offload.checksum_start,
                     sent.offload.checksum_offset, sent.offload.gso_type, sent.offload.gso_size, hex(sent.bytes));
}

// The fields that mean something.
Offload plain(const Offload& offload) {
  Offload result{};
  result.flags = offload.flags;
  result.gso_type = offload.gso_type;
  result.gso_size = offload.gso_size;
  if ((offload.flags & Offload::needs_checksum) != 0) {
    result.checksum_start = offload.checksum_start;
    result.checksum_offset = offload.checksum_offset;
  }
  return result;
}

template <class Map>
std::string map_difference(std::string_view what, const Map& a, const Map& b) {
  for (const auto& [name, value] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second != value) {
      return fmt::format("{} {}: {} and {}\n", what, name, value, other == b.end() ? 0 : other->second);
    }
  }
  return a.size() == b.size() ? "" : fmt::format("{}: more in the second\n", what);
}

}  // namespace

bool Sent::operator==(const Sent& other) const {
  return port == other.port && bytes == other.bytes && tunnel == other.tunnel && vni == other.vni &&
         std::memcmp(&offload, &other.offload, sizeof offload) == 0;
}

std::string difference(const Observed& a, const Observed& b) {
  std::string text;
  for (std::uint16_t port = 0; port < max_ports; ++port) {
    static const std::vector<Sent> nothing;
    const auto of = [port](const Observed& observed) -> const std::vector<Sent>& {
      const auto place = observed.sent.find(port);
      return place == observed.sent.end() ? nothing : place->second;
    };
    const auto& from_a = of(a);
    const auto& from_b = of(b);
    if (from_a == from_b) {
      continue;
    }
    std::size_t i = 0;
    while (i < from_a.size() && i < from_b.size() && from_a[i] == from_b[i]) {
      ++i;
    }
    text +=
        fmt::format("port {}: {} and {} packets; number {} is {}\n  and {}\n", port, from_a.size(), from_b.size(), i,
                    i < from_a.size() ? text_of(from_a[i]) : "none", i < from_b.size() ? text_of(from_b[i]) : "none");
    break;
  }
  text += map_difference("drops", a.drops, b.drops);
  for (std::size_t i = 0; i < std::min(a.counters.size(), b.counters.size()); ++i) {
    if (a.counters[i] != b.counters[i]) {
      text += fmt::format("counter {}: {} packets {} bytes and {} packets {} bytes\n", a.counters[i].first,
                          a.counters[i].second.first, a.counters[i].second.second, b.counters[i].second.first,
                          b.counters[i].second.second);
    }
  }
  for (std::size_t i = 0; i < std::min(a.tables.size(), b.tables.size()); ++i) {
    if (a.tables[i] != b.tables[i]) {
      text += fmt::format("table {}: {} and {} entries\n", a.tables[i].first, a.tables[i].second, b.tables[i].second);
    }
  }
  if (a.cloned != b.cloned || a.originated != b.originated) {
    text += fmt::format("cloned {} and {}, originated {} and {}\n", a.cloned, b.cloned, a.originated, b.originated);
  }
  if (a.consumed != b.consumed || a.waiting != b.waiting) {
    text += fmt::format("consumed {} and {}, waiting {} and {}\n", a.consumed, b.consumed, a.waiting, b.waiting);
  }
  if (text.empty() && !(a == b)) {
    text = "counts of packet stages\n";
  }
  return text;
}

void GraphBuilder::connect(std::uint8_t from, std::uint16_t output, std::uint8_t to) {
  auto& outputs = pipeline_.stages[from].outputs;
  if (outputs.size() <= output) {
    outputs.resize(output + std::size_t{1}, Pipeline::nowhere);
  }
  outputs[output] = to;
}

void GraphBuilder::ports(std::uint16_t count) {
  for (std::uint16_t port = 0; port < count; ++port) {
    ports_.ports[port].up = true;
    const auto last = static_cast<std::uint8_t>(port + 1);
    const IpAddress v4 = Ipv4Address{{192, 0, 2, last}};
    const IpAddress v6 = Ipv6Address{{0x20, 1, 0xd, 0xb8, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
    ports_.ports[port].addresses = {{v4, IpPrefix(v4, 24)}, {v6, IpPrefix(v6, 64)}};
    ports_.ports[port].mac = {{2, 0, 0, 0, 0xff, last}};
  }
  ports_.count = count;
  pipeline_.entry.resize(count, 0);
}

void GraphBuilder::set_up(PortId port, bool up) { ports_.ports[port.number].up = up; }

void GraphBuilder::apply(const std::function<void(Update&)>& change) {
  Update update;
  change(update);
  if (const auto done = update.commit(state, 0); !done) {
    throw std::runtime_error(done.error().message);
  }
}

std::uint8_t GraphBuilder::add(std::shared_ptr<void> owned, const FlowStage* flow, PacketStage* packet) {
  owned_.push_back(std::move(owned));
  const std::size_t number = pipeline_.stages.size();
  pipeline_.stages.push_back({fmt::format("stage {}", number), flow, packet, {}});
  return static_cast<std::uint8_t>(number);
}

std::string_view name_of(EngineKind kind) {
  switch (kind) {
    case EngineKind::cached:
      return "core with rule cache";
    case EngineKind::uncached:
      return "core without rule cache";
    case EngineKind::reference:
      return "reference";
  }
  return "";
}

TestNode::TestNode(EngineKind kind, const Build& build, Options options)
    : state_(epochs_, options.seed),
      ports_(std::make_unique<PortTable>()),
      stats_(std::make_unique<WorkerStats>()),
      graph_(state_, pipeline_, *ports_) {
  auto pool = FramePool::create(options.frames);
  if (!pool) {
    throw std::runtime_error(pool.error().message);
  }
  pool_ = std::move(*pool);
  frames_ = std::make_unique<PacketCache>(*pool_);
  outputs_.on_relief([this] { take_outputs(); });
  graph_.ports(usual_ports);
  {
    const EpochScope scope(epochs_);
    build(graph_);
  }
  const ExecutorContext context{state_, pipeline_, *ports_, *frames_, outputs_, *stats_, 0};
  if (kind == EngineKind::reference) {
    executor_ = std::make_unique<ReferenceExecutor>(context);
  } else {
    executor_ = std::make_unique<CoreExecutor>(
        context, CoreOptions{.rule_cache = kind == EngineKind::cached ? options.rule_cache : 0});
  }
}

TestNode::~TestNode() { close(); }

Packet* TestNode::make(const TestPacket& test) {
  const std::span<const std::uint8_t> bytes(test.bytes);
  Packet* packet = nullptr;
  Packet** link = &packet;
  std::size_t at = 0;
  std::size_t i = 0;
  do {
    const std::size_t rest = bytes.size() - at;
    const std::size_t part = i < test.segments.size() ? std::min<std::size_t>(test.segments[i], rest) : rest;
    Packet* const segment = frames_->allocate(bytes.subspan(at, part));
    if (segment == nullptr) {
      throw std::runtime_error("no frames");
    }
    *link = segment;
    link = &segment->next;
    at += part;
    ++i;
  } while (at < bytes.size());
  packet->length = static_cast<std::uint32_t>(bytes.size());
  packet->offload = test.offload;
  return packet;
}

void TestNode::send(PortId ingress, std::span<const TestPacket> packets, Nanoseconds now) {
  std::vector<Packet*> batch;
  for (const TestPacket& packet : packets) {
    batch.push_back(make(packet));
    batch.back()->timestamp = now;
  }
  received_ += batch.size();
  {
    const EpochScope scope(epochs_);
    executor_->process(ingress, batch, now, budget_);
  }
  take_outputs();
}

void TestNode::take_outputs() {
  outputs_.flush([this](PortId port, std::span<Packet*> out) {
    for (Packet* packet : out) {
      Sent sent{port.number, {}, packet->tunnel != 0, packet->tunnel != 0 ? packet->vni : 0, plain(packet->offload)};
      for (const Packet* segment = packet; segment != nullptr; segment = segment->next) {
        sent.bytes.insert(sent.bytes.end(), segment->data, segment->data + segment->segment);
      }
      if (sent.bytes.size() != packet->length) {
        throw std::logic_error("a packet whose segments do not add up to its length");
      }
      sent_[port.number].push_back(std::move(sent));
      frames_->free(packet);
      ++left_;
    }
  });
}

void TestNode::happen(const std::string& event, Nanoseconds now) {
  Update update;
  graph_.events_.at(event)(update);
  if (const auto done = update.commit(state_, now); !done) {
    throw std::runtime_error(done.error().message);
  }
}

void TestNode::idle(Nanoseconds now) {
  {
    const EpochScope scope(epochs_);
    state_.expire(now);
    executor_->idle(now);
  }
  take_outputs();
}

void TestNode::finish(Nanoseconds now) {
  {
    const EpochScope scope(epochs_);
    executor_->finish(now);
  }
  take_outputs();
}

Observed TestNode::observe() {
  Observed observed;
  observed.sent = std::exchange(sent_, {});
  for (unsigned id = 0; id < state_.reasons(); ++id) {
    const std::uint64_t count = stats_->drops[id].get();
    if (count != 0) {
      observed.drops[std::string(state_.reason(static_cast<ReasonId>(id)).name)] = count;
    }
  }
  state_.for_each_counter([&](const Counter& counter) {
    observed.counters.emplace_back(counter.name(), std::pair(counter.packets(), counter.bytes()));
  });
  state_.for_each_table([&](const TableBase& table) { observed.tables.emplace_back(table.name(), table.size()); });
  for (std::size_t stage = 0; stage < pipeline_.stages.size(); ++stage) {
    observed.processed.push_back(stats_->stages[stage].processed.get());
  }
  observed.cloned = stats_->cloned.get();
  observed.originated = stats_->originated.get();
  observed.consumed = stats_->consumed.get();
  observed.waiting = stats_->waiting.get();
  return observed;
}

std::string TestNode::unaccounted() const {
  std::uint64_t dropped = 0;
  for (const OwnedCounter& count : stats_->drops) {
    dropped += count.get();
  }
  const std::uint64_t in = received_ + stats_->cloned.get() + stats_->originated.get();
  const std::uint64_t consumed = stats_->consumed.get();
  const std::uint64_t kept = stats_->kept.get() + stats_->waiting.get();
  return in == left_ + dropped + consumed + kept
             ? ""
             : fmt::format("{} received + {} cloned + {} originated, but {} sent + {} dropped + {} consumed + {} held",
                           received_, stats_->cloned.get(), stats_->originated.get(), left_, dropped, consumed, kept);
}

std::size_t TestNode::close() {
  executor_.reset();
  frames_.reset();
  return pool_->frames() - pool_->available();
}

Differential::Differential(const Build& build, const TestNode::Options& options) {
  for (const EngineKind kind : {EngineKind::cached, EngineKind::uncached, EngineKind::reference}) {
    nodes_.push_back(std::make_unique<TestNode>(kind, build, options));
  }
}

std::string Differential::send(PortId ingress, std::span<const TestPacket> packets, Nanoseconds now) {
  for (const auto& each : nodes_) {
    each->send(ingress, packets, now);
  }
  return compare();
}

std::string Differential::happen(const std::string& event, Nanoseconds now) {
  for (const auto& each : nodes_) {
    each->happen(event, now);
  }
  return compare();
}

std::string Differential::idle(Nanoseconds now) {
  for (const auto& each : nodes_) {
    each->idle(now);
  }
  return compare();
}

std::string Differential::finish(Nanoseconds now) {
  for (const auto& each : nodes_) {
    each->finish(now);
  }
  return compare();
}

std::string Differential::close() {
  std::string text;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const std::string_view name = name_of(static_cast<EngineKind>(i));
    if (const std::string wrong = nodes_[i]->unaccounted(); !wrong.empty()) {
      text += fmt::format("{}: {}\n", name, wrong);
    }
    if (const std::size_t lost = nodes_[i]->close(); lost != 0) {
      text += fmt::format("{}: {} frames not given back\n", name, lost);
    }
  }
  return text;
}

std::string Differential::compare() {
  observed_ = node(EngineKind::reference).observe();
  for (const EngineKind kind : {EngineKind::uncached, EngineKind::cached}) {
    const std::string text = difference(node(kind).observe(), observed_);
    if (!text.empty()) {
      return fmt::format("{} and reference differ:\n{}", name_of(kind), text);
    }
  }
  const WorkerStats& uncached = node(EngineKind::uncached).stats();
  const WorkerStats& reference = node(EngineKind::reference).stats();
  if (uncached.misses.get() != reference.misses.get()) {
    return fmt::format("decisions: {} and {}\n", uncached.misses.get(), reference.misses.get());
  }
  for (std::size_t stage = 0; stage < reference.stages.size(); ++stage) {
    if (uncached.stages[stage].decisions.get() != reference.stages[stage].decisions.get()) {
      return fmt::format("decisions of stage {}: {} and {}\n", stage, uncached.stages[stage].decisions.get(),
                         reference.stages[stage].decisions.get());
    }
  }
  return {};
}

}  // namespace weir::testing
