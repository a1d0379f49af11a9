#pragma once
// One connection, as the table keeps it and the engines' `track` action touches it.

#include <atomic>
#include <cstdint>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/list.h>
#include <weir/base/spin_lock.h>
#include <weir/base/timer_wheel.h>
#include <weir/flow/connection_tuple.h>
#include <weir/flow/sctp_conversation.h>
#include <weir/flow/tcp_conversation.h>

namespace weir {

struct ConnectionEntry;

/// Where an entry is found by one of its two tuples.
struct ConnectionLink {
  ConnectionEntry* entry = nullptr;
  ConnectionLink* next = nullptr;
  bool reply = false;  ///< by that of a translated answer
};

/// Lives as long as the table; its place is used for one connection after another, told apart by `serial`. The first
/// cache line is what a packet of an established connection touches.
struct alignas(64) ConnectionEntry {
  std::atomic<Nanoseconds> last_used{0};
  std::atomic<std::uint32_t> serial{0};  ///< odd: in use
  TcpConversation tcp;                   ///< its first part is in this line

  // ---- Under `lock`, but for what does not change while the entry is in use ----

  SpinLock lock;
  bool replied = false;  ///< the other side has answered
  SctpConversation sctp;

  ConnectionTuple original;  ///< of the first packet
  ConnectionTuple reply;     ///< of an answer: `original` mirrored, unless it is translated
  bool translated = false;
  PortId ingress;  ///< of the first packet

  // ---- The table's ----

  /// Its place among those that may be given up.
  struct Unsettled : ListHook {
    ConnectionEntry* entry = nullptr;
  };
  struct Expiry final : WheelTimer {
    void expired() override { due->push_back(entry); }
    ConnectionEntry* entry = nullptr;
    std::vector<ConnectionEntry*>* due = nullptr;  ///< where the table collects those whose time has come
  };
  Unsettled unsettled;
  Expiry expiry;
  ConnectionLink links[2];
  ConnectionEntry* next_free = nullptr;
};

/// What a rule of an established connection does to its entry: the action `track`.
struct Track {
  ConnectionEntry* entry;
  std::uint32_t serial;  ///< of the connection: the action does nothing once another has its place
  std::uint8_t side;     ///< that sent the packet; 0: the initiator
  bool tcp;

  /// Whether there is still something to do. A connection that goes takes its rules along, so that this fails only for
  /// a worker that was between the check of a rule's validity and its actions.
  [[nodiscard]] bool holds() const { return entry->serial.load(std::memory_order_acquire) == serial; }
  void use(Nanoseconds now) const { entry->last_used.store(now, std::memory_order_relaxed); }
};

}  // namespace weir
