#include <weir/engine/host/resolver.h>

#include <algorithm>

#include <weir/engine/host/arp.h>
#include <weir/engine/host/emit.h>
#include <weir/engine/host/neighbour_discovery.h>
#include <weir/engine/reject.h>
#include <weir/packet/pull_up.h>

namespace weir {

namespace {

// As a device fills them: the same number in every engine.
std::size_t frames_of(const Packet& packet) { return 1 + packet.length / FramePool::segment_bytes; }

constexpr MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
/// Neighbours that are kept known: no more than the table holds, but for those that have left it.
constexpr std::size_t kept_known_limit = 2 * Neighbours::capacity;

}  // namespace

Resolver::~Resolver() {
  for (const auto& [key, neighbour] : neighbours_) {
    for (Packet* packet : neighbour.waiting) {
      context_.frames.free(packet);
    }
  }
  for (Packet* packet : back_) {
    context_.frames.free(packet);
  }
}

void Resolver::hold(Packet* packet, const NeighbourKey& key, Nanoseconds now) {
  if (packet->waits == waits_limit) {
    return drop(packet, drop::loop_limit);
  }
  if (!context_.ports.known(key.port.number)) {
    return drop(packet, drop::port_unknown);
  }
  if (!context_.ports.up(key.port.number)) {
    return drop(packet, drop::port_down);
  }
  ++packet->waits;
  // Another worker may have heard the answer since the decision.
  if (context_.state.neighbours().find(key)) {
    back_.push_back(packet);
    return count_waiting(1);
  }
  const std::size_t frames = frames_of(*packet);
  if (frames_ + frames > frames_limit) {
    return drop(packet, drop::waiting_limit);
  }
  Neighbour* neighbour = begin(key, now);
  if (neighbour == nullptr) {
    return drop(packet, drop::resolving_limit);
  }
  if (neighbour->waiting.size() == packets_each) {
    Packet* oldest = neighbour->waiting.front();
    neighbour->waiting.erase(neighbour->waiting.begin());
    frames_ -= frames_of(*oldest);
    count_waiting(-1);
    drop(oldest, drop::neighbour_queue_full);
  }
  neighbour->waiting.push_back(packet);
  frames_ += frames;
  count_waiting(1);
}

// The neighbour, which is being asked for; nullptr if there are too many.
Resolver::Neighbour* Resolver::begin(const NeighbourKey& key, Nanoseconds now) {
  const auto place = neighbours_.find(key);
  if (place != neighbours_.end() && place->second.resolving) {
    return &place->second;
  }
  if (resolving_ == resolving_limit) {
    return nullptr;
  }
  auto& entry = *neighbours_.try_emplace(key).first;
  entry.second.resolving = true;
  entry.second.asked = 0;
  ++resolving_;
  context_.state.neighbours().ask(key);
  tried(entry, now);
  return &entry.second;
}

// Asks once more, and sees to it that there is a next time.
void Resolver::tried(Known::value_type& entry, Nanoseconds now) {
  ++entry.second.asked;
  if (!ask(entry.first, entry.second.resolving)) {
    entry.second.asked = tries;  // there is nobody to ask as
  }
  set_timer(next_try_, entry, now + between_tries);
}

void Resolver::set_timer(std::deque<Timer>& timers, Known::value_type& entry, Nanoseconds at) {
  entry.second.serial = ++last_serial_;
  timers.push_back({at, entry.first, last_serial_});
}

// nullptr if the neighbour has another timer by now, or is no more.
Resolver::Known::value_type* Resolver::entry_of(const Timer& timer) {
  const auto place = neighbours_.find(timer.key);
  return place != neighbours_.end() && place->second.serial == timer.serial ? &*place : nullptr;
}

// False if the port is down, or the node has no address there to ask from.
bool Resolver::ask(const NeighbourKey& key, bool by_all) {
  if (!context_.ports.up(key.port.number)) {
    return false;
  }
  const PortTable::Port& port = context_.ports.ports[key.port.number];
  const PortAddress* own = port.on_link(key.address);
  if (own == nullptr) {
    const auto same = [&](const PortAddress& each) { return each.address.v6 == key.address.v6; };
    const auto first = std::ranges::find_if(port.addresses, same);
    if (first == port.addresses.end()) {
      return false;
    }
    own = &*first;
  }
  const auto known = by_all ? std::nullopt : context_.state.neighbours().find(key);
  Packet* question = nullptr;
  if (key.address.v6) {
    const Ipv6Address target = key.address.to_v6();
    const NeighbourMessage message{.src = own->address.to_v6(),
                                   .dst = known ? target : solicited_node(target),
                                   .target = target,
                                   .link_address = port.mac};
    question = make_neighbour_message(context_.frames, message, port.mac, known.value_or(ethernet_group(message.dst)));
  } else {
    const ArpMessage message{.sender_mac = port.mac,
                             .sender = own->address.to_v4(),
                             .target_mac = known.value_or(MacAddress{}),
                             .target = key.address.to_v4()};
    question = make_arp(context_.frames, message, known.value_or(broadcast));
  }
  originate(context_, question, key.port.number);
  return true;
}

void Resolver::confirmed(const NeighbourKey& key, Nanoseconds now) {
  auto place = neighbours_.find(key);
  if (place == neighbours_.end()) {
    if (neighbours_.size() >= kept_known_limit) {
      return;
    }
    place = neighbours_.try_emplace(key).first;
  }
  if (place->second.resolving) {
    release(*place);
  }
  place->second.asked = 0;
  set_timer(next_refresh_, *place, now + refresh_after);
}

// It is known: what waits for it goes back.
void Resolver::release(Known::value_type& entry) {
  for (Packet* packet : entry.second.waiting) {
    frames_ -= frames_of(*packet);
    back_.push_back(packet);
  }
  entry.second.waiting.clear();
  entry.second.resolving = false;
  --resolving_;
  context_.state.neighbours().settle(entry.first);
}

void Resolver::settle(Known::value_type& entry) {
  release(entry);
  neighbours_.erase(NeighbourKey(entry.first));
}

void Resolver::give_up(const NeighbourKey& key, Nanoseconds now) {
  auto node = neighbours_.extract(key);
  Neighbour& neighbour = node.mapped();
  if (!neighbour.resolving) {
    return;  // its entry goes by itself; who still needs it then asks all
  }
  for (Packet* packet : neighbour.waiting) {
    frames_ -= frames_of(*packet);
    Key parsed;
    pull_up_and_parse(context_.frames, *packet, parsed);
    if (context_.ports.up(packet->ingress)) {
      const bool nameless = context_.ports.ports[packet->ingress].addresses.empty();
      const RejectNumber what{IcmpError::host_unreachable, nameless ? key.port : PortId{}};
      originate(context_, make_reject(context_.state, context_.ports, context_.frames, *packet, what, now),
                packet->ingress);
    }
    drop(packet, drop::neighbour_unreachable);
  }
  count_waiting(-static_cast<std::ptrdiff_t>(neighbour.waiting.size()));
  --resolving_;
  context_.state.neighbours().settle(key);
}

void Resolver::idle(Nanoseconds now) {
  if (resolving_ != 0) {
    look_for_answers();
  }
  while (!next_try_.empty() && next_try_.front().at <= now) {
    const Timer timer = next_try_.front();
    next_try_.pop_front();
    Known::value_type* entry = entry_of(timer);
    if (entry == nullptr) {
      continue;
    }
    if (entry->second.resolving && context_.state.neighbours().find(timer.key)) {
      settle(*entry);  // set by control
    } else if (entry->second.asked == tries) {
      give_up(timer.key, now);
    } else {
      tried(*entry, now);
    }
  }
  while (!next_refresh_.empty() && next_refresh_.front().at <= now) {
    const Timer timer = next_refresh_.front();
    next_refresh_.pop_front();
    if (Known::value_type* entry = entry_of(timer)) {
      if (context_.state.neighbours().find(timer.key)) {
        tried(*entry, now);
      } else {
        neighbours_.erase(timer.key);
      }
    }
  }
  if (now >= look_for_wanted_) {
    look_for_wanted_ = now + between_tries;
    resolve_wanted(now);
  }
}

// Answers that other workers heard: those keep the neighbours known.
void Resolver::look_for_answers() {
  Neighbours& table = context_.state.neighbours();
  const std::uint64_t changes = table.changes();
  if (changes == changes_seen_) {
    return;
  }
  changes_seen_ = changes;
  for (const Timer& timer : next_try_) {
    Known::value_type* entry = entry_of(timer);
    if (entry != nullptr && entry->second.resolving && table.find(timer.key)) {
      settle(*entry);
    }
  }
}

// One worker sees to those that are wanted without packets.
void Resolver::resolve_wanted(Nanoseconds now) {
  if (context_.worker != 0 || !context_.state.has_neighbours()) {
    return;
  }
  Neighbours& table = context_.state.neighbours();
  for (const NeighbourKey& key : *table.wanted()) {
    if (!table.find(key)) {
      begin(key, now);
    }
  }
}

void Resolver::forget(PortId port) {
  const auto drop_those_of = [&](std::vector<Packet*>& packets, bool all) {
    std::erase_if(packets, [&](Packet* packet) {
      const bool gone = all || packet->ingress == port.number;
      if (gone) {
        count_waiting(-1);
        drop(packet, drop::port_down);
      }
      return gone;
    });
  };
  for (auto place = neighbours_.begin(); place != neighbours_.end();) {
    auto& [key, neighbour] = *place;
    const bool gone = key.port == port;
    for (const Packet* packet : neighbour.waiting) {
      frames_ -= gone || packet->ingress == port.number ? frames_of(*packet) : 0;
    }
    drop_those_of(neighbour.waiting, gone);
    if (gone && neighbour.resolving) {
      --resolving_;
      context_.state.neighbours().settle(key);
    }
    place = gone ? neighbours_.erase(place) : std::next(place);
  }
  drop_those_of(back_, false);
}

void Resolver::finish() {
  for (auto& [key, neighbour] : neighbours_) {
    for (Packet* packet : neighbour.waiting) {
      drop(packet, drop::kept_at_end);
    }
    neighbour.waiting.clear();
    if (neighbour.resolving) {
      context_.state.neighbours().settle(key);
    }
  }
  for (Packet* packet : back_) {
    drop(packet, drop::kept_at_end);
  }
  neighbours_.clear();
  next_try_.clear();
  next_refresh_.clear();
  back_.clear();
  resolving_ = 0;
  frames_ = 0;
  context_.stats.waiting.set(0);
}

std::size_t Resolver::take_back(std::span<Packet*> out) {
  const std::size_t count = std::min(out.size(), back_.size());
  if (count != 0) {
    const auto end = back_.begin() + static_cast<std::ptrdiff_t>(count);
    std::copy(back_.begin(), end, out.begin());
    back_.erase(back_.begin(), end);
    count_waiting(-static_cast<std::ptrdiff_t>(count));
  }
  return count;
}

void Resolver::drop(Packet* packet, ReasonId reason) {
  context_.stats.drop(reason);
  context_.frames.free(packet);
}

void Resolver::count_waiting(std::ptrdiff_t more) {
  context_.stats.waiting.set(context_.stats.waiting.get() + static_cast<std::uint64_t>(more));
}

}  // namespace weir
