#include <weir/engine/host/bfd_sessions.h>

#include <weir/base/hash.h>
#include <weir/engine/host/bfd_datagram.h>

namespace weir {

static_assert(Paths::capacity <= 0x10000 - bfd_first_source_port, "each session has a source port of its own");

BfdSessions::EntryPtr BfdSessions::add(const PathKey& key, const BfdSettings& settings, std::uint64_t seed,
                                       Nanoseconds now) {
  const std::lock_guard guard(mutex_);
  // Others than those before a restart, and the same for the same clock.
  std::uint32_t discriminator = 0;
  while (discriminator == 0 || by_discriminator_.contains(discriminator)) {
    discriminator = static_cast<std::uint32_t>(hash_value(now, hash_value(++made_, seed)) >> 16U);
  }
  const auto entry = std::make_shared<Entry>(key, unused_port(),
                                             BfdSession(settings, discriminator, hash_value(discriminator, seed), now));
  ports_.insert(entry->src_port);
  by_path_[key] = entry;
  by_discriminator_[discriminator] = entry;
  return entry;
}

// Not one that was in use a moment ago.
std::uint16_t BfdSessions::unused_port() {
  do {
    last_port_ = last_port_ == 0xffff ? bfd_first_source_port : static_cast<std::uint16_t>(last_port_ + 1);
  } while (ports_.contains(last_port_));
  return last_port_;
}

void BfdSessions::remove(const Entry& entry) {
  const std::lock_guard guard(mutex_);
  ports_.erase(entry.src_port);
  const auto place = by_path_.find(entry.key);
  if (place != by_path_.end() && place->second.get() == &entry) {
    by_path_.erase(place);
  }
  by_discriminator_.erase(entry.session.discriminator());
}

BfdSessions::EntryPtr BfdSessions::find(std::uint32_t discriminator) const {
  const std::lock_guard guard(mutex_);
  const auto place = by_discriminator_.find(discriminator);
  return place != by_discriminator_.end() ? place->second : nullptr;
}

BfdSessions::EntryPtr BfdSessions::find(const PathKey& key) const {
  const std::lock_guard guard(mutex_);
  const auto place = by_path_.find(key);
  return place != by_path_.end() ? place->second : nullptr;
}

bool BfdSessions::empty() const {
  const std::lock_guard guard(mutex_);
  return by_discriminator_.empty();
}

std::vector<BfdReport> BfdSessions::reports() const {
  std::vector<EntryPtr> entries;
  {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, entry] : by_path_) {
      entries.push_back(entry);
    }
  }
  std::vector<BfdReport> reports;
  for (const EntryPtr& entry : entries) {
    const std::lock_guard guard(entry->mutex);
    const BfdSession& session = entry->session;
    reports.push_back({.key = entry->key,
                       .state = session.state(),
                       .remote_state = session.remote_state(),
                       .diagnostic = session.diagnostic(),
                       .remote_diagnostic = session.remote_diagnostic(),
                       .discriminator = session.discriminator(),
                       .remote_discriminator = session.remote_discriminator(),
                       .multiplier = session.settings().multiplier,
                       .transmit_interval = session.transmit_interval(),
                       .detection_time = session.detection_time(),
                       .flaps = session.flaps(),
                       .sent = entry->sent,
                       .received = entry->received,
                       .changed_at = session.changed_at()});
  }
  return reports;
}

}  // namespace weir
