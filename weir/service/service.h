#pragma once
// Services: named units that put stages into a node's graph, turn settings into state, and answer questions.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <weir/flow/update.h>
#include <weir/runtime/graph.h>
#include <weir/service/service_context.h>
#include <weir/service/setting.h>

namespace weir {

using Json = nlohmann::ordered_json;

/// The part of the graph that a service made.
struct ServiceStages {
  StageRef entry;
  std::optional<StageRef> exit;  ///< the stage whose next() leaves the service; nothing if it always ends the chain
  /// What packets to the chain's host ports pass before they are delivered, if anything. See Flow::egress.
  std::optional<StageRef> delivery = {};
  std::optional<StageRef> delivery_exit = {};  ///< the stage whose next() leaves it, if that is another one
};

/// Something that a service can be asked to do.
struct ServiceCall {
  std::string_view name;
  std::string_view help;  ///< one line
};

/// A number that a service measures, beside the counters, tables and drop reasons that the node knows of.
struct ServiceMetric {
  std::string_view name;  ///< becomes weir_SERVICE_NAME
  std::string_view help;
  bool counter;  ///< false: a gauge
  double value;
};

/// A service of a node, for as long as the node lives. Its stages decide; this is its control side. All functions are
/// called by one thread at a time, never a worker's.
class Service {
 public:
  explicit Service(ServiceStages stages) : stages_(stages) {}
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] const ServiceStages& stages() const { return stages_; }

  /// Records in `update` what makes the state what the context's settings and ports ask for, whatever it was before
  /// (Update::assign). Called when the node is built, and each time that a node file is applied or its ports change;
  /// also for a difference that is only shown: it changes nothing but through `update`. An error names the setting's
  /// place; then everything stays as it was.
  virtual Result<> configure(const ServiceContext& context, Update& update) {
    return (void)context, (void)update, Result<>{};
  }

  /// About every millisecond while the node runs: looks at what changes from outside. Does not wait.
  virtual void tend() {}

  /// What it has to say of itself, an object.
  [[nodiscard]] virtual Json state() const { return Json::object(); }
  /// What it can be asked to do.
  [[nodiscard]] virtual std::span<const ServiceCall> calls() const { return {}; }
  /// Does one of `calls`; the answer is an object. An error says what is wrong with the arguments, or why it cannot be
  /// done.
  virtual Result<Json> call(std::string_view name, const Json& arguments);
  [[nodiscard]] virtual std::vector<ServiceMetric> metrics() const { return {}; }

 private:
  ServiceStages stages_;
};

/// A service whose `configure` is a function `Result<>(const ServiceContext&, Update&)`, and which says no more.
template <class Configure>
std::unique_ptr<Service> make_service(ServiceStages stages, Configure configure) {
  class Configured final : public Service {
   public:
    Configured(ServiceStages both, Configure function) : Service(both), configure_(std::move(function)) {}
    Result<> configure(const ServiceContext& context, Update& update) override { return configure_(context, update); }

   private:
    Configure configure_;
  };
  return std::make_unique<Configured>(stages, std::move(configure));
}

/// One kind of service.
struct ServiceKind {
  std::string name;
  std::string help;  ///< one line
  std::vector<Setting> settings;
  /// Adds stages and state to the node, which is not started. `configure` follows. An error names the setting's place.
  Result<std::unique_ptr<Service>> (*build)(ServiceContext& context);
  /// Names of the services that it works with; they are built before it, whatever their order in the file.
  std::vector<std::string> needs = {};
};

/// The kinds that a program knows. Plain data: every program fills its own.
class ServiceRegistry {
 public:
  /// Names are unique; the later of two of the same name stays.
  void add(ServiceKind kind);

  /// nullptr if there is none.
  [[nodiscard]] const ServiceKind* find(std::string_view name) const;
  [[nodiscard]] const std::vector<ServiceKind>& kinds() const { return kinds_; }

  /// The kind that `name` names. An error lists what there is.
  [[nodiscard]] Result<const ServiceKind*> require(const Config& name) const;

 private:
  std::vector<ServiceKind> kinds_;
};

/// Builds a service, whose settings were checked, and configures it.
Result<std::unique_ptr<Service>> build_service(ServiceContext& context, const ServiceKind& kind);
/// The same for the only service of a node that has its ports: checks the settings first. `folder` must outlive it.
Result<std::unique_ptr<Service>> build_service(Node& node, const ServiceKind& kind, const Config& settings,
                                               const std::filesystem::path& folder);

/// The ports that the node has now.
std::vector<ServicePort> service_ports(const Node& node);

}  // namespace weir
