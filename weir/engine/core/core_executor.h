#pragma once
// The core engine: batches through the worker's rule cache; what misses is decided, and the decision kept.

#include <array>

#include <weir/engine/core/rule_cache.h>
#include <weir/engine/host/host.h>
#include <weir/engine/packet_stages.h>
#include <weir/flow/traced_flow.h>

namespace weir {

struct CoreOptions {
  std::uint32_t rule_cache = 65'536;          ///< rules; 0: every packet is decided
  std::size_t masks = RuleCache::mask_limit;  ///< 2 to RuleCache::mask_limit
  /// Changes nothing but its own outputs and stats: nothing is learned, counted or metered, and a packet that comes to
  /// a packet stage or the node's host part is dropped (not_tried). Without a rule cache.
  bool dry = false;
};

class CoreExecutor final : public Executor {
 public:
  CoreExecutor(const ExecutorContext& context, CoreOptions options);

  void process(PortId ingress, std::span<Packet*> packets, Nanoseconds now, DecisionBudget& budget) override;
  void idle(Nanoseconds now) override;
  void finish(Nanoseconds now) override;
  [[nodiscard]] Nanoseconds idle_by() const override { return host_.idle_by(); }
  void forget(PortId port) override { host_.forget(port); }

  [[nodiscard]] const RuleCache& cache() const { return cache_; }
  [[nodiscard]] RuleCache& cache() { return cache_; }
  /// To set an observer.
  [[nodiscard]] TracedFlow& flow() { return flow_; }

 private:
  using Wave = std::array<Packet*, batch_limit>;

  void run_waves(Nanoseconds now, DecisionBudget& budget);
  void run_handed_back(Nanoseconds now, DecisionBudget& budget);
  std::size_t take_deliveries();
  void run_wave(Nanoseconds now, DecisionBudget& budget);
  void run_blind(RuleIndex rule, Nanoseconds now);
  void look_up(std::size_t count, DecisionBudget& budget);
  void handle(std::size_t i, Nanoseconds now, DecisionBudget& budget);
  void decide(std::size_t i, Nanoseconds now, DecisionBudget& budget);

  bool guards_hold(const RuleBody& body, std::size_t i) const;
  void hit(RuleBody& body, std::size_t i, Nanoseconds now);

  // Runs a program on the packet at place `i` of the wave; takes the packet over.
  void execute(const Program& program, std::size_t i, Nanoseconds now);
  bool encapsulate(const Tunnel& tunnel, Packet& packet, std::uint64_t hash);
  bool decapsulate(Packet& packet, Key& key, std::uint32_t as, ReasonId& reason);
  void flood(Packet* packet, std::uint32_t domain, std::size_t i, bool encapsulated);
  void flood_ports(Packet* packet, std::span<const PortId> ports, bool encapsulated);
  void flood_domain(Packet* packet, const FloodDomain& domain, std::size_t i, bool encapsulated);
  void send_tagged(Packet* packet, const TaggedPort& to);
  void send_remote(Packet* packet, const FloodDomain& domain, const Remote& remote, std::uint64_t hash);
  void select(Packet* packet, const Group& group, std::uint64_t hash, bool encapsulated);
  void reject(Packet* packet, std::uint32_t what, ReasonId reason, Nanoseconds now);
  void emit(std::uint32_t port, Packet* packet);
  void leave(std::uint32_t port, Packet* packet, bool encapsulated);
  Packet* copy_of(const Packet& packet);
  void copy_to(std::uint32_t port, const Packet& packet);
  void drop(Packet* packet, ReasonId reason);
  std::uint64_t hash_of(std::size_t i) const;

  ExecutorContext context_;
  RuleCache cache_;
  TracedFlow flow_;
  PacketStages packet_stages_;
  Host host_;
  Program scratch_;                  // of a decision that is not kept
  std::vector<Packet*> deliveries_;  // to be looked up where delivery begins, in the order they were made
  std::size_t delivered_ = 0;        // of them
  bool caching_;
  bool dry_;
  bool delivers_;

  // The wave at hand, by place. Places are those of the batch, so that order survives recirculation.
  std::size_t count_ = 0;
  Wave wave_{};
  Wave next_{};
  std::array<std::uint8_t, batch_limit> place_{};  // places that look packets up, in order
  alignas(64) std::array<Key, batch_limit> keys_;
  std::array<std::uint64_t, batch_limit> hashes_{};
  std::array<RuleIndex, batch_limit> found_{};
  std::size_t exact_ = 0;
  std::size_t lookups_ = 0;
  bool blind_ = false;  // the wave was not parsed
  unsigned copies_ = 0;
  bool changed_ = false;  // a decision was made since the wave was looked up
  bool recirculate_ = false;
};

}  // namespace weir
