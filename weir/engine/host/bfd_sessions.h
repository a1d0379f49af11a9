#pragma once
// The BFD sessions of a node, which its workers share.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/engine/host/bfd_session.h>

namespace weir {

/// A session as it is now.
struct BfdReport {
  PathKey key;
  BfdState state;
  BfdState remote_state;
  BfdDiagnostic diagnostic;
  BfdDiagnostic remote_diagnostic;
  std::uint32_t discriminator;
  std::uint32_t remote_discriminator;
  std::uint8_t multiplier;
  Nanoseconds transmit_interval;
  Nanoseconds detection_time;
  std::uint64_t flaps;
  std::uint64_t sent;
  std::uint64_t received;
  Nanoseconds changed_at;
};

/// Each session belongs to one worker, which looks at its times; any worker may hear a packet for it, and then does at
/// once what is to be done. State::shared gives the node's. Any thread.
class BfdSessions {
 public:
  struct Entry {
    Entry(const PathKey& path, std::uint16_t port, const BfdSession& made) : key(path), src_port(port), session(made) {}

    const PathKey key;
    const std::uint16_t src_port;
    std::mutex mutex;  ///< guards the rest
    BfdSession session;
    std::optional<MacAddress> mac;  ///< of the neighbour, when it was last known
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  using EntryPtr = std::shared_ptr<Entry>;

  /// The path has none. `seed` is the node's.
  EntryPtr add(const PathKey& key, const BfdSettings& settings, std::uint64_t seed, Nanoseconds now);
  void remove(const Entry& entry);

  /// nullptr if there is none.
  [[nodiscard]] EntryPtr find(std::uint32_t discriminator) const;
  [[nodiscard]] EntryPtr find(const PathKey& key) const;
  [[nodiscard]] bool empty() const;

  [[nodiscard]] std::vector<BfdReport> reports() const;

 private:
  std::uint16_t unused_port();

  mutable std::mutex mutex_;
  std::map<PathKey, EntryPtr> by_path_;
  std::unordered_map<std::uint32_t, EntryPtr> by_discriminator_;
  std::set<std::uint16_t> ports_;
  std::uint16_t last_port_ = 0xffff;
  std::uint64_t made_ = 0;
};

}  // namespace weir
