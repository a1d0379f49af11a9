#pragma once
// The flow that just does it: reads come from the packet's bytes, rewrites change them at once.

#include <set>
#include <variant>
#include <vector>

#include <weir/engine/reference/headers.h>
#include <weir/flow/pipeline.h>

namespace weir {

/// Runs one packet's decision on a copy of its bytes. What others would see of it (counts, meters, mirrored copies) is
/// noted, so that a decision that fails has no such effect; what it learned stays. Reused for packet after packet; one
/// thread.
class DirectFlow final : public Flow {
 public:
  struct Counted {
    Counter* counter;
    std::uint32_t length;  ///< of the packet at that point
  };
  struct Metered {
    Meter* meter;
    std::uint32_t length;
  };
  struct Mirrored {
    PortId port;
    reference::Frame frame;  ///< as it was at that point
  };
  /// The packet ends here, whatever was decided further on.
  struct Lost {
    ReasonId reason;
  };
  struct Tracked {
    Track track;
    TcpSegment segment;
  };
  using Effect = std::variant<Counted, Metered, Mirrored, Lost, Tracked>;

  DirectFlow(State& state, const Pipeline& pipeline) : state_(state), pipeline_(pipeline) {}

  /// Runs the stages from `frame.stage` on. The caller is online in the State's epochs.
  void decide(reference::Frame frame, Nanoseconds now);

  // ---- The outcome: effects, in order, then the verdict on the packet as it is then ----

  [[nodiscard]] const std::vector<Effect>& effects() const { return effects_; }
  /// Never `next`. `to`: the packet is looked up again at that stage, or it is a packet stage and gets the packet.
  [[nodiscard]] const Verdict& verdict() const { return verdict_; }
  /// The packet as rewritten.
  [[nodiscard]] const reference::Frame& frame() const { return frame_; }
  /// What `select` goes by: the packet's flow hash before any rewrite, or the inner packet's after decapsulation.
  [[nodiscard]] std::uint64_t flow_hash() const { return hash_; }
  /// Delivery sides of ports are passed over.
  [[nodiscard]] bool encapsulated() const { return encapsulated_; }
  /// Bit i: flow stage i decided (stage 63 and beyond share a bit).
  [[nodiscard]] std::uint64_t stages() const { return stages_; }

  PortId ingress() override;
  PortId egress() override;
  bool decrement_ttl() override;
  bool fits(std::uint32_t mtu) override;
  void push_vlan(std::uint16_t control) override;
  void pop_vlan() override;
  void encapsulate(const Vxlan& vxlan) override;
  using Flow::decapsulate;
  void decapsulate(std::optional<std::uint32_t> as) override;
  void count(Counter& counter) override { effects_.emplace_back(Counted{&counter, frame_.length()}); }
  void meter(Meter& meter) override { effects_.emplace_back(Metered{&meter, frame_.length()}); }
  void mirror(PortId port) override { effects_.emplace_back(Mirrored{port, frame_}); }
  void every_packet() override {}

 private:
  State& state() override { return state_; }
  Nanoseconds now() const override { return now_; }
  Layout layout() override;
  bool peek(FieldId field, FieldValue& value) override;
  Key key() override;
  bool test_flags(Flags flags) override;
  void set_field(FieldId field, const FieldValue& value) override;
  bool was_set(FieldId field) override { return set_.contains(field); }
  void close(const char* by) override { closed_by_ = by; }
  std::uint64_t hash() override;
  std::uint32_t stage_number(const void* stage) override;

  // Every packet is decided: there is no rule that anything would have to be remembered for.
  void consult(FieldId, const FieldValue&) override {}
  void consult_key(const Key&) override {}
  std::uint8_t rewritten_parts() override { return 0; }
  void depend(const KeyedDependency&) override {}
  void depend(const RegionDependency&) override {}
  void not_cacheable(std::string_view) override {}

  const TransportFacts& transport() override;
  PortId arrived_by() override { return PortId{frame_.ingress}; }
  void track(const Track& track) override;
  bool test_sctp_data() override;
  void translate_quoted(const QuotedTranslation& translation) override;

  Verdict run();
  Verdict failed(ReasonId reason);
  void require_open(const char* what) const;
  void require_no_delivery(const char* what) const;
  std::uint8_t begin_delivery(std::uint32_t port);
  void require_plain_tags();
  void parse_again();

  State& state_;
  const Pipeline& pipeline_;
  Nanoseconds now_ = 0;

  reference::Frame frame_;
  reference::Headers headers_;  // of frame_
  Layout arrived_;              // how the packet was found
  TransportFacts transport_;
  std::uint64_t hash_ = 0;
  const char* closed_by_ = nullptr;
  bool encapsulated_ = false;
  bool decapsulated_ = false;
  std::uint8_t stage_ = 0;

  std::set<FieldId> set_;
  std::uint64_t stages_ = 0;
  std::vector<Effect> effects_;
  Verdict verdict_{};
};

}  // namespace weir
