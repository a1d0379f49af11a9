#include <weir/control/trace.h>

#include <weir/control/rule_text.h>
#include <weir/engine/core/core_executor.h>
#include <weir/engine/engine.h>
#include <weir/flow/describe.h>
#include <weir/packet/pull_up.h>

namespace weir {

namespace {

/// Writes down what decisions look at.
class Recorder final : public TraceObserver {
 public:
  Recorder(Node& node, const Names& names) : node_(node), names_(names) {}

  std::vector<TracedDecision> take() { return std::move(decisions_); }

  void begin(const Key& /*key*/) override { decisions_.emplace_back(); }
  void stage(std::uint8_t number) override { decisions_.back().steps.push_back({names_.stage(number), {}}); }
  void layout(Layout layout) override { note(fmt::format("looks at the layout: {}", layout.to_string())); }
  void read(FieldId field, const FieldValue& value, const FieldValue& mask) override {
    note("reads " + describe(field, value, mask));
  }
  void absent(FieldId field) override { note(fmt::format("asks for {}: absent", spec(field).name)); }
  void looked_up(std::string_view name, const std::string& key, const std::string& value) override {
    note(fmt::format("looks up {} in '{}': {}", key, name, value.empty() ? "not there" : value));
    depend(fmt::format("what '{}' has for {}", name, key));
  }
  void matched(std::string_view name, const Key& key, const Key& mask, const std::string& action) override {
    const auto compared = describe_match(key, mask, Layout{key.layout}, names_);
    std::string fields;
    for (const std::string& phrase : compared) {
      if (!phrase.starts_with("a layout")) {
        fields += (fields.empty() ? "" : ", ") + phrase;
      }
    }
    note(fmt::format("matches the rules of '{}' against {}: {}", name, fields.empty() ? "the layout" : fields,
                     action.empty() ? "none matches" : action));
    depend(fmt::format("the rules of '{}' that this packet could match", name));
  }
  void consulted(std::string_view name) override {
    note(fmt::format("reads {}", name));
    depend(std::string(name));
  }
  void learned(std::string_view name, const std::string& key, const std::string& value, Learned outcome) override {
    static constexpr std::string_view outcomes[] = {"known already", "added", "moved", "fixed, stays as it is",
                                                    "no room"};
    note(fmt::format("learns {} is {} in '{}': {}", key, value, name, outcomes[static_cast<unsigned>(outcome)]));
    depend(fmt::format("what '{}' has for {}, whose age each packet renews", name, key));
  }
  void guarded(GuardKind kind, std::uint32_t number, bool holds) override {
    note(fmt::format("tests each packet: {}", describe(kind, number, holds)));
  }
  void acted(const Action& action) override {
    if (!decisions_.back().steps.empty()) {
      note(describe(action, names_));
    }
  }
  void decided(const Rule& rule) override {
    TracedDecision& decision = decisions_.back();
    decision.match = describe_match(rule.value, rule.mask, Layout{rule.value.layout}, names_);
    for (const Guard& guard : rule.guards) {
      decision.guards.push_back(describe(guard.kind, guard.number, guard.expected));
    }
    for (const Action& action : rule.actions) {
      decision.actions.push_back(describe(action, names_));
    }
    decision.not_cacheable = rule.not_cacheable;
  }
  [[nodiscard]] std::string name_of(PortId port) const override { return names_.port(port.number); }
  [[nodiscard]] std::string name_of(const NextHops& hops) const override {
    const Group* group = node_.state().find_group(hops.group);
    return fmt::format("next hops '{}', MTU {}", group == nullptr ? "?" : group->name(), hops.mtu);
  }

 private:
  void note(std::string event) {
    if (!decisions_.back().steps.empty()) {
      decisions_.back().steps.back().events.push_back(std::move(event));
    }
  }
  void depend(std::string what) {
    auto& known = decisions_.back().dependencies;
    if (std::ranges::find(known, what) == known.end()) {
      known.push_back(std::move(what));
    }
  }

  Node& node_;
  const Names& names_;
  std::vector<TracedDecision> decisions_;
};

/// A packet's headers, a line each.
std::vector<std::string> headers_of(const Key& key, std::uint32_t length) {
  const Layout layout{key.layout};
  std::vector<std::string> lines{fmt::format("{} bytes: {}", length, layout.to_string())};
  std::string group;
  FieldValue all;
  all.bytes.fill(0xff);
  for (unsigned i = 0; i < field_count; ++i) {
    const auto field = static_cast<FieldId>(i);
    if (!present(field, layout) || (field == FieldId::vxlan_vni && layout.tunnel())) {
      continue;
    }
    const std::string text = describe(field, extract(field, key), all);
    const std::string protocol(spec(field).name.substr(0, spec(field).name.find('.')));
    if (protocol == group) {
      lines.back() += "  " + text;
    } else {
      lines.push_back(text);
      group = protocol;
    }
  }
  return lines;
}

}  // namespace

struct PacketTracer::Parts {
  Parts(Node& to, TraceMode how)
      : node(to),
        mode(how),
        names(names_of(to)),
        recorder(to, names),
        frames(to.pool()),
        executor({to.state(), to.pipeline(), to.port_table(), frames, outputs, stats, 0},
                 {.rule_cache = 0, .dry = how == TraceMode::running}),
        reader(to.epochs()) {}

  Packet* take(const TracedFrame& frame) {
    Packet* packet = frames.allocate(frame.bytes);
    if (packet != nullptr) {
      packet->timestamp = frame.time;
      packet->ingress = frame.port.number;
    }
    return packet;
  }

  /// Runs it; calls sent(port, packet) for what leaves.
  template <class Sent>
  void run(Packet* packet, const TracedFrame& frame, Sent sent) {
    if (mode == TraceMode::replay) {
      node.state().expire(frame.time);
    }
    const auto flush = [&] {
      outputs.flush([&](PortId port, std::span<Packet*> packets) {
        for (Packet* out : packets) {
          sent(port, *out);
          frames.free(out);
        }
      });
    };
    DecisionBudget budget;
    outputs.on_relief(flush);
    executor.process(frame.port, std::span(&packet, 1), frame.time, budget);
    flush();
    outputs.on_relief({});
  }

  Node& node;
  TraceMode mode;
  Names names;
  Recorder recorder;
  PacketCache frames;
  Outputs outputs;
  WorkerStats stats;
  CoreExecutor executor;
  EpochScope reader;
};

PacketTracer::PacketTracer(Node& node, TraceMode mode) : parts_(std::make_unique<Parts>(node, mode)) {}
PacketTracer::~PacketTracer() = default;

void PacketTracer::pass(const TracedFrame& frame) {
  if (Packet* packet = parts_->take(frame)) {
    parts_->run(packet, frame, [](PortId, const Packet&) {});
  }
}

TraceReport PacketTracer::trace(const TracedFrame& frame) {
  Parts& parts = *parts_;
  TraceReport report;
  report.port = parts.names.port(frame.port.number);
  Packet* packet = parts.take(frame);
  if (packet == nullptr) {
    report.drops.emplace_back("no_frames: the frame is too long for the pool of a trace");
    return report;
  }
  Key key;
  pull_up_and_parse(parts.frames, *packet, key);
  report.packet = headers_of(key, packet->length);
  key.ingress = frame.port.number;
  if (parts.mode == TraceMode::running) {
    key.stage = parts.node.pipeline().entry_of(frame.port);
    report.cached = rules_for(parts.node, key);
  }
  std::array<std::uint64_t, max_reasons> before{};
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] = parts.stats.drops[i].get();
  }
  parts.executor.flow().set_observer(&parts.recorder);
  parts.run(packet, frame, [&](PortId port, const Packet& out) {
    report.outputs.push_back(fmt::format("{}: {} bytes", parts.names.port(port.number), out.length));
  });
  parts.executor.flow().set_observer(nullptr);
  report.decisions = parts.recorder.take();
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (parts.stats.drops[i].get() != before[i]) {
      const DropReason reason = parts.node.state().reason(static_cast<ReasonId>(i));
      report.drops.push_back(fmt::format("{}: {}", reason.name, reason.help));
    }
  }
  const Placement placement = place(parts.executor.flow().rule(), {});
  report.placement = fmt::format("{}: {}", placement.engine, placement.reason);
  return report;
}

}  // namespace weir
