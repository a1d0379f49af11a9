// The places that connections have, the order in which they are given up, and their timers.

#include <algorithm>
#include <bit>
#include <mutex>

#include <weir/flow/connections.h>

namespace weir {

namespace {

constexpr std::size_t most_shards = 16;
constexpr std::uint32_t least_shard = 4096;
// Timers of one moment fire together, so that the wheel is not turned for every single one.
constexpr Nanoseconds timer_grain = 1'000'000;

Nanoseconds rounded_up(Nanoseconds time) { return (time + timer_grain - 1) / timer_grain * timer_grain; }

std::size_t shard_count(std::uint32_t limit) {
  return std::bit_floor(std::clamp<std::size_t>(limit / least_shard, 1, most_shards));
}

}  // namespace

Connections::Connections(std::uint64_t seed, std::uint32_t limit, std::function<void(Nanoseconds)> schedule)
    : seed_(seed),
      shard_limit_(std::max<std::uint32_t>(1, limit / static_cast<std::uint32_t>(shard_count(limit)))),
      schedule_(std::move(schedule)),
      stripes_(std::bit_ceil(std::max(limit / 2, 16U))),
      shards_(shard_count(limit)) {}

Connections::~Connections() = default;

std::size_t Connections::size() const {
  std::size_t used = 0;
  for (const Shard& shard : shards_) {
    const std::lock_guard guard(shard.lock);
    used += shard.used;
  }
  return used;
}

ConnectionEntry* Connections::take_place(Shard& shard) {
  std::unique_ptr<Chunk> fresh;
  for (;;) {
    ConnectionEntry* victim = nullptr;
    {
      const std::lock_guard guard(shard.lock);
      if (shard.used < shard_limit_) {
        if (ConnectionEntry* entry = shard.free; entry != nullptr) {
          shard.free = entry->next_free;
          ++shard.used;
          return entry;
        }
        if (fresh != nullptr) {
          shard.chunks.push_back(std::move(fresh));
        }
        if (shard.handed_out < shard.chunks.size() * chunk_entries) {
          ConnectionEntry& entry =
              shard.chunks[shard.handed_out / chunk_entries]->entries[shard.handed_out % chunk_entries];
          ++shard.handed_out;
          ++shard.used;
          entry.unsettled.entry = entry.expiry.entry = &entry;
          entry.expiry.due = &shard.due;
          return &entry;
        }
      } else {
        ConnectionEntry::Unsettled* oldest = shard.unsettled.front();
        if (oldest == nullptr) {
          rejected_.fetch_add(1, std::memory_order_relaxed);
          return nullptr;
        }
        victim = oldest->entry;
        claim(*victim, victim->serial.load(std::memory_order_relaxed));
      }
    }
    if (victim != nullptr) {
      retire(shard, *victim);
      given_up_.fetch_add(1, std::memory_order_relaxed);
    } else if (fresh == nullptr) {
      fresh = std::make_unique<Chunk>();  // not under the lock
    }
  }
}

// The shard's lock is held. True for one caller, who then unlinks the entry and gives its place back.
bool Connections::claim(ConnectionEntry& entry, std::uint32_t serial) {
  if (entry.serial.load(std::memory_order_relaxed) != serial) {
    return false;
  }
  entry.serial.store(serial + 1, std::memory_order_release);
  entry.unsettled.unlink();
  entry.expiry.cancel();
  return true;
}

// It was claimed. Returns how many rules that cleared.
std::size_t Connections::retire(Shard& shard, ConnectionEntry& entry) {
  translated_.fetch_sub(entry.translated ? 1 : 0, std::memory_order_relaxed);
  const std::size_t cleared = unlink(entry);
  give_back(shard, entry);
  return cleared;
}

void Connections::give_back(Shard& shard, ConnectionEntry& entry) {
  const std::lock_guard guard(shard.lock);
  entry.next_free = shard.free;
  shard.free = &entry;
  --shard.used;
}

std::size_t Connections::remove(ConnectionEntry& entry, std::uint32_t serial, const ConnectionTuple& original) {
  Shard& shard = shard_at(hash_of(original));
  {
    const std::lock_guard guard(shard.lock);
    if (!claim(entry, serial)) {
      return 0;
    }
  }
  return retire(shard, entry);
}

void Connections::settle(Shard& shard, ConnectionEntry& entry, std::uint32_t serial, bool settled,
                         Nanoseconds deadline) {
  const std::lock_guard guard(shard.lock);
  if (entry.serial.load(std::memory_order_relaxed) != serial) {
    return;
  }
  if (settled) {
    entry.unsettled.unlink();
  } else if (!entry.unsettled.linked()) {
    shard.unsettled.push_back(entry.unsettled);
  }
  shard.wheel.start(entry.expiry, rounded_up(deadline));
  schedule_(shard.wheel.next());
}

Nanoseconds Connections::expire(Nanoseconds now) {
  Nanoseconds next = ~Nanoseconds{0};
  std::vector<ConnectionEntry*> due;
  for (Shard& shard : shards_) {
    {
      const std::lock_guard guard(shard.lock);
      shard.wheel.advance(now);
      due.swap(shard.due);
    }
    for (ConnectionEntry* entry : due) {
      review(shard, *entry, now);
    }
    due.clear();
    const std::lock_guard guard(shard.lock);
    next = std::min(next, shard.wheel.next());
  }
  return next;
}

// Its timer has fired; it has been used since, perhaps, or is gone and has another in its place.
void Connections::review(Shard& shard, ConnectionEntry& entry, Nanoseconds now) {
  std::uint32_t serial = 0;
  Nanoseconds deadline = 0;
  {
    const std::lock_guard guard(entry.lock);
    serial = entry.serial.load(std::memory_order_acquire);
    deadline = entry.last_used.load(std::memory_order_relaxed) + timeout_of(entry, timeouts());
  }
  {
    const std::lock_guard guard(shard.lock);
    if (serial % 2 == 0 || entry.expiry.pending()) {
      return;
    }
    if (deadline > now) {
      if (entry.serial.load(std::memory_order_relaxed) == serial) {
        shard.wheel.start(entry.expiry, rounded_up(deadline));
      }
      return;
    }
    if (!claim(entry, serial)) {
      return;
    }
  }
  retire(shard, entry);
}

}  // namespace weir
