#include <weir/flow/connections.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include <weir/packet/icmp.h>
#include <weir/packet/icmpv6.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/sctp.h>

namespace weir {

namespace {

bool is_tcp(const ConnectionTuple& tuple) { return tuple.protocol == ip_protocol::tcp; }
bool is_sctp(const ConnectionTuple& tuple) { return tuple.protocol == ip_protocol::sctp; }

/// Whether it has what a connection must have reached before it is kept at the cost of others.
bool settled(const ConnectionEntry& entry) {
  if (is_tcp(entry.original)) {
    const TcpState state = entry.tcp.state();
    return state == TcpState::established || state == TcpState::closing || state == TcpState::last_ack;
  }
  if (is_sctp(entry.original)) {
    return entry.sctp.state() == SctpState::established || entry.sctp.state() == SctpState::closing;
  }
  return entry.replied;
}

}  // namespace

std::string_view name_of(ConnectionState state) {
  constexpr std::string_view names[] = {"new", "established", "related", "invalid"};
  return names[static_cast<std::size_t>(state)];
}

void Connections::set_timeouts(const ConnectionTimeouts& timeouts) {
  const std::lock_guard guard(timeouts_lock_);
  timeouts_ = timeouts;
}

ConnectionTimeouts Connections::timeouts() const {
  const std::lock_guard guard(timeouts_lock_);
  return timeouts_;
}

// ---- Finding ----

// Lock held.
Connections::Hit Connections::find_in(const Stripe& stripe, const ConnectionTuple& tuple) {
  for (const ConnectionLink* link = stripe.first; link != nullptr; link = link->next) {
    ConnectionEntry& entry = *link->entry;
    if (link->reply || !entry.translated) {
      if (entry.reply == tuple) {
        return {&entry, 1};
      }
    }
    if (!link->reply && entry.original == tuple) {
      return {&entry, 0};
    }
  }
  return {nullptr, 0};
}

Connections::Found Connections::find(const ConnectionTuple& tuple, const TransportFacts& facts) const {
  Found found;
  Stripe& stripe = stripe_at(hash_of(tuple));
  const std::lock_guard guard(stripe.dependents.lock());
  found.dependency = {.stripe = &stripe.dependents, .generation = stripe.dependents.generation()};
  const Hit hit = find_in(stripe, tuple);
  if (hit.entry == nullptr) {
    return found;
  }
  ConnectionEntry& entry = *hit.entry;
  const std::lock_guard entry_guard(entry.lock);
  found.serial = entry.serial.load(std::memory_order_acquire);
  if (found.serial % 2 == 0) {
    return found;  // on its way out
  }
  found.entry = &entry;
  found.side = hit.side;
  found.replied = entry.replied;
  found.translated = entry.translated;
  found.original = entry.original;
  found.reply = entry.reply;
  found.ingress = entry.ingress;
  if (facts.error) {
    return found;
  }
  if (facts.later_fragment) {
    found.plain = true;  // the first one was judged
    return found;
  }
  const Judgement judgement = is_tcp(tuple)                    ? entry.tcp.judge(facts, hit.side)
                              : is_sctp(tuple)                 ? entry.sctp.judge(facts, hit.side)
                              : entry.replied || hit.side == 0 ? Judgement::plain
                                                               : Judgement::noted;
  found.plain = judgement == Judgement::plain;
  found.reopens = judgement == Judgement::reopens;
  found.invalid = judgement == Judgement::invalid;
  return found;
}

bool Connections::may_begin(const ConnectionTuple& tuple, const TransportFacts& facts) {
  if (!facts.whole || facts.error) {
    return false;
  }
  switch (tuple.protocol) {
    case ip_protocol::tcp:
      return (facts.flags & tcp_flag::control) == tcp_flag::syn;
    case ip_protocol::sctp:
      return facts.chunk == sctp_chunk::init && facts.verification_tag == 0 && facts.initiate_tag != 0;
    case ip_protocol::icmp:
    case ip_protocol::icmpv6:
      return tuple.role == ConnectionTuple::Role::request;
    default:
      return true;
  }
}

bool Connections::taken(const ConnectionTuple& reply) const {
  const Stripe& stripe = stripe_at(hash_of(reply));
  const std::lock_guard guard(const_cast<Stripe&>(stripe).dependents.lock());
  return find_in(stripe, reply).entry != nullptr;
}

// ---- Stripes ----

// Makes the entry visible; false, and nothing done, if one of its tuples is another connection's.
bool Connections::link(ConnectionEntry& entry) {
  const auto put = [](Stripe& stripe, ConnectionLink& link, ConnectionEntry& owner, bool reply) {
    link = {.entry = &owner, .next = stripe.first, .reply = reply};
    stripe.first = &link;
    stripe.dependents.changed();
  };
  Stripe& first = stripe_at(hash_of(entry.original));
  if (!entry.translated) {
    const std::lock_guard guard(first.dependents.lock());
    if (find_in(first, entry.original).entry != nullptr || find_in(first, entry.reply).entry != nullptr) {
      return false;
    }
    put(first, entry.links[0], entry, false);
    return true;
  }
  Stripe& second = stripe_at(hash_of(entry.reply));
  {
    const std::lock_guard guard(second.dependents.lock());
    if (find_in(second, entry.reply).entry != nullptr) {
      return false;
    }
    put(second, entry.links[1], entry, true);
  }
  {
    const std::lock_guard guard(first.dependents.lock());
    if (find_in(first, entry.original).entry == nullptr) {
      put(first, entry.links[0], entry, false);
      return true;
    }
  }
  entry.links[0].entry = nullptr;
  unlink(entry);
  return false;
}

// Returns how many rules that cleared.
std::size_t Connections::unlink(ConnectionEntry& entry) {
  std::size_t cleared = 0;
  for (ConnectionLink& link : entry.links) {
    if (link.entry == nullptr) {
      continue;
    }
    Stripe& stripe = stripe_at(hash_of(link.reply ? entry.reply : entry.original));
    const std::lock_guard guard(stripe.dependents.lock());
    ConnectionLink** at = &stripe.first;
    while (*at != &link) {
      at = &(*at)->next;
    }
    *at = link.next;
    link.entry = nullptr;
    cleared += stripe.dependents.changed();
  }
  return cleared;
}

void Connections::changed(const ConnectionTuple& original, const ConnectionTuple& reply, bool translated) {
  const auto clear = [](Stripe& stripe) {
    const std::lock_guard guard(stripe.dependents.lock());
    stripe.dependents.changed();
  };
  clear(stripe_at(hash_of(original)));
  if (translated) {
    clear(stripe_at(hash_of(reply)));
  }
}

// ---- The life of a connection ----

Committed Connections::begin(const ConnectionTuple& original, const ConnectionTuple& reply, const TransportFacts& facts,
                             PortId ingress, Nanoseconds now) {
  Shard& shard = shard_at(hash_of(original));
  ConnectionEntry* entry = take_place(shard);
  if (entry == nullptr) {
    return Committed::full;
  }
  std::uint32_t serial = 0;
  Nanoseconds deadline = 0;
  {
    const std::lock_guard guard(entry->lock);
    entry->last_used.store(now, std::memory_order_relaxed);
    entry->replied = false;
    entry->original = original;
    entry->reply = reply;
    entry->translated = reply != original.mirrored();
    entry->ingress = ingress;
    if (is_tcp(original)) {
      entry->tcp.open(facts);
    } else if (is_sctp(original)) {
      entry->sctp.open(facts);
    }
    serial = entry->serial.load(std::memory_order_relaxed) + 1;
    entry->serial.store(serial, std::memory_order_release);
    deadline = now + timeout_of(*entry, timeouts());
  }
  if (!link(*entry)) {
    {
      const std::lock_guard guard(shard.lock);
      claim(*entry, serial);
    }
    give_back(shard, *entry);
    count_exhausted();
    return Committed::no_port;
  }
  translated_.fetch_add(reply != original.mirrored() ? 1 : 0, std::memory_order_relaxed);
  settle(shard, *entry, serial, false, deadline);
  return Committed::created;
}

bool Connections::note(const Found& found, const TransportFacts& facts, Nanoseconds now) {
  ConnectionEntry& entry = *found.entry;
  bool change = false;
  bool is_settled = false;
  Nanoseconds deadline = 0;
  {
    const std::lock_guard guard(entry.lock);
    if (entry.serial.load(std::memory_order_acquire) != found.serial) {
      return false;
    }
    entry.last_used.store(now, std::memory_order_relaxed);
    if (found.side == 1 && !entry.replied) {
      entry.replied = change = true;
    }
    if (is_tcp(entry.original)) {
      change = entry.tcp.note(facts, found.side) || change;
    } else if (is_sctp(entry.original)) {
      change = entry.sctp.note(facts, found.side) || change;
    }
    is_settled = settled(entry);
    deadline = now + timeout_of(entry, timeouts());
  }
  if (change) {
    changed(found.original, found.reply, found.translated);
    settle(shard_at(hash_of(found.original)), entry, found.serial, is_settled, deadline);
  }
  return true;
}

// ---- For people and control ----

Connections::View Connections::view_of(const ConnectionEntry& entry) {
  const std::string_view state = is_tcp(entry.original)    ? name_of(entry.tcp.state())
                                 : is_sctp(entry.original) ? name_of(entry.sctp.state())
                                 : entry.replied           ? "replied"
                                                           : "new";
  return {entry.original,  entry.reply, state, entry.ingress, entry.last_used.load(std::memory_order_relaxed),
          entry.translated};
}

template <class Visit>
void Connections::visit_all(Visit visit) const {
  for (Shard& shard : shards_) {
    for (std::uint32_t i = 0;; ++i) {
      ConnectionEntry* entry = nullptr;
      {
        const std::lock_guard guard(shard.lock);
        if (i >= shard.handed_out) {
          break;
        }
        entry = &shard.chunks[i / chunk_entries]->entries[i % chunk_entries];
      }
      View view;
      std::uint32_t serial = 0;
      {
        const std::lock_guard guard(entry->lock);
        serial = entry->serial.load(std::memory_order_acquire);
        if (serial % 2 == 0) {
          continue;
        }
        view = view_of(*entry);
      }
      visit(*entry, serial, view);
    }
  }
}

void Connections::for_each(const std::function<void(const View&)>& visit) const {
  visit_all([&](ConnectionEntry&, std::uint32_t, const View& view) { visit(view); });
}

std::size_t Connections::end(const std::function<bool(const View&)>& which) {
  std::size_t ended = 0;
  visit_all([&](ConnectionEntry& entry, std::uint32_t serial, const View& view) {
    if (which(view)) {
      remove(entry, serial, view.original);
      ++ended;
    }
  });
  return ended;
}

std::size_t Connections::forget(PortId port) {
  std::size_t cleared = 0;
  visit_all([&](ConnectionEntry& entry, std::uint32_t serial, const View& view) {
    if (view.original.zone.port() == port || view.ingress == port) {
      cleared += remove(entry, serial, view.original);
    }
  });
  return cleared;
}

}  // namespace weir
