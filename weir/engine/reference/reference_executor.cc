#include <weir/engine/reference/reference_executor.h>

#include <algorithm>
#include <utility>

#include <weir/engine/reference/rewrite.h>
#include <weir/engine/reference/tunnel.h>
#include <weir/engine/reject.h>

namespace weir {

namespace {

// Passes through the graph that a packet may make.
constexpr unsigned pass_limit = 16;

}  // namespace

void ReferenceExecutor::process(PortId ingress, std::span<Packet*> packets, Nanoseconds now, DecisionBudget& budget) {
  const std::uint8_t entry = context_.pipeline.entry_of(ingress);
  Wave wave(packets.begin(), packets.end());
  for (Packet*& packet : wave) {
    packet->ingress = ingress.number;
    packet->stage = entry;
    if (entry == Pipeline::nowhere) {
      drop(drop::unconnected);
      context_.frames.free(std::exchange(packet, nullptr));
    }
  }
  run_passes(wave, now, budget);
  run_handed_back(now, budget);
}

void ReferenceExecutor::idle(Nanoseconds now) {
  DecisionBudget unlimited;
  host_.idle(now);
  packet_stages_.idle(now, [&] { run_handed_back(now, unlimited); });
}

void ReferenceExecutor::finish(Nanoseconds now) {
  DecisionBudget unlimited;
  host_.idle(now);
  packet_stages_.finish(now, [&] { run_handed_back(now, unlimited); });
  host_.finish();
}

void ReferenceExecutor::run_handed_back(Nanoseconds now, DecisionBudget& budget) {
  Wave wave(batch_limit);
  for (;;) {
    std::size_t count = take_deliveries(wave);
    if (count == 0) {
      count = packet_stages_.take_back(wave);
    }
    if (count == 0) {
      count = host_.take_back(wave);
    }
    if (count == 0) {
      return;
    }
    wave.resize(count);
    run_passes(wave, now, budget);
    wave.resize(batch_limit);
  }
}

std::size_t ReferenceExecutor::take_deliveries(Wave& wave) {
  std::size_t count = 0;
  for (; count < wave.size() && !deliveries_.empty(); ++count) {
    wave[count] = deliveries_.front();
    deliveries_.pop_front();
  }
  return count;
}

void ReferenceExecutor::run_passes(Wave& wave, Nanoseconds now, DecisionBudget& budget) {
  const auto done = [&wave] {
    return std::ranges::all_of(wave, [](const Packet* packet) { return packet == nullptr; });
  };
  for (unsigned passes = 0; passes < pass_limit && !done(); ++passes) {
    next_.assign(wave.size(), nullptr);
    pass(wave, now, budget);
    wave.swap(next_);
  }
  for (Packet* packet : wave) {
    if (packet != nullptr) {
      drop(drop::loop_limit);
      context_.frames.free(packet);
    }
  }
}

// Takes each packet as far as its next look-up: first those at flow stages, in order, then those at packet stages,
// stage by stage.
void ReferenceExecutor::pass(Wave& wave, Nanoseconds now, DecisionBudget& budget) {
  const auto& stages = context_.pipeline.stages;
  for (std::size_t place = 0; place < wave.size(); ++place) {
    if (wave[place] != nullptr && stages[wave[place]->stage].packet == nullptr) {
      run_flow_stages(place, std::exchange(wave[place], nullptr), now, budget);
    }
  }
  packet_stages_.run(wave, next_, now);
}

void ReferenceExecutor::run_flow_stages(std::size_t place, Packet* packet, Nanoseconds now, DecisionBudget& budget) {
  if (budget.limited && budget.tokens <= 0) {
    drop(drop::decision_budget);
    context_.frames.free(packet);
    return;
  }
  WorkerStats& stats = context_.stats;
  WorkerStats::Stage& first = stats.stages[packet->stage];
  const Nanoseconds before = SystemClock::read();
  flow_.decide(reference::read(*packet), now);
  const Nanoseconds took = SystemClock::read() - before;
  const bool waits = flow_.verdict().kind == Verdict::Kind::resolve;
  if (!waits) {
    context_.frames.free(packet);  // first: what is written in its place finds a frame
  }
  budget.tokens -= static_cast<std::int64_t>(took);
  first.decision_ns.add(took);
  stats.misses.add();
  for (unsigned stage = 0; stage < 64; ++stage) {
    if ((flow_.stages() >> stage & 1U) != 0) {
      stats.stages[stage].decisions.add();
    }
  }
  if (waits) {
    return host_.resolve(packet, {PortId{static_cast<std::uint16_t>(flow_.verdict().number)}, flow_.verdict().address},
                         now);
  }
  for (const DirectFlow::Effect& effect : flow_.effects()) {
    if (!carry_out(effect, now)) {
      return;
    }
  }
  conclude(flow_.verdict(), place, now);
}

// False if the packet ended with it.
bool ReferenceExecutor::carry_out(const DirectFlow::Effect& effect, Nanoseconds now) {
  if (const auto* counted = std::get_if<DirectFlow::Counted>(&effect)) {
    counted->counter->add(context_.worker, counted->length);
  } else if (const auto* metered = std::get_if<DirectFlow::Metered>(&effect)) {
    if (!metered->meter->conforms(metered->length, now)) {
      drop(drop::metered);
      return false;
    }
  } else if (const auto* mirrored = std::get_if<DirectFlow::Mirrored>(&effect)) {
    copy_to(mirrored->port.number, mirrored->frame);
  } else if (const auto* tracked = std::get_if<DirectFlow::Tracked>(&effect)) {
    if (tracked->track.holds()) {
      tracked->track.use(now);
      if (tracked->track.tcp) {
        tracked->track.entry->tcp.advance(tracked->segment, tracked->track.side);
      }
    }
  } else if (const auto* lost = std::get_if<DirectFlow::Lost>(&effect)) {
    drop(lost->reason);
    return false;
  }
  return true;
}

void ReferenceExecutor::conclude(const Verdict& verdict, std::size_t place, Nanoseconds now) {
  const reference::Frame& frame = flow_.frame();
  switch (verdict.kind) {
    case Verdict::Kind::output:
      return emit(verdict.number, frame);
    case Verdict::Kind::flood:
      return flood(frame, verdict.number);
    case Verdict::Kind::select:
      return select(frame, *verdict.group, flow_.encapsulated());
    case Verdict::Kind::reject:
      return reject(frame, verdict.number, verdict.reason, now);
    case Verdict::Kind::drop:
      return drop(verdict.reason);
    case Verdict::Kind::to_host:
      if (Packet* packet = write(frame); packet != nullptr) {
        host_.take(packet, now);
      }
      return;
    case Verdict::Kind::resolve:
      return;  // it has not been decided yet
    case Verdict::Kind::next:
    case Verdict::Kind::to:
      next_[place] = write(frame);
      if (next_[place] != nullptr) {
        next_[place]->stage = static_cast<std::uint8_t>(verdict.number);
      }
      return;
  }
}

void ReferenceExecutor::flood(const reference::Frame& frame, std::uint32_t number) {
  const FloodDomains& domains = context_.state.flood_domains();
  FloodDomain domain;
  if (number < DomainId::first) {
    domain.ports = domains.ports(static_cast<std::uint16_t>(number));
  } else if (const FloodDomain* found = domains.find(DomainId{number})) {
    domain = *found;
  }
  // What goes out by the port that it came in by is no copy.
  std::erase(domain.ports, PortId{frame.ingress});
  std::erase_if(domain.tagged, [&](const TaggedPort& each) { return each.port.number == frame.ingress; });
  if (frame.tunnel || flow_.encapsulated() || !reference::parse(frame).layout.ethernet()) {
    domain.remotes.clear();
  }
  std::size_t left = domain.ports.size() + domain.tagged.size() + domain.remotes.size();
  if (left == 0) {
    return drop(drop::flood_empty);
  }
  for (const PortId port : domain.ports) {
    flood_copy(left);
    leave(port.number, frame, flow_.encapsulated());
  }
  for (const TaggedPort& tagged : domain.tagged) {
    flood_copy(left);
    send_tagged(frame, tagged);
  }
  for (const Remote& remote : domain.remotes) {
    flood_copy(left);
    send_remote(frame, domain.tunnel, remote);
  }
}

void ReferenceExecutor::flood_copy(std::size_t& left) {
  if (--left == 0) {
    return;
  }
  context_.stats.cloned.add();
  constexpr unsigned between_reliefs = 512;
  if (++copies_ % between_reliefs == 0) {
    context_.outputs.relieve();
  }
}

void ReferenceExecutor::send_tagged(reference::Frame frame, const TaggedPort& to) {
  const reference::Headers headers = reference::parse(frame);
  const bool hidden = headers.type == 0x8100 || headers.type == 0x88a8;
  if (!headers.layout.ethernet() || headers.layout.tags() == 2 || hidden || flow_.encapsulated()) {
    return drop(drop::unrewritable);
  }
  reference::push_vlan(frame, to.control);
  leave(to.port.number, std::move(frame), false);
}

void ReferenceExecutor::send_remote(reference::Frame frame, Vxlan tunnel, const Remote& remote) {
  tunnel.dst = remote.address;
  if (remote.group == nullptr) {
    const auto mac = context_.state.neighbours().find({remote.port, remote.next_hop});
    if (!mac) {
      return drop(drop::neighbour_unreachable);
    }
    tunnel.eth_dst = *mac;
    tunnel.eth_src =
        context_.ports.known(remote.port.number) ? context_.ports.ports[remote.port.number].mac : MacAddress{};
  }
  reference::encapsulate(frame, reference::parse(frame), tunnel, flow_.flow_hash());
  if (remote.group != nullptr) {
    return select(std::move(frame), *remote.group, true);
  }
  emit(remote.port.number, frame);
}

void ReferenceExecutor::select(reference::Frame frame, const Group& group, bool encapsulated) {
  const Member* member = group.members().pick(flow_.flow_hash());
  if (member == nullptr) {
    return drop(drop::no_member);
  }
  if (member->rewrite && reference::parse(frame).layout.ethernet()) {
    std::ranges::copy(member->dst.bytes, frame.bytes.begin());
    std::ranges::copy(member->src.bytes, frame.bytes.begin() + 6);
  }
  leave(member->port.number, std::move(frame), encapsulated);
}

// Packets that a group resolves to pass the delivery side of the port they got; what a stage outputs has passed it.
void ReferenceExecutor::leave(std::uint32_t port, reference::Frame frame, bool encapsulated) {
  const bool delivers = context_.pipeline.delivers && !encapsulated;
  const std::uint8_t stage = delivers ? context_.state.deliveries().stage(port) : Pipeline::nowhere;
  if (stage == Pipeline::nowhere) {
    return emit(port, frame);
  }
  frame.stage = stage;
  frame.egress = static_cast<std::uint16_t>(Key::delivery_bit + port);
  if (Packet* packet = write(frame); packet != nullptr) {
    deliveries_.push_back(packet);
  }
}

void ReferenceExecutor::reject(const reference::Frame& frame, std::uint32_t what, ReasonId reason, Nanoseconds now) {
  if (Packet* packet = write(frame); packet != nullptr) {
    Packet* message =
        make_reject(context_.state, context_.ports, context_.frames, *packet, RejectNumber::unpack(what), now);
    if (message != nullptr) {
      context_.stats.originated.add();
      emit(message->ingress, message);
    }
    drop(reason);
    context_.frames.free(packet);
  }
}

// Null, and the packet dropped, when frames ran out.
Packet* ReferenceExecutor::write(const reference::Frame& frame) {
  Packet* packet = reference::write(frame, context_.frames);
  if (packet == nullptr) {
    drop(drop::no_frames);
  }
  return packet;
}

void ReferenceExecutor::emit(std::uint32_t port, const reference::Frame& frame) {
  if (Packet* packet = write(frame); packet != nullptr) {
    emit(port, packet);
  }
}

void ReferenceExecutor::emit(std::uint32_t port, Packet* packet) {
  if (!context_.ports.known(port)) {
    drop(drop::port_unknown);
    context_.frames.free(packet);
  } else if (!context_.ports.ports[port].up.load(std::memory_order_acquire)) {
    drop(drop::port_down);
    context_.frames.free(packet);
  } else {
    context_.outputs.push(port, packet);
  }
}

void ReferenceExecutor::copy_to(std::uint32_t port, const reference::Frame& frame) {
  context_.stats.cloned.add();
  emit(port, frame);
}

}  // namespace weir
