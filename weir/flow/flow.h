#pragma once
// What a flow stage sees: a packet's fields and the node's state, every look at them recorded.
//
// `Flow` is an interface with two implementations: the traced one, whose record becomes a rule, and the reference
// engine's direct one, which just reads and changes bytes. Stages cannot tell them apart.

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/flow/connection.h>
#include <weir/flow/encapsulation.h>
#include <weir/flow/maybe.h>
#include <weir/flow/predicate.h>
#include <weir/flow/state.h>
#include <weir/flow/trace_observer.h>
#include <weir/flow/verdict.h>

namespace weir {

class FlowStage;
class PacketStage;

/// A programming error in a stage. Whoever runs the stage drops the packet (stage_error) and reports it once.
struct StageError {
  std::string message;
};
/// A rewrite that this packet's bytes do not allow (drop: unrewritable).
struct Unrewritable {};

/// One packet's decision. Lives for one `decide`; what it returns by pointer or reference lives as long.
/// All functions that name a field or layer consult the packet's layout.
class Flow {
 public:
  virtual ~Flow() = default;
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  // ---- The packet ----

  /// The port that the packet came in by.
  virtual PortId ingress() = 0;

  /// In a delivery stage: the port that the packet is about to leave by. Elsewhere a programming error, as `ingress` is
  /// in a delivery stage: after a flood, the copies for one port share their rules whatever way they came in.
  virtual PortId egress() = 0;

  /// The field's value, absent if the packet has no such field. After a `set`, the value set.
  template <class T>
  Maybe<T> operator[](Field<T> field) {
    FieldValue value;
    if (!peek(field.id, value)) {
      if (observer_ != nullptr) [[unlikely]] {
        observer_->absent(field.id);
      }
      return {};
    }
    FieldValue all;
    all.bytes.fill(0xff);
    consult(field.id, all);
    return from_field<T>(value);
  }

  bool has(Layer layer) { return weir::has(layer, layout()); }

  /// Whether the field is there and `predicate` holds: below, equals, multicast, inside. Consults what proves it.
  template <class T, class Predicate>
    requires requires(const Predicate& p, const FieldValue& v) {
      { p.test(v, 1U) } -> std::same_as<Tested>;
    }
  bool test(Field<T> field, const Predicate& predicate) {
    FieldValue value;
    if (!peek(field.id, value)) {
      return false;
    }
    const Tested tested = predicate.test(value, value_bytes(field.id, layout()));
    consult(field.id, tested.proof);
    return tested.holds;
  }
  template <class T, class Value>
    requires std::convertible_to<Value, T>
  bool test(Field<T> field, const EqualTo<Value>& equal) {
    if constexpr (std::integral<Value>) {
      if (!std::in_range<T>(equal.wanted)) {
        return false;  // no packet has such a value
      }
    }
    return test(field, Equals{to_field(static_cast<T>(equal.wanted))});
  }
  /// TCP flags, as a guard: every packet is checked, none is matched on them. False without TCP.
  bool test(Field<std::uint8_t> field, Flags flags) {
    return field.id == FieldId::tcp_flags && layout().l4() == L4::tcp && test_flags(flags);
  }

  // ---- State ----

  template <class K, class V>
  const V* lookup(const Table<K, V>& table, const std::type_identity_t<K>& key) {
    const auto found = table.lookup(key);
    depend(found.dependency);
    if (observer_ != nullptr) [[unlikely]] {
      observer_->looked_up(table.name(), observer_->text_of(key),
                           found.present ? observer_->text_of(found.value) : std::string());
    }
    return found.present ? keep(found.value) : nullptr;
  }

  /// Longest-prefix match on the packet's address; consults the bits that were walked. Null without IP or a match.
  template <class V>
  const V* lookup(const Prefixes<V>& prefixes, Field<IpAddress> field) {
    FieldValue value;
    if (!peek(field.id, value)) {
      return nullptr;
    }
    const RegionState& state = prefixes.state(field.id);
    const std::uint32_t generation = state.generation();
    const auto found = prefixes.lookup(from_field<IpAddress>(value));
    FieldValue walked;
    walked.bytes.fill(0xff);
    walked.bytes = IpPrefix(Ipv6Address{walked.bytes}, found.depth).address.bytes;
    consult(field.id, walked);
    depend({&state, generation, rewritten_parts()});
    if (observer_ != nullptr) [[unlikely]] {
      observer_->looked_up(prefixes.name(), from_field<IpAddress>(value).to_string(),
                           found.value != nullptr ? observer_->text_of(*found.value) : std::string());
    }
    return found.value;
  }

  /// The first of the ordered rules that matches the packet; consults what was compared. Null if none does.
  template <class A>
  const A* match(const Classifier<A>& classifier) {
    const std::uint32_t generation = classifier.state_.generation();
    const auto found = classifier.lookup(key());
    consult_key(found.consulted);
    depend({&classifier.state_, generation, rewritten_parts()});
    if (observer_ != nullptr) [[unlikely]] {
      observer_->matched(classifier.name(), key(), found.consulted,
                         found.action != nullptr ? observer_->text_of(*found.action) : std::string());
    }
    return found.action;
  }

  /// The same with the first packet of the connection in the place of this one, as far as ports, addresses and the
  /// ingress port go: so that answers are judged as their initiator was. (A change of the rules clears decisions about
  /// answers more widely than it must: what was compared is not what their packets show.)
  template <class A>
  const A* match(const Classifier<A>& classifier, const Connection& connection) {
    const std::uint32_t generation = classifier.state_.generation();
    Key first = key();
    const bool turned = connection.put_initiator(first);
    const auto found = classifier.lookup(first);
    Key consulted = turned ? Connection::without_initiator(found.consulted) : found.consulted;
    if ((first.ingress & Key::delivery_bit) != 0) {
      consulted.ingress = found.consulted.ingress;
    }
    consult_key(consulted);
    const std::uint8_t unknown = turned ? Connection::not_its_own : 0;
    depend({&classifier.state_, generation, static_cast<std::uint8_t>(rewritten_parts() | unknown)});
    if (observer_ != nullptr) [[unlikely]] {
      observer_->matched(classifier.name(), first, found.consulted,
                         found.action != nullptr ? observer_->text_of(*found.action) : std::string());
    }
    return found.action;
  }

  template <class T>
  const T& read(const Versioned<T>& versioned) {
    KeyedDependency dependency{&versioned.dependents_, 0};
    {
      const std::lock_guard guard(versioned.dependents_.lock());
      dependency.generation = versioned.dependents_.generation();
    }
    const T& value = versioned.value_.read();
    depend(dependency);
    if (observer_ != nullptr) [[unlikely]] {
      observer_->consulted(versioned.name());
    }
    return value;
  }

  /// The Ethernet address of `address` behind `port`; nullptr if the node does not know it: see `resolve`.
  const MacAddress* neighbour(PortId port, const IpAddress& address) {
    return lookup(state().neighbours().table(), {port, address});
  }

  /// Whether the way over `port` to the neighbour with `address` is up, as far as the node knows: see Paths.
  bool path_up(PortId port, const IpAddress& address) {
    const PathState* path = lookup(state().paths().table(), {port, address});
    return path == nullptr || path->up;
  }

  /// A number below `count` (1 to 65,535) that is the same for all packets of a flow, by the flow hash of the packet as
  /// it was at the start of its pass. Consults all that the hash is made of, so that each flow gets a rule of its own.
  std::uint32_t pick(std::uint32_t count) { return pick(count, hash()); }
  /// Another such number for each `salt`.
  std::uint32_t pick_again(std::uint32_t count, std::uint64_t salt) {
    return pick(count, multiply_fold(hash() ^ salt, 0x9e3779b97f4a7c15U));
  }

  /// Notes that `key` was seen with `value`. An entry that is there has its age renewed, by each packet of this flow.
  template <class K, class V>
  Learned learn(Table<K, V>& table, const std::type_identity_t<K>& key, const std::type_identity_t<V>& value) {
    const auto learned = dry_ ? table.would_learn(key, value) : table.learn(key, value, now());
    if (learned.outcome == Learned::added || learned.outcome == Learned::moved) {
      not_cacheable("state was learned by this packet");
    }
    depend(learned.dependency);
    if (observer_ != nullptr) [[unlikely]] {
      observer_->learned(table.name(), observer_->text_of(key), observer_->text_of(value), learned.outcome);
    }
    return learned.outcome;
  }

  /// The connection that the packet belongs to, or may begin. Consults all that tells connections apart; a rule for
  /// each. What the packet is depends on what was seen of the connection until now, and changes with it.
  Connection connection(ConnectionZone zone = ConnectionZone::by_link());

  // ---- Conditions of each packet ----

  /// Takes one off the TTL or hop limit; false, and nothing changed, if it would not survive (TTL 0 or 1). A guard.
  virtual bool decrement_ttl() = 0;

  /// Whether the packet, as rewritten so far, is at most `mtu` bytes from the L3 header on. A guard.
  virtual bool fits(std::uint32_t mtu) = 0;

  // ---- Actions, in order ----

  /// The field is there and can be set. What the packet is does not change by it: one whose port is set to VXLAN's, or
  /// from it, is what it was until it is looked up again.
  template <class T>
  void set(Field<T> field, std::type_identity_t<T> value) {
    set_field(field.id, to_field<T>(value));
  }
  /// Whether a stage has set the field in this decision: what it holds is the node's, not the sender's.
  template <class T>
  bool was_set(Field<T> field) {
    return was_set(field.id);
  }
  void translate(const Nat& nat);
  /// A new outer tag: priority (3 bits), drop eligible (1), identifier (12). At most two tags.
  virtual void push_vlan(std::uint16_t control) = 0;
  virtual void pop_vlan() = 0;
  /// Puts an Ethernet, IP, UDP and VXLAN header around the packet. After it, no field can be read or set.
  virtual void encapsulate(const Vxlan& vxlan) = 0;
  /// Takes the headers up to and with VXLAN off. After it no field can be read or set; with next() or to(), the inner
  /// packet is looked up at the next stage. There tunnel::vni is `as`, if that is given (24 bits): what this stage
  /// knows of the tunnel, such as who sent by it, is all that later ones can know.
  virtual void decapsulate(std::optional<std::uint32_t> as) = 0;
  void decapsulate() { decapsulate(std::nullopt); }
  virtual void count(Counter& counter) = 0;
  virtual void meter(Meter& meter) = 0;
  virtual void mirror(PortId port) = 0;

  /// This packet's decision must not be kept: every packet of the flow is decided.
  virtual void every_packet() = 0;

  // ---- Verdicts ----

  // In a delivery stage: next(), which behind the last one lets the packet leave, to(), drop() and reject().

  Verdict next() { return {Verdict::Kind::next}; }
  Verdict to(const FlowStage& stage);
  Verdict to(const PacketStage& stage);
  /// Where the port has a delivery side, the packet passes that first, unless it was encapsulated. So do the packets of
  /// `flood` and `select`; mirrored copies do not.
  Verdict output(PortId port) { return {Verdict::Kind::output, port.number}; }
  /// To every port of the VLAN's domain but the ingress port. Absent: domain 0.
  Verdict flood(Maybe<std::uint16_t> vlan = {}) { return {Verdict::Kind::flood, vlan.value_or(0)}; }
  /// To everything in a domain of its own: ports, ports with tags, tunnels.
  Verdict flood(DomainId domain) { return {Verdict::Kind::flood, domain.number}; }
  /// To the group's member for this flow. After it, no field can be read. After encapsulate, the outer header gets the
  /// member's Ethernet addresses.
  Verdict select(Group& group) {
    close("select");
    return {Verdict::Kind::select, 0, 0, &group};
  }
  Verdict select(const NextHops& hops);
  /// The packet, as rewritten so far, is for the node itself: its host part answers or refuses it. Not after
  /// encapsulate or decapsulate.
  Verdict to_host() { return {Verdict::Kind::to_host}; }
  /// The packet waits, as it was when this pass through the graph began, until the Ethernet address of `address` behind
  /// `port` is known, and is then run again from where the pass began. What the decision did to it or counted on the
  /// way is left undone until then. If the address stays unknown, the packet is dropped (neighbour_unreachable).
  Verdict resolve(PortId port, const IpAddress& address) {
    neighbour(port, address);  // the rule goes when it is learned
    return {Verdict::Kind::resolve, port.number, 0, nullptr, address};
  }
  Verdict drop(const DropReason& reason) { return {Verdict::Kind::drop, 0, state().reason(reason)}; }
  /// The sender is told, by the port that the packet came by, in the name of the node's address there, or of that on
  /// the port `as`. Not about packets that came out of a tunnel.
  Verdict reject(const Reject& reject, PortId as = {}) {
    return {Verdict::Kind::reject, RejectNumber{reject.icmp, as, reject.mtu}.packed(), state().reason(reject.reason)};
  }

 protected:
  // What an implementation provides.
  virtual State& state() = 0;
  virtual Nanoseconds now() const = 0;
  virtual Layout layout() = 0;
  virtual bool peek(FieldId field, FieldValue& value) = 0;
  virtual void consult(FieldId field, const FieldValue& mask) = 0;
  virtual Key key() = 0;
  virtual void consult_key(const Key& mask) = 0;
  virtual std::uint8_t rewritten_parts() = 0;
  virtual bool test_flags(Flags flags) = 0;
  virtual void set_field(FieldId field, const FieldValue& value) = 0;
  virtual bool was_set(FieldId field) = 0;
  virtual void depend(const KeyedDependency& dependency) = 0;
  virtual void depend(const RegionDependency& dependency) = 0;
  /// The decision is for this packet only: the next of the flow may not find what this one found.
  virtual void not_cacheable(std::string_view why) = 0;
  /// What the packet has beside its key.
  virtual const TransportFacts& transport() = 0;
  /// The port that it came in by, without noting that it was looked at.
  virtual PortId arrived_by() = 0;
  /// The action.
  virtual void track(const Track& track) = 0;
  virtual bool test_sctp_data() = 0;
  virtual void translate_quoted(const QuotedTranslation& translation) = 0;
  /// The flow hash of the packet as it was at the start of its pass; consults what it is made of.
  virtual std::uint64_t hash() = 0;
  /// No field may be read from here on.
  virtual void close(const char* by) = 0;
  virtual std::uint32_t stage_number(const void* stage) = 0;

  /// Forgets what look-ups returned.
  void forget() {
    used_ = 0;
    overflow_.clear();
  }

  TraceObserver* observer_ = nullptr;
  bool dry_ = false;  ///< nothing is learned: it is only said what would be

 private:
  friend class Connection;

  static std::uint32_t pick(std::uint32_t count, std::uint64_t hash) {
    return static_cast<std::uint32_t>((hash >> 32U) * count >> 32U);
  }

  template <class V>
  const V* keep(const V& value) {
    static_assert(alignof(V) <= 16);
    const std::size_t at = (used_ + alignof(V) - 1) / alignof(V) * alignof(V);
    if (at + sizeof(V) > sizeof arena_) {
      overflow_.push_back(std::make_unique<std::byte[]>(sizeof(V)));
      return new (overflow_.back().get()) V(value);
    }
    used_ = at + sizeof(V);
    return new (arena_ + at) V(value);
  }

  alignas(16) std::byte arena_[512];
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> overflow_;
};

}  // namespace weir
