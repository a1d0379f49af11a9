#pragma once
// What a service works with when it is built, and when it is told new settings.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weir/runtime/node.h>
#include <weir/service/setting.h>

namespace weir {

class Service;
struct ServiceKind;

/// A port as services see it.
struct ServicePort {
  std::string name;
  PortId id;
  PortOptions options;
};

/// One service of a node, by its name.
struct NamedService {
  std::string name;
  std::unique_ptr<Service> service;
};

/// Settings that were checked against the schema: the accessors give what is there, or the default, and cannot fail.
class ServiceContext {
 public:
  /// `folder`: what paths in the settings start from. `ports`: those that there will be when the settings hold.
  /// `built`: the services that were built before. All but the config by reference; they outlive the context.
  ServiceContext(Node& to, const ServiceKind& kind, Config settings, const std::filesystem::path& folder,
                 std::span<const ServicePort> ports, std::span<const NamedService> built);

  Node& node;

  /// The service's name: a prefix for those of its stages and tables.
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] State& state() const { return node.state(); }
  [[nodiscard]] std::span<const ServicePort> ports() const { return ports_; }

  [[nodiscard]] std::int64_t number(std::string_view setting) const;
  [[nodiscard]] std::string text(std::string_view setting) const;
  [[nodiscard]] bool boolean(std::string_view setting) const;
  [[nodiscard]] std::span<const Config> list(std::string_view setting) const;
  [[nodiscard]] std::span<const Config::Entry> map(std::string_view setting) const;
  /// The setting's path, from the folder that it is relative to.
  [[nodiscard]] std::string path(std::string_view setting) const;
  /// The same for a path that stands in a list or map.
  [[nodiscard]] std::string path_of(const std::string& text) const;
  /// The setting with its place; null if it is not given.
  [[nodiscard]] Config config(std::string_view setting) const;
  /// The port that `value` names. An error lists the ports.
  [[nodiscard]] Result<PortId> port(const Config& value) const;
  /// Next hops for a select group: a list of {port: NAME, mac: the next hop's, from: the node's own on that port}.
  [[nodiscard]] Result<std::vector<Member>> members(const Config& value) const;

  /// A service that this one's kind names in `needs`; nullptr only if it does not.
  template <class S>
  [[nodiscard]] S* needed(std::string_view other) const {
    return dynamic_cast<S*>(find(other));
  }

 private:
  [[nodiscard]] const Setting& schema(std::string_view setting) const;
  [[nodiscard]] Service* find(std::string_view other) const;

  const ServiceKind& kind_;
  Config settings_;
  const std::filesystem::path& folder_;
  std::span<const ServicePort> ports_;
  std::span<const NamedService> built_;
};

}  // namespace weir
