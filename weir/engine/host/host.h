#pragma once
// The node itself as a host on its links: what packets for its own addresses get for an answer, and what waits until a
// neighbour's Ethernet address is known. The same in every engine; one per worker.

#include <span>

#include <weir/engine/executor.h>
#include <weir/engine/host/arp.h>
#include <weir/engine/host/neighbour_discovery.h>
#include <weir/engine/host/path_monitor.h>
#include <weir/engine/host/resolver.h>

namespace weir {

/// Takes what flows give `to_host()`, and holds what `resolve()` makes wait. One thread.
///
/// It answers echo requests (RFC 1122, section 3.2.2.6; RFC 4443, section 4.1) to any of the node's own addresses, and
/// ARP requests (RFC 826) and neighbour solicitations (RFC 4861) for those of the port that they came in by. Answers
/// leave by that port. From ARP and neighbour discovery it learns the node's neighbours. It speaks BFD (RFC 5880) with
/// those whose paths are wanted. A packet that was for the node
/// counts as consumed, and an answer as originated; what nobody takes is dropped by name.
class Host {
 public:
  explicit Host(const ExecutorContext& context) : context_(context), resolver_(context), monitor_(context, resolver_) {}

  /// Takes over a packet for the node itself, which came in by packet->ingress.
  void take(Packet* packet, Nanoseconds now);
  /// Takes over a packet that waits for `neighbour`; see Resolver.
  void resolve(Packet* packet, const NeighbourKey& neighbour, Nanoseconds now) {
    resolver_.hold(packet, neighbour, now);
  }
  /// Between batches: asks, asks again, gives up. What leaves is in the outputs.
  void idle(Nanoseconds now) {
    resolver_.idle(now);
    monitor_.idle(now);
  }
  /// See Executor::idle_by.
  [[nodiscard]] Nanoseconds idle_by() const { return monitor_.idle_by(); }
  /// See Executor::forget.
  void forget(PortId port) {
    resolver_.forget(port);
    monitor_.forget(port);
  }
  /// Nothing more will come: drops what waits.
  void finish() { resolver_.finish(); }
  /// Moves packets whose neighbour is known to `out`, in order, to be run again at their stage; returns how many.
  std::size_t take_back(std::span<Packet*> out) { return resolver_.take_back(out); }

 private:
  void take_arp(Packet* packet, Nanoseconds now);
  void take_ip(Packet* packet, Nanoseconds now);
  void take_solicitation(Packet* packet, const NeighbourMessage& message, Nanoseconds now);
  void take_advertisement(Packet* packet, const NeighbourMessage& message, Nanoseconds now);
  void echo(Packet* packet);
  void take_bfd(Packet* packet, Nanoseconds now);
  void unclaimed(Packet* packet, Nanoseconds now);

  /// How much a message may change what the node knows of its neighbours.
  enum class Claim : std::uint8_t {
    update,   ///< an entry that is there
    request,  ///< may add one, while there is room to spare: its sender is about to be answered
    answer,   ///< may add one that was asked for
  };
  void learn(const NeighbourKey& neighbour, const MacAddress& mac, Claim claim, Nanoseconds now);

  [[nodiscard]] const PortTable::Port& port_of(const Packet& packet) const {
    return context_.ports.ports[packet.ingress];
  }
  void drop(Packet* packet, ReasonId reason);
  void consume(Packet* packet);

  ExecutorContext context_;
  Resolver resolver_;
  PathMonitor monitor_;
};

}  // namespace weir
