#pragma once
// A node with the services that its file asked for, and what changes it while it runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weir/control/chains.h>
#include <weir/control/node_file.h>

namespace weir {

/// One difference between what a node is and what a file asks for.
struct NodeChange {
  enum class Kind : std::uint8_t { add, remove, change };
  Kind kind;
  std::string what;    ///< "port pod-a", "service acl_firewall", "chain default"
  std::string detail;  ///< "memory:, label app=web", "default: allow -> deny"
};

/// How the node is to be built.
enum class LoadMode : std::uint8_t {
  run,    ///< with its devices open: files are created
  check,  ///< without: nothing is written; captures to be read are opened and closed
  trace,  ///< without; prepared for `trace_packet`
};

/// What the command line changes in a node file.
struct NodeOverrides {
  bool no_rule_cache = false;
  std::optional<EngineKind> engine;
};

/// Builds a node from its file; then the file's ports, labels, addresses, chains and those settings of services that
/// can may be changed while it runs, each time as one transaction. Any thread but a worker's; one change at a time.
class ManagedNode {
 public:
  /// With its ports, services and chains, not started.
  static Result<std::unique_ptr<ManagedNode>> build(const NodeFile& file, LoadMode mode = LoadMode::run,
                                                    const NodeOverrides& overrides = {});
  /// NodeFile::read, then build.
  static Result<std::unique_ptr<ManagedNode>> load(const std::string& path, const ServiceRegistry& registry,
                                                   LoadMode mode = LoadMode::run, const NodeOverrides& overrides = {});

  [[nodiscard]] Node& node() { return *node_; }

  /// What the node is now, as a file that says it.
  [[nodiscard]] NodeFile file() const;
  /// Counts the changes that were made.
  [[nodiscard]] std::uint64_t revision() const;

  /// What `apply` would change. Errors: what cannot change while a node runs, a line each; what a service finds wrong
  /// with its settings.
  Result<std::vector<NodeChange>> compare(const NodeFile& to);

  /// Makes the node what `to` says; when it returns, every packet that a worker takes meets the new one. On an error
  /// everything is as it was; but a port whose device had to be closed before another could be opened has lost what was
  /// learned on it.
  Result<std::vector<NodeChange>> apply(const NodeFile& to);

  /// `edit` changes a copy of the file, which is then applied.
  Result<std::vector<NodeChange>> change(const std::function<Result<>(NodeFile&)>& edit);

  /// Calls visit(name, Service&) with the services locked against other calls of theirs.
  template <class Visit>
  void for_each_service(Visit visit) {
    const std::lock_guard guard(mutex_);
    for (const NamedService& service : services_) {
      visit(service.name, *service.service);
    }
  }

 private:
  explicit ManagedNode(NodeFile file) : file_(std::move(file)) {}

  struct PortSteps;
  class Transaction;

  Result<> build_ports(LoadMode mode);
  Result<> build_services();
  Result<> build_service(std::size_t index, std::vector<int>& states);
  Result<> check_chains(const NodeFile& file) const;
  Result<> check_live(const NodeFile& to) const;
  /// The ports as `to` has them; those that are not there yet have no valid number.
  [[nodiscard]] std::vector<ServicePort> ports_of(const NodeFile& to) const;
  Result<> configure_services(const NodeFile& to, std::span<const ServicePort> ports, Update& update);
  Result<std::vector<NodeChange>> compare_locked(const NodeFile& to);
  Result<std::vector<NodeChange>> apply_locked(const NodeFile& to);

  NodeFile file_;
  // These two live longer than the node, whose workers run their stages.
  std::vector<NamedService> services_;
  std::unique_ptr<Chains> chains_;
  std::unique_ptr<Node> node_;
  std::uint64_t revision_ = 0;
  mutable std::mutex mutex_;  // guards all but node_
};

}  // namespace weir
