#pragma once
// Asking neighbours for their Ethernet addresses, and the packets that wait for the answers.

#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include <weir/engine/executor.h>
#include <weir/flow/neighbours.h>

namespace weir {

/// One worker's. A neighbour that is not known is asked for by all (ARP, RFC 826; solicitation, RFC 4861), three times
/// a second apart, while packets wait for it; then they are dropped, and their senders told. One that is known is asked
/// itself in time before its entry would go, so that traffic to it never stops.
///
/// What waits is bounded: of one neighbour the newest packets stay, beyond the other limits the newest go. One thread.
class Resolver {
 public:
  static constexpr std::size_t packets_each = 16;      ///< that wait for one neighbour
  static constexpr std::size_t resolving_limit = 256;  ///< neighbours that are being asked for
  static constexpr std::size_t frames_limit = 1024;    ///< that all waiting packets lie in
  static constexpr Nanoseconds between_tries = 1'000'000'000;
  static constexpr unsigned tries = 3;
  /// After it was confirmed, a neighbour is asked again.
  static constexpr Nanoseconds refresh_after = 45'000'000'000;
  static_assert(refresh_after + tries * between_tries < Neighbours::lifetime);
  /// Times that one packet may wait, against stages that resolve what is known.
  static constexpr unsigned waits_limit = 4;

  explicit Resolver(const ExecutorContext& context) : context_(context) {}
  /// Frees what waits.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  void hold(Packet* packet, const NeighbourKey& key, Nanoseconds now);
  /// Asks for a neighbour that no packet waits for, unless it is being asked for.
  void ask_for(const NeighbourKey& key, Nanoseconds now) { begin(key, now); }
  /// The neighbour has said its address, which is in the table.
  void confirmed(const NeighbourKey& key, Nanoseconds now);
  void idle(Nanoseconds now);
  void forget(PortId port);
  void finish();
  std::size_t take_back(std::span<Packet*> out);

 private:
  struct Neighbour {
    bool resolving = false;        ///< it is not known, and packets may wait; else it is only kept known
    unsigned asked = 0;            ///< times
    std::uint32_t serial = 0;      ///< of its timer
    std::vector<Packet*> waiting;  ///< oldest first
  };
  struct Timer {
    Nanoseconds at;
    NeighbourKey key;
    std::uint32_t serial;
  };
  using Known = std::unordered_map<NeighbourKey, Neighbour, NeighbourKeyHash>;

  Neighbour* begin(const NeighbourKey& key, Nanoseconds now);
  void set_timer(std::deque<Timer>& timers, Known::value_type& entry, Nanoseconds at);
  Known::value_type* entry_of(const Timer& timer);
  void tried(Known::value_type& entry, Nanoseconds now);
  bool ask(const NeighbourKey& key, bool by_all);
  void release(Known::value_type& entry);
  void settle(Known::value_type& entry);
  void give_up(const NeighbourKey& key, Nanoseconds now);
  void look_for_answers();
  void resolve_wanted(Nanoseconds now);
  void drop(Packet* packet, ReasonId reason);
  void count_waiting(std::ptrdiff_t more);

  ExecutorContext context_;
  Known neighbours_;
  std::size_t resolving_ = 0;
  std::size_t frames_ = 0;
  // Two lists, as each has one delay: the first timer is always the first that is due.
  std::deque<Timer> next_try_;
  std::deque<Timer> next_refresh_;
  std::uint32_t last_serial_ = 0;
  std::uint64_t changes_seen_ = 0;
  Nanoseconds look_for_wanted_ = 0;
  std::vector<Packet*> back_;
};

}  // namespace weir
