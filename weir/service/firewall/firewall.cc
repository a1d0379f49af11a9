#include <weir/service/firewall/firewall.h>

#include <algorithm>

#include <weir/flow/fragment_tracker.h>
#include <weir/service/firewall/firewall_state.h>
#include <weir/service/firewall/policy_commands.h>
#include <weir/service/firewall/policy_files.h>

namespace weir {

namespace {

/// A draft that was recorded in an update.
using DraftPtr = std::shared_ptr<PolicyModel::Draft>;

class Firewall final : public Service {
 public:
  Firewall(Node& node, std::unique_ptr<FirewallState> state, ServiceStages stages)
      : Service(stages), node_(node), model_(names_), files_(names_), state_(std::move(state)) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    std::vector<std::string> paths;
    Errors errors;
    for (const Config& path : context.list("policies")) {
      paths.push_back(context.path_of(errors.take(path.string("the path of a file with policies"))));
    }
    if (!errors.empty()) {
      return errors.result();
    }
    const std::string endpoints = context.text("endpoints").empty() ? "" : context.path("endpoints");
    if (auto read = files_.read(paths, endpoints); !read) {
      return read;
    }
    auto with = with_ports(files_.endpoints(), context.ports());
    if (!with) {
      return std::unexpected(with.error());
    }
    PolicyModel::Change change = files_.change_since(said_, model_);
    change.endpoints = std::move(*with);
    const DraftPtr draft = record(std::move(change), update);
    state_->record_ports(model_, *draft, context.ports(), context.boolean("check_sources"), update);
    commit_after(draft, update);
    update.afterwards([this, said = files_.said()] { said_ = said; });
    return {};
  }

  [[nodiscard]] Json state() const override {
    std::size_t here = 0;
    for (const auto& [key, endpoint] : model_.endpoints()) {
      here += node_.find_port(endpoint.entry->port) ? 1 : 0;
    }
    return {{"policies", model_.policies().size()}, {"endpoints", model_.endpoints().size()}, {"behind_ports", here}};
  }

  [[nodiscard]] std::span<const ServiceCall> calls() const override {
    static constexpr std::array<ServiceCall, 5> all{
        {{"apply", "adds the policies of files, or puts them in the place of those of the same names"},
         {"delete", "removes a policy"},
         {"list", "tells all policies"},
         {"endpoints", "tells all endpoints, and how many policies are about each"},
         {"explain", "tells which policies allow or deny traffic from one end to another"}}};
    return all;
  }

  Result<Json> call(std::string_view name, const Json& arguments) override {
    return name == "apply"       ? apply(arguments)
           : name == "delete"    ? remove(arguments)
           : name == "explain"   ? explain(arguments)
           : name == "endpoints" ? Result<Json>(Json{{"endpoints", endpoints_json(model_)}})
                                 : Result<Json>(Json{{"policies", policies_json(model_)}});
  }

  [[nodiscard]] std::vector<ServiceMetric> metrics() const override {
    return {{"policies", "Policies that hold.", false, static_cast<double>(model_.policies().size())},
            {"endpoints", "Endpoints that are known.", false, static_cast<double>(model_.endpoints().size())}};
  }

 private:
  DraftPtr record(PolicyModel::Change change, Update& update) {
    auto draft = std::make_shared<PolicyModel::Draft>(model_.draft(std::move(change)));
    state_->record(model_, *draft, update);
    return draft;
  }

  void commit_after(const DraftPtr& draft, Update& update) {
    update.afterwards([this, draft] { model_.commit(std::move(*draft)); });
  }

  Result<Json> apply(const Json& arguments) {
    const auto read = read_apply(arguments);
    if (!read) {
      return std::unexpected(read.error());
    }
    auto policies = policies_of(read->files);
    return policies ? change({.policies = std::move(*policies)}, read->dry_run) : std::unexpected(policies.error());
  }

  Result<Json> remove(const Json& arguments) {
    const auto read = read_delete(arguments, model_);
    return read ? change({.removed = {read->key}}, read->dry_run) : std::unexpected(read.error());
  }

  Result<Json> explain(const Json& arguments) {
    const auto read = read_explain(arguments);
    if (!read) {
      return std::unexpected(read.error());
    }
    auto answer = weir::explain(model_, {}, read->question);
    if (!answer || read->files.empty()) {
      return answer;
    }
    auto policies = policies_of(read->files);
    if (!policies) {
      return std::unexpected(policies.error());
    }
    auto then = weir::explain(model_, model_.draft({.policies = std::move(*policies)}), read->question);
    if (!then) {
      return then;
    }
    (*answer)["with_files"] = std::move(*then);
    return answer;
  }

  Result<std::vector<ReadPolicy>> policies_of(const std::vector<std::string>& paths) {
    const auto texts = read_texts(paths);
    return texts ? read_policy_files(*texts, names_) : std::unexpected(texts.error());
  }

  Result<Json> change(PolicyModel::Change change, bool dry_run) {
    const auto draft = std::make_shared<PolicyModel::Draft>(model_.draft(std::move(change)));
    Json answer{
        {"changes", changes_json(model_, *draft)}, {"endpoints", draft->endpoints.size()}, {"applied", !dry_run}};
    if (dry_run) {
      return answer;
    }
    const auto done = node_.update([&](Update& update) {
      state_->record(model_, *draft, update);
      commit_after(draft, update);
    });
    return done ? Result<Json>(std::move(answer)) : std::unexpected(done.error());
  }

  Node& node_;
  Names names_;
  PolicyModel model_;
  PolicyFiles files_;
  PolicyFiles::Said said_;  ///< what files said when they were last applied
  std::unique_ptr<FirewallState> state_;
};

/// What fragments pass before `stage`, which asks for ports; the stage in front of both.
const FlowStage& guard_fragments(Graph& graph, const std::string& name, const FlowStage& stage) {
  auto& tracker = graph.add<FragmentTracker>(name + " fragments");
  const auto& gate = graph.add<FragmentGate>(name + " gate", tracker);
  graph.connect(gate, stage);
  graph.connect(tracker, stage);
  return gate;
}

Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  auto state =
      std::make_unique<FirewallState>(context.state(), static_cast<std::uint32_t>(context.number("addresses")));
  Graph& graph = context.node.graph();
  const FlowStage& stage = graph.add<FirewallStage>(context.name(), state->tables());
  const FlowStage& delivery = graph.add<FirewallDelivery>(context.name() + " delivery", state->tables());
  const FlowStage& gate = guard_fragments(graph, context.name(), stage);
  const FlowStage& delivery_gate = guard_fragments(graph, context.name() + " delivery", delivery);
  return std::make_unique<Firewall>(context.node, std::move(state),
                                    ServiceStages{gate, stage, delivery_gate, delivery});
}

}  // namespace

ServiceKind firewall() {
  return {"firewall",
          "Kubernetes network policies for the endpoints behind the node's ports",
          {live({.name = "policies", .type = SettingType::list, .help = "files with policies, YAML of Kubernetes"}),
           live({.name = "endpoints", .type = SettingType::text, .help = "a file that describes endpoints"}),
           live({.name = "check_sources",
                 .type = SettingType::boolean,
                 .help = "whether an endpoint with addresses may send from these only",
                 .otherwise = "true"}),
           number_setting("addresses", "the most addresses that endpoints have together", 65'536, 16, 4'194'304)},
          build};
}

}  // namespace weir
