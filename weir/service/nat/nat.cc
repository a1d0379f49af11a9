#include <weir/service/nat/nat.h>

#include <memory>

#include <weir/flow/fragment_tracker.h>
#include <weir/service/nat/nat_rules.h>

namespace weir {

namespace {

/// Of the connections that are translated; those of the firewall and of others are kept apart.
constexpr ConnectionZone zone = ConnectionZone::shared(1);

class NatStage final : public FlowStage {
 public:
  explicit NatStage(const Versioned<NatRules>& rules) : rules_(rules) {}

  [[nodiscard]] Verdict decide(Flow& flow) const override {
    if (!flow.has(layers::ip)) {
      return flow.next();
    }
    Connection connection = flow.connection(zone);
    if (connection.is_new() || connection.invalid()) {
      const auto translation = flow.read(rules_).translation(connection.initiator());
      if (!translation && !connection.translated()) {
        return flow.next();  // passes as it is, and is not followed
      }
      if (connection.invalid()) {
        return flow.drop(drop::invalid_connection);
      }
      switch (connection.commit(translation.value_or(Translation{}))) {
        case Committed::full:
          return flow.drop(drop::connections_full);
        case Committed::no_port:
          return flow.drop(drop::nat_exhausted);
        default:
          break;
      }
    } else {
      connection.commit();
    }
    connection.translate();
    return flow.next();
  }

 private:
  const Versioned<NatRules>& rules_;
};

class NatService final : public Service {
 public:
  NatService(Node& node, ServiceStages stages, Versioned<NatRules>& rules)
      : Service(stages), node_(node), rules_(rules) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    auto rules = read_nat_rules(context);
    if (!rules) {
      return std::unexpected(rules.error());
    }
    update.assign(rules_, std::move(*rules));
    return {};
  }

  [[nodiscard]] std::vector<ServiceMetric> metrics() const override {
    const Connections& connections = node_.state().connections();
    return {{"connections", "Connections that are translated.", false, static_cast<double>(connections.translated())},
            {"ports_exhausted", "Connections that found no port for their translation.", true,
             static_cast<double>(connections.ports_exhausted())}};
  }

 private:
  Node& node_;
  Versioned<NatRules>& rules_;
};

Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  Graph& graph = context.node.graph();
  auto& rules = context.state().versioned<NatRules>("nat rules", {});
  context.state().connections();
  auto& tracker = graph.add<FragmentTracker>(context.name() + " fragments");
  const auto& gate = graph.add<FragmentGate>(context.name() + " gate", tracker);
  const auto& stage = graph.add<NatStage>(context.name(), rules);
  graph.connect(gate, stage);
  graph.connect(tracker, stage);
  return std::make_unique<NatService>(context.node, ServiceStages{gate, stage}, rules);
}

}  // namespace

ServiceKind nat() {
  const std::string masquerade =
      "[{from: PREFIX, to: ADDRESS or PORT, except: [PREFIXES], ports: 1024-65535}]: hosts that others see as one";
  const std::string forward =
      "[{address: ADDRESS or PORT, protocol: tcp, port: 80, to: ADDRESS, to_port: 8080}]: what leads to a host";
  return {"nat",
          "translates addresses by connection: many hosts behind one address, and ports that lead to one of them",
          {live({.name = "masquerade", .type = SettingType::list, .help = masquerade}),
           live({.name = "forward", .type = SettingType::list, .help = forward})},
          build};
}

}  // namespace weir
