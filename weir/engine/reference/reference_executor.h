#pragma once
// The reference engine: it defines what running packets through a graph means. Every packet is decided, its actions are
// done on plain bytes, one after the other. The core engine with its rule cache must give the same; it shares with this
// one only the state, the fields' definitions, the ICMP errors, the node's host part and the running of packet stages.

#include <deque>
#include <vector>

#include <weir/engine/host/host.h>
#include <weir/engine/packet_stages.h>
#include <weir/engine/reference/direct_flow.h>

namespace weir {

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(const ExecutorContext& context)
      : context_(context), flow_(context.state, context.pipeline), packet_stages_(context), host_(context) {}

  void process(PortId ingress, std::span<Packet*> packets, Nanoseconds now, DecisionBudget& budget) override;
  void idle(Nanoseconds now) override;
  void finish(Nanoseconds now) override;
  [[nodiscard]] Nanoseconds idle_by() const override { return host_.idle_by(); }
  void forget(PortId port) override { host_.forget(port); }

 private:
  /// Packets by their place in the batch; null where none is.
  using Wave = std::vector<Packet*>;

  void run_passes(Wave& wave, Nanoseconds now, DecisionBudget& budget);
  void run_handed_back(Nanoseconds now, DecisionBudget& budget);
  void pass(Wave& wave, Nanoseconds now, DecisionBudget& budget);
  void run_flow_stages(std::size_t place, Packet* packet, Nanoseconds now, DecisionBudget& budget);

  bool carry_out(const DirectFlow::Effect& effect, Nanoseconds now);
  void conclude(const Verdict& verdict, std::size_t place, Nanoseconds now);
  void flood(const reference::Frame& frame, std::uint32_t number);
  /// One copy of a flood; the last is the packet itself.
  void flood_copy(std::size_t& left);
  void send_tagged(reference::Frame frame, const TaggedPort& to);
  void send_remote(reference::Frame frame, Vxlan tunnel, const Remote& remote);
  void select(reference::Frame frame, const Group& group, bool encapsulated);
  void reject(const reference::Frame& frame, std::uint32_t what, ReasonId reason, Nanoseconds now);

  Packet* write(const reference::Frame& frame);
  std::size_t take_deliveries(Wave& wave);
  void leave(std::uint32_t port, reference::Frame frame, bool encapsulated);
  void emit(std::uint32_t port, const reference::Frame& frame);
  void emit(std::uint32_t port, Packet* packet);
  void copy_to(std::uint32_t port, const reference::Frame& frame);
  void drop(ReasonId reason) { context_.stats.drop(reason); }

  ExecutorContext context_;
  DirectFlow flow_;
  PacketStages packet_stages_;
  Host host_;
  Wave next_;
  unsigned copies_ = 0;
  std::deque<Packet*> deliveries_;  // packets at the beginning of a delivery side, in the order they got there
};

}  // namespace weir
