#pragma once
// The connections that a node follows (design section 5, rules 11 and 12).
//
// They are found by hashing their tuples into stripes, as a Table's entries are: a stripe has a lock, a generation and
// the list of rules that depend on it. Both directions of a conversation hash alike, so that they meet in one stripe,
// and as the flow hash is symmetric too, on one worker. Nothing hangs on that: any worker may meet any connection.
//
// Each entry has a lock for its state; taken within that of a stripe. The entries' places, timers and the order in
// which they may be given up belong to shards by hash, whose locks are never held together with others.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/base/counter.h>
#include <weir/base/hash.h>
#include <weir/flow/connection_entry.h>
#include <weir/flow/connection_timeouts.h>
#include <weir/flow/dependency.h>
#include <weir/flow/table.h>

namespace weir {

/// Of `flow.connection()`.
enum class ConnectionState : std::uint8_t {
  fresh,        ///< the packet begins a connection, or belongs to one that nobody has answered yet ("new")
  established,  ///< it belongs to a connection that was answered, or answers it
  related,      ///< an ICMP error about a packet of a connection
  invalid,      ///< it belongs to none and cannot begin one
};

std::string_view name_of(ConnectionState state);

/// What `Connection::commit` did.
enum class Committed : std::uint8_t {
  noted,      ///< the packet was taken in
  created,    ///< the connection is there now
  unchanged,  ///< an error about it, or an invalid packet: nothing to do
  full,       ///< no room, and none that could be given up: it is not there (counted)
  no_port,    ///< all ports that a translation may use are taken: it is not there (counted)
};

/// All functions are for any thread.
class Connections final : public TableBase {
 public:
  static constexpr std::uint32_t default_limit = 1'048'576;

  Connections(std::uint64_t seed, std::uint32_t limit, std::function<void(Nanoseconds)> schedule);
  ~Connections() override;
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // ---- TableBase ----

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] std::size_t size() const override;
  [[nodiscard]] std::size_t capacity() const override { return std::size_t{shard_limit_} * shards_.size(); }
  [[nodiscard]] std::uint64_t rejected() const override { return rejected_.load(std::memory_order_relaxed); }
  Nanoseconds expire(Nanoseconds now) override;
  /// Ends the connections in the zone of a port, and those that came in by it.
  std::size_t forget(PortId port) override;

  /// For connections whose time begins from now on.
  void set_timeouts(const ConnectionTimeouts& timeouts);
  [[nodiscard]] ConnectionTimeouts timeouts() const;

  /// A connection, for people.
  struct View {
    ConnectionTuple original, reply;
    std::string_view state;
    PortId ingress;
    Nanoseconds last_used;
    bool translated;
  };
  /// Calls visit(View) for each; those that come or go meanwhile may be seen or not.
  void for_each(const std::function<void(const View&)>& visit) const;
  /// Ends those that `which` picks: their rules are cleared, and their next packets begin anew or are invalid. How
  /// many.
  std::size_t end(const std::function<bool(const View&)>& which);

  /// Connections given up for others that were begun later.
  [[nodiscard]] std::uint64_t given_up() const { return given_up_.load(std::memory_order_relaxed); }
  /// Connections that are translated.
  [[nodiscard]] std::uint64_t translated() const { return translated_.load(std::memory_order_relaxed); }
  /// Times that no port was left for a translation.
  [[nodiscard]] std::uint64_t ports_exhausted() const { return ports_exhausted_.load(std::memory_order_relaxed); }

  // ---- For Flow ----

  /// What a packet is to the table, at one moment.
  struct Found {
    ConnectionEntry* entry = nullptr;  ///< nullptr: it is of none
    std::uint32_t serial = 0;
    std::uint8_t side = 0;  ///< that it comes from
    bool replied = false;
    bool plain = false;    ///< `track` is all that it takes
    bool reopens = false;  ///< it ends `entry` and begins another
    bool invalid = false;
    bool translated = false;
    ConnectionTuple original, reply;
    PortId ingress;
    KeyedDependency dependency;
  };
  [[nodiscard]] Found find(const ConnectionTuple& tuple, const TransportFacts& facts) const;
  /// Whether a packet that belongs to none may begin one.
  [[nodiscard]] static bool may_begin(const ConnectionTuple& tuple, const TransportFacts& facts);

  /// Takes in a packet of `found`, which is not invalid. False if the connection has gone meanwhile.
  bool note(const Found& found, const TransportFacts& facts, Nanoseconds now);
  /// Begins a connection; `reply` is what its answers have, `original` mirrored or translated.
  Committed begin(const ConnectionTuple& original, const ConnectionTuple& reply, const TransportFacts& facts,
                  PortId ingress, Nanoseconds now);
  /// Whether answers with this tuple would be taken for those of a connection.
  [[nodiscard]] bool taken(const ConnectionTuple& reply) const;
  /// Ends the connection `serial` of `entry`, whose first packet had the tuple `original`. How many rules that cleared.
  std::size_t remove(ConnectionEntry& entry, std::uint32_t serial, const ConnectionTuple& original);
  void count_exhausted() { ports_exhausted_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Stripe {
    Dependents dependents;
    ConnectionLink* first = nullptr;
  };
  static constexpr std::size_t chunk_entries = 1024;
  struct Chunk {
    std::array<ConnectionEntry, chunk_entries> entries;
  };
  struct alignas(64) Shard {
    mutable SpinLock lock;
    ConnectionEntry* free = nullptr;
    std::vector<std::unique_ptr<Chunk>> chunks;
    std::uint32_t handed_out = 0;  ///< entries of the chunks that were used at least once
    std::uint32_t used = 0;
    List<ConnectionEntry::Unsettled> unsettled;  ///< those that may be given up, the oldest first
    TimerWheel wheel{0};
    std::vector<ConnectionEntry*> due;
  };
  struct Hit {
    ConnectionEntry* entry;
    std::uint8_t side;
  };

  [[nodiscard]] Stripe& stripe_at(std::uint64_t hash) const { return stripes_[hash & (stripes_.size() - 1)]; }
  [[nodiscard]] Shard& shard_at(std::uint64_t hash) const { return shards_[(hash >> 48U) & (shards_.size() - 1)]; }
  [[nodiscard]] std::uint64_t hash_of(const ConnectionTuple& tuple) const { return tuple.symmetric_hash(seed_); }
  [[nodiscard]] Shard& shard_of(const ConnectionEntry& entry) const { return shard_at(hash_of(entry.original)); }

  static Hit find_in(const Stripe& stripe, const ConnectionTuple& tuple);
  [[nodiscard]] bool link(ConnectionEntry& entry);
  std::size_t unlink(ConnectionEntry& entry);
  void changed(const ConnectionTuple& original, const ConnectionTuple& reply, bool translated);
  ConnectionEntry* take_place(Shard& shard);
  static bool claim(ConnectionEntry& entry, std::uint32_t serial);
  std::size_t retire(Shard& shard, ConnectionEntry& entry);
  static void give_back(Shard& shard, ConnectionEntry& entry);
  void settle(Shard& shard, ConnectionEntry& entry, std::uint32_t serial, bool settled, Nanoseconds deadline);
  void review(Shard& shard, ConnectionEntry& entry, Nanoseconds now);
  [[nodiscard]] static View view_of(const ConnectionEntry& entry);
  /// Calls visit(entry, serial, view) for each.
  template <class Visit>
  void visit_all(Visit visit) const;

  std::string name_ = "connections";
  std::uint64_t seed_;
  std::uint32_t shard_limit_;
  std::function<void(Nanoseconds)> schedule_;
  mutable std::vector<Stripe> stripes_;
  mutable std::vector<Shard> shards_;  // never resized
  ConnectionTimeouts timeouts_;
  mutable SpinLock timeouts_lock_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> given_up_{0};
  std::atomic<std::uint64_t> ports_exhausted_{0};
  std::atomic<std::uint64_t> translated_{0};
};

}  // namespace weir
