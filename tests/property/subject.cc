#include <algorithm>

#include "subject.h"

#include <weir/packet/edit.h>
#include <weir/packet/segment.h>

namespace weir::property {

namespace {

// Stage 2 is a packet stage, and 7 one of delivery; the others run programs.
constexpr unsigned packet_stage = 2;
constexpr unsigned delivery_packet_stage = 7;

}  // namespace

std::string Observed::difference(const Observed& other) const {
  std::string text;
  for (std::size_t port = 0; port < out.size(); ++port) {
    const std::size_t most = std::max(out[port].size(), other.out[port].size());
    for (std::size_t i = 0; i < most; ++i) {
      const std::string a = i < out[port].size() ? hex(out[port][i]) : "nothing";
      const std::string b = i < other.out[port].size() ? hex(other.out[port][i]) : "nothing";
      if (a != b) {
        text += fmt::format("  port {} packet {}:\n    {}\n    {}\n", port, i, a, b);
      }
    }
  }
  std::map<std::string, std::uint64_t> names = drops;
  names.insert(other.drops.begin(), other.drops.end());
  for (const auto& [name, unused] : names) {
    const auto a = drops.contains(name) ? drops.at(name) : 0;
    const auto b = other.drops.contains(name) ? other.drops.at(name) : 0;
    if (a != b) {
      text += fmt::format("  drops {}: {} and {}\n", name, a, b);
    }
  }
  for (std::size_t i = 0; i < counters.size(); ++i) {
    if (counters[i] != other.counters[i]) {
      text += fmt::format("  counter {}: {} and {}\n", i, counters[i], other.counters[i]);
    }
  }
  if (consumed != other.consumed || waiting != other.waiting) {
    text += fmt::format("  consumed {} and {}, waiting {} and {}\n", consumed, other.consumed, waiting, other.waiting);
  }
  if (cloned != other.cloned || originated != other.originated) {
    text +=
        fmt::format("  cloned {} and {}, originated {} and {}\n", cloned, other.cloned, originated, other.originated);
  }
  return text;
}

Subject::Subject(const SubjectOptions& options, std::vector<Program> programs)
    : state_(std::make_unique<State>(epochs_, options.seed)),
      world_(*state_),
      programs_(std::move(programs)),
      reader_(epochs_.add()),
      out_(ports) {
  for (unsigned i = 0; i < World::stages; ++i) {
    Pipeline::Node node{fmt::format("s{}", i), nullptr, nullptr, {}};
    if (i == packet_stage) {
      node.packet = &scrambler_;
      node.outputs = {3, 4};
      world_.stage_addresses.push_back(static_cast<const PacketStage*>(&scrambler_));
    } else if (i == delivery_packet_stage) {
      node.packet = &delivery_scrambler_;
      node.outputs = {8, 8};
      world_.stage_addresses.push_back(static_cast<const PacketStage*>(&delivery_scrambler_));
    } else {
      program_stages_.push_back(std::make_unique<ProgramStage>(world_, programs_[i]));
      node.flow = program_stages_.back().get();
      const bool last = i + 1 == World::first_delivery || i + 1 == World::stages;
      node.outputs = {last ? Pipeline::nowhere : static_cast<std::uint8_t>(i + 1)};
      world_.stage_addresses.push_back(static_cast<const FlowStage*>(program_stages_.back().get()));
    }
    world_.stage_is_flow.push_back(node.packet == nullptr);
    pipeline_.stages.push_back(std::move(node));
  }
  pipeline_.entry = {0, 0, 1, 2};
  pipeline_.delivers = true;
  for (unsigned i = 0; i < ports; ++i) {
    port_table_.ports[i].up = i != 3;
    port_table_.ports[i].mac = {{2, 0, 0, 0, 7, static_cast<std::uint8_t>(i)}};
    for (const char* text : {"10.0.0.254/23", "2001:db8::fe/64"}) {
      const auto parsed = *IpPrefix::parse_interface(text);
      port_table_.ports[i].addresses.push_back({parsed.first, parsed.second});
    }
  }
  port_table_.ports[1].addresses.clear();
  port_table_.count = ports;
  std::vector<PathWish> paths;
  for (std::uint16_t port = 0; port < 3; ++port) {
    for (const char* address : {"10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1", "2001:db8::2"}) {
      paths.push_back({{PortId{port}, *IpAddress::parse(address)}});
    }
  }
  state_->paths().want("programs", std::move(paths));
  pool_ = std::move(*FramePool::create(2048));
  for (unsigned i = 0; i < options.workers; ++i) {
    auto worker = std::make_unique<Worker>(*pool_);
    worker->outputs.on_relief([this, raw = worker.get()] { take_outputs(*raw); });
    const ExecutorContext context{*state_, pipeline_, port_table_, worker->frames, worker->outputs, worker->stats, i};
    if (options.kind == Kind::reference) {
      worker->executor = std::make_unique<ReferenceExecutor>(context);
    } else {
      const std::uint32_t cache = options.kind == Kind::cached ? options.rule_cache : 0;
      auto core = std::make_unique<CoreExecutor>(context, CoreOptions{cache, options.masks});
      core->cache().set_idle_timeout(options.idle_timeout);
      worker->core = core.get();
      worker->executor = std::move(core);
    }
    workers_.push_back(std::move(worker));
  }
  reader_.online();
}

Subject::~Subject() {
  reader_.offline();
  workers_.clear();
  epochs_.remove(reader_);
}

void Subject::process(unsigned worker_number, PortId port, const std::vector<Frame>& frames, Nanoseconds now) {
  Worker& worker = *workers_[worker_number % workers_.size()];
  reader_.quiescent();
  state_->expire(now);
  std::vector<Packet*> packets;
  for (const Frame& frame : frames) {
    Packet* packet = worker.frames.allocate(frame.bytes);
    packet->timestamp = now;
    if (frame.partial_checksum) {
      Key key;
      parse(*packet, key);
      const L4 l4 = packet->layout.l4();
      if (l4 == L4::tcp || l4 == L4::udp) {
        packet->offload.flags = Offload::needs_checksum;
        packet->offload.checksum_start = packet->l4;
        packet->offload.checksum_offset = l4 == L4::tcp ? 16 : 6;
        if (frame.segment != 0) {
          packet->offload.gso_size = frame.segment;
          packet->offload.gso_type = l4 == L4::udp ? gso::udp : packet->layout.l3() == L3::ipv4 ? gso::tcp4 : gso::tcp6;
        }
      }
      packet->layout = {};
    }
    packets.push_back(packet);
  }
  in_count_ += packets.size();
  DecisionBudget unlimited;
  worker.executor->process(port, packets, now, unlimited);
  take_outputs(worker);
}

void Subject::idle(unsigned worker_number, Nanoseconds now) {
  Worker& worker = *workers_[worker_number % workers_.size()];
  reader_.quiescent();
  worker.executor->idle(now);
  take_outputs(worker);
}

void Subject::finish(Nanoseconds now) {
  for (const auto& worker : workers_) {
    worker->executor->finish(now);
    take_outputs(*worker);
  }
}

void Subject::take_outputs(Worker& worker) {
  worker.outputs.flush([&](PortId out, std::span<Packet*> sent) {
    out_count_ += sent.size();
    for (Packet* packet : sent) {
      // What cannot be cut is compared as it is.
      std::vector<Packet*> frames;
      if (packet->offload.gso_size == 0 || segment(worker.frames, *packet, frames) != Segmented::done) {
        frames.push_back(packet);
      }
      for (Packet* frame : frames) {
        edit::finish_checksum(*frame);
        std::vector<std::uint8_t> bytes;
        for (const Packet* part = frame; part != nullptr; part = part->next) {
          bytes.insert(bytes.end(), part->data, part->data + part->segment);
        }
        out_[out.number].push_back(std::move(bytes));
        worker.frames.free(frame);
      }
    }
  });
}

void Subject::apply(Update& update, Nanoseconds now) {
  // As a control thread would find it: no worker in the middle of a batch.
  reader_.offline();
  (void)update.commit(*state_, now);
  reader_.online();
}

void Subject::process_during(unsigned worker, PortId port, const std::vector<Frame>& frames, Update& update,
                             Nanoseconds now) {
  world_.when_decided = [&] { (void)update.commit(*state_, now); };
  process(worker, port, frames, now);
  // No decision was made, or not one that ended in a verdict.
  if (const auto late = std::exchange(world_.when_decided, nullptr)) {
    apply(update, now);
  }
}

Observed Subject::observe() {
  Observed observed;
  observed.out = std::exchange(out_, std::vector<std::vector<std::vector<std::uint8_t>>>(ports));
  for (const auto& worker : workers_) {
    for (unsigned i = 0; i < state_->reasons(); ++i) {
      if (const std::uint64_t n = worker->stats.drops[i].get(); n != 0) {
        observed.drops[std::string(state_->reason(static_cast<ReasonId>(i)).name)] += n;
      }
    }
    observed.cloned += worker->stats.cloned.get();
    observed.originated += worker->stats.originated.get();
    observed.consumed += worker->stats.consumed.get();
    observed.waiting += worker->stats.waiting.get();
  }
  for (const Counter* counter : world_.counters) {
    observed.counters.push_back(counter->packets());
    observed.counters.push_back(counter->bytes());
  }
  return observed;
}

bool Subject::accounted() const {
  std::uint64_t in = in_count_;
  std::uint64_t out = out_count_;
  for (const auto& worker : workers_) {
    in += worker->stats.cloned.get() + worker->stats.originated.get();
    out += worker->stats.kept.get() + worker->stats.waiting.get() + worker->stats.consumed.get();
    for (const OwnedCounter& drops : worker->stats.drops) {
      out += drops.get();
    }
  }
  return in == out;
}

std::vector<std::pair<PairKey, std::uint32_t>> Subject::table_contents() const {
  std::vector<std::pair<PairKey, std::uint32_t>> contents;
  for (const auto* table : world_.tables) {
    std::vector<std::pair<PairKey, std::uint32_t>> one;
    table->for_each([&](const PairKey& key, std::uint32_t value) { one.emplace_back(key, value); });
    std::ranges::sort(one);
    contents.insert(contents.end(), one.begin(), one.end());
  }
  return contents;
}

std::vector<std::pair<NeighbourKey, MacAddress>> Subject::neighbours() const {
  std::vector<std::pair<NeighbourKey, MacAddress>> contents;
  state_->neighbours().table().for_each(
      [&](const NeighbourKey& key, const MacAddress& mac) { contents.emplace_back(key, mac); });
  std::ranges::sort(contents);
  return contents;
}

std::uint64_t Subject::hits() const {
  std::uint64_t hits = 0;
  for (const auto& worker : workers_) {
    hits += worker->stats.exact_hits.get() + worker->stats.masked_hits.get() + worker->stats.port_hits.get();
  }
  return hits;
}

std::size_t Subject::masks() const {
  std::size_t masks = 0;
  for (const auto& worker : workers_) {
    masks = std::max(masks, worker->core != nullptr ? worker->core->cache().masks() : 0);
  }
  return masks;
}

}  // namespace weir::property
