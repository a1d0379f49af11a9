#pragma once
// The flow that becomes a rule.

#include <weir/flow/pipeline.h>
#include <weir/flow/rule.h>

namespace weir {

/// What of the packet itself, beside its key, decides guards.
struct PacketFacts {
  std::uint32_t l3_length = 0;
  std::uint32_t frame_length = 0;
  const Packet* packet = nullptr;  ///< parsed, its headers contiguous; nullptr: connections cannot be asked for
};

/// Records one decision, from a stage of the pipeline to a final action. Reused for packet after packet; one thread.
class TracedFlow final : public Flow {
 public:
  TracedFlow(State& state, const Pipeline& pipeline) : state_(state), pipeline_(pipeline) {}

  /// Runs the stages from `key.stage` on and leaves the result in `rule()`. The caller is online in the State's epochs.
  void decide(const Key& key, const PacketFacts& facts, Nanoseconds now);

  [[nodiscard]] const Rule& rule() const { return rule_; }

  /// Told of everything that decisions look at, until it is replaced; nullptr: nobody.
  void set_observer(TraceObserver* observer) { observer_ = observer; }
  /// Decisions change no state from now on; what they would learn, they say they have.
  void set_dry() { dry_ = true; }

  PortId ingress() override;
  PortId egress() override;
  bool decrement_ttl() override;
  bool fits(std::uint32_t mtu) override;
  void push_vlan(std::uint16_t control) override;
  void pop_vlan() override;
  void encapsulate(const Vxlan& vxlan) override;
  using Flow::decapsulate;
  void decapsulate(std::optional<std::uint32_t> as) override;
  void count(Counter& counter) override { act({.kind = ActionKind::count, .object = &counter}); }
  void meter(Meter& meter) override { act({.kind = ActionKind::meter, .object = &meter}); }
  void mirror(PortId port) override { act({.kind = ActionKind::mirror, .number = port.number}); }
  void every_packet() override { trap_ = true; }

 private:
  State& state() override { return state_; }
  Nanoseconds now() const override { return now_; }
  Layout layout() override;
  bool peek(FieldId field, FieldValue& value) override;
  void consult(FieldId field, const FieldValue& mask) override;
  Key key() override;
  void consult_key(const Key& mask) override;
  std::uint8_t rewritten_parts() override { return parts_; }
  bool test_flags(Flags flags) override;
  void set_field(FieldId field, const FieldValue& value) override;
  bool was_set(FieldId field) override { return (set_fields_ >> static_cast<unsigned>(field) & 1U) != 0; }
  void depend(const KeyedDependency& dependency) override;
  void depend(const RegionDependency& dependency) override { rule_.regions.push_back(dependency); }
  void not_cacheable(std::string_view why) override { rule_.not_cacheable = why; }
  const TransportFacts& transport() override;
  PortId arrived_by() override { return PortId{facts_.packet->ingress}; }
  void track(const Track& track) override;
  bool test_sctp_data() override;
  void translate_quoted(const QuotedTranslation& translation) override;
  void close(const char* by) override { closed_by_ = by; }
  std::uint64_t hash() override;
  std::uint32_t stage_number(const void* stage) override;

  // Whether the rule's match shows bits of `scope` as they were before they were rewritten: an update's region cannot
  // be compared with it.
  [[nodiscard]] bool hidden(const Key& scope) const;
  void act(Action action) {
    rule_.actions.push_back(action);
    if (observer_ != nullptr) [[unlikely]] {
      observer_->acted(action);
    }
  }
  void require_open(const char* what) const;
  void require_no_delivery(const char* what) const;
  /// The stage where delivery to the port begins, if it has one that this packet passes.
  std::uint8_t begin_delivery(std::uint32_t port);
  /// What tells an entered stage that it is on a delivery side.
  [[nodiscard]] std::uint32_t enter_number(std::uint32_t stage);
  void require_plain_tags();
  bool guard(GuardKind kind, std::uint32_t number, bool holds);
  void run();
  void finish(const Verdict& verdict);
  void undo();
  void finish_drop(ReasonId reason);
  void set_match();

  State& state_;
  const Pipeline& pipeline_;
  Rule rule_;
  Nanoseconds now_ = 0;

  Key original_;
  Key current_;    // the packet as rewritten so far
  Key rewritten_;  // mask: bits of current_ that do not come from original_
  Key consulted_;  // mask: bits of original_ that the decision saw
  bool layout_consulted_ = false;
  // Where the tags in current_ come from: 0 or 1 in original_, -1 pushed by an action.
  std::array<int, 2> tag_origin_{0, 1};
  std::uint8_t parts_ = 0;  // rewritten so far
  unsigned ttl_taken_ = 0;
  bool ttl_set_ = false;
  std::uint32_t set_fields_ = 0;  // bit: FieldId
  PacketFacts facts_;
  TransportFacts transport_;
  bool transport_read_ = false;
  bool encapsulated_ = false;
  std::int32_t outer_length_ = 0;  // of the encapsulated packet's L3 length, what its frame had not
  const char* closed_by_ = nullptr;
  bool decapsulated_ = false;
  bool trap_ = false;
  std::uint8_t stage_ = 0;
  PortId egress_;  // in delivery
};

}  // namespace weir
