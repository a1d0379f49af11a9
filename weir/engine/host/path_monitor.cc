#include <weir/engine/host/path_monitor.h>

#include <algorithm>

#include <weir/engine/host/bfd_datagram.h>
#include <weir/engine/host/emit.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>

namespace weir {

namespace {

/// Rounds of the worker before it believes that a neighbour is silent: a worker that had to wait for its processor
/// finds what came meanwhile in its ports, a batch a round, before it finds that it is late.
constexpr unsigned rounds_of_doubt = 64;
/// A session that is no longer wanted says so for so long (RFC 5880, section 6.8.16).
constexpr Nanoseconds farewell = 3 * BfdSession::slow_interval;

IpAddress source_of(const Packet& packet) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  return packet.layout.l3() == L3::ipv6 ? IpAddress(reinterpret_cast<const Ipv6Header*>(l3)->src)
                                        : IpAddress(reinterpret_cast<const Ipv4Header*>(l3)->src);
}

/// What packets to the neighbour come from; nullptr if the node has no address there.
const PortAddress* own_address(const PortTable::Port& port, const IpAddress& neighbour) {
  if (const PortAddress* own = port.on_link(neighbour)) {
    return own;
  }
  const auto same = [&](const PortAddress& own) { return own.address.v6 == neighbour.v6; };
  const auto first = std::ranges::find_if(port.addresses, same);
  return first != port.addresses.end() ? &*first : nullptr;
}

}  // namespace

PathMonitor::PathMonitor(const ExecutorContext& context, Resolver& resolver)
    : context_(context), resolver_(resolver), sessions_(context.state.shared<BfdSessions>()) {}

PathMonitor::~PathMonitor() {
  for (const Own& own : own_) {
    sessions_.remove(*own.entry);
  }
}

std::optional<ReasonId> PathMonitor::hear(Packet& packet, Nanoseconds now) {
  const auto said = read_bfd_datagram(packet);
  if (!said) {
    return said.error();
  }
  const PathKey from{PortId{packet.ingress}, source_of(packet)};
  const auto entry = said->your_discriminator != 0 ? sessions_.find(said->your_discriminator) : sessions_.find(from);
  if (entry == nullptr || entry->key != from) {
    return drop::bfd_no_session;
  }
  {
    const std::lock_guard guard(entry->mutex);
    ++entry->received;
    entry->session.receive(*said, now);
    send_due(*entry, now);
    tell(*entry);
  }
  idle_by_ = now;  // its times are others now
  return std::nullopt;
}

void PathMonitor::idle(Nanoseconds now) {
  if (const std::uint64_t version = context_.state.paths().version(); version != wishes_seen_) {
    wishes_seen_ = version;
    take_over_wishes(now);
    idle_by_ = now;
  }
  if (now < idle_by_ || own_.empty()) {
    return;
  }
  // What another worker heard may have brought something forward.
  idle_by_ = now + shortest_;
  std::erase_if(own_, [&](Own& own) { return !tend(own, now); });
  idle_by_ = own_.empty() ? BfdSession::never : idle_by_;
}

// Does what is due; false if the session is over.
bool PathMonitor::tend(Own& own, Nanoseconds now) {
  BfdSessions::Entry& entry = *own.entry;
  if (own.until != 0 && now >= own.until) {
    end(own);
    return false;
  }
  const std::lock_guard guard(entry.mutex);
  BfdSession& session = entry.session;
  if (!context_.ports.up(entry.key.port.number)) {
    session.path_down(now);
  }
  if (now < session.detection_deadline()) {
    own.doubts = 0;
  } else if (own.doubts < rounds_of_doubt) {
    ++own.doubts;
    idle_by_ = now;
  } else {
    own.doubts = 0;
    session.expire(now);
  }
  send_due(entry, now);
  tell(entry);
  // What cannot be sent for lack of an Ethernet address is tried again.
  const Nanoseconds next = session.next_transmission() > now ? session.next_transmission() : now + shortest_;
  idle_by_ = std::min({idle_by_, next, std::max(now, session.detection_deadline())});
  return true;
}

void PathMonitor::send_due(BfdSessions::Entry& entry, Nanoseconds now) {
  if (now < entry.session.next_transmission() || !find_neighbour(entry, now)) {
    return;
  }
  const PortTable::Port& port = context_.ports.ports[entry.key.port.number];
  const PortAddress* own = own_address(port, entry.key.address);
  while (const auto packet = entry.session.transmit(now)) {
    if (own != nullptr) {
      ++entry.sent;
      const BfdEnds ends{port.mac, *entry.mac, own->address, entry.key.address, entry.src_port};
      originate(context_, make_bfd_datagram(context_.frames, *packet, ends), entry.key.port.number);
    }
  }
}

// Whether a packet can be sent to it. One that was known and is being asked for again keeps its address meanwhile.
bool PathMonitor::find_neighbour(BfdSessions::Entry& entry, Nanoseconds now) {
  if (!context_.ports.up(entry.key.port.number)) {
    return false;
  }
  if (const auto mac = context_.state.neighbours().find(entry.key)) {
    entry.mac = mac;
  } else {
    resolver_.ask_for(entry.key, now);
  }
  return entry.mac.has_value();
}

void PathMonitor::tell(const BfdSessions::Entry& entry) {
  context_.state.paths().session(entry.key, entry.session.verdict());
}

void PathMonitor::end(const Own& own) { sessions_.remove(*own.entry); }

void PathMonitor::take_over_wishes(Nanoseconds now) {
  const auto mine = [this](const PathKey& key) { return key.port.number % context_.workers == context_.worker; };
  std::vector<PathWish> wishes = context_.state.paths().wanted();
  std::erase_if(wishes, [&](const PathWish& wish) { return !wish.bfd || !mine(wish.key); });
  const auto wish_of = [&](const PathKey& key) {
    const auto place = std::ranges::lower_bound(wishes, key, {}, &PathWish::key);
    return place != wishes.end() && place->key == key ? &*place : nullptr;
  };
  std::erase_if(own_, [&](Own& own) {
    const PathWish* wish = wish_of(own.entry->key);
    if (own.until != 0) {
      if (wish != nullptr) {
        end(own);  // a new one begins
      }
      return wish != nullptr;
    }
    const std::lock_guard guard(own.entry->mutex);
    if (wish != nullptr) {
      own.entry->session.configure(*wish->bfd, now);
    } else {
      own.entry->session.shut_down(now);
      own.until = now + farewell;
    }
    return false;
  });
  shortest_ = BfdSession::slow_interval;
  for (const PathWish& wish : wishes) {
    shortest_ = std::min(shortest_, wish.bfd->interval);
    if (std::ranges::none_of(own_, [&](const Own& own) { return own.entry->key == wish.key; })) {
      own_.push_back({sessions_.add(wish.key, *wish.bfd, context_.state.seed(), now)});
    }
  }
}

void PathMonitor::forget(PortId port) {
  std::erase_if(own_, [&](const Own& own) {
    const bool gone = own.entry->key.port == port;
    if (gone) {
      end(own);
    }
    return gone;
  });
}

}  // namespace weir
