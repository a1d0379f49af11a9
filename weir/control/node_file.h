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

  NodeOptions options;
  std::vector<PortEntry> ports;
  std::vector<ServiceEntry> services;  ///< in the order in which chains name them
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

/// What the command line changes in a node file.
struct NodeOverrides {
  bool no_rule_cache = false;
  std::optional<EngineKind> engine;
};

/// How the node is to be built.
enum class LoadMode : std::uint8_t {
  run,    ///< with its devices open: files are created
  check,  ///< without: nothing is written; captures to be read are opened and closed
  trace,  ///< without; prepared for `trace_packet`
};

/// A node with its ports, services and chain, not started.
Result<std::unique_ptr<Node>> build_node(const NodeFile& file, LoadMode mode = LoadMode::run,
                                         const NodeOverrides& overrides = {});

/// read, then build.
Result<std::unique_ptr<Node>> load_node(const std::string& path, const ServiceRegistry& registry,
                                        LoadMode mode = LoadMode::run, const NodeOverrides& overrides = {});

}  // namespace weir
