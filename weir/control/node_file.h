#pragma once
// The node file: a node's ports, workers, services and chains as YAML (docs/architecture.md, section 8).

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/base/config.h>
#include <weir/device/device_spec.h>
#include <weir/runtime/node.h>
#include <weir/service/service.h>

namespace weir {

/// A node file that was read and found well-formed: every key known, every value of its type, every name defined. What
/// only building can tell (a service's own files, a device that is not there) is not checked yet.
struct NodeFile {
  struct PortEntry {
    std::string name;
    Config place;       ///< of its device
    DeviceSpec device;  ///< with paths that start from the working directory
    PortOptions options;
  };
  struct ServiceEntry {
    const ServiceKind* kind;  ///< of the registry given
    Config name;
    Config settings;
  };

  /// Services that packets of some ports pass, one after the other.
  struct ChainEntry {
    std::string name;
    std::map<std::string, std::string> selector;  ///< labels that a port must have; empty: every port
    std::vector<std::size_t> services;            ///< indices into `services`, in their order

    [[nodiscard]] bool takes(const PortOptions& port) const;
  };

  const ServiceRegistry* registry = nullptr;  ///< that its services are of; outlives it
  NodeOptions options;
  std::vector<PortEntry> ports;
  std::vector<ServiceEntry> services;  ///< in the order of the file
  std::vector<ChainEntry> chains;      ///< a port's is the first that takes it; each port has one
  std::filesystem::path folder;        ///< what paths start from
  std::string control;                 ///< path of the control socket; "off"; empty: where its name says

  /// Index into `chains`; chains.size() if none takes the port.
  [[nodiscard]] std::size_t chain_of(const PortOptions& port) const;

  /// Errors name every mistake, a line each, with its place, what was found and what is allowed.
  static Result<NodeFile> read(const std::string& path, const ServiceRegistry& registry);
  /// `folder` as if the text had been read from a file there.
  static Result<NodeFile> parse(std::string_view text, std::string name, const std::filesystem::path& folder,
                                const ServiceRegistry& registry);
};

}  // namespace weir
