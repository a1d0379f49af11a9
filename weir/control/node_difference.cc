#include <weir/control/internal/node_difference.h>

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

namespace weir {

namespace {

std::string labels_text(const std::map<std::string, std::string>& labels) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : labels) {
    parts.push_back(fmt::format("{}={}", name, value));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, " "));
}

std::string addresses_text(const PortOptions& options) {
  std::vector<std::string> parts;
  for (const auto& [address, network] : options.addresses) {
    parts.push_back(fmt::format("{}/{}", address.to_string(), network.length));
  }
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, " "));
}

std::string mac_text(const PortOptions& options) { return options.mac ? options.mac->to_string() : "its own"; }

std::string mtu_text(const PortOptions& options) {
  return options.mtu ? fmt::format("{}", *options.mtu) : std::string("its own");
}

std::string port_text(const NodeFile::PortEntry& port) {
  std::string text = port.device.to_string();
  if (port.options.role != PortRole::host) {
    text += fmt::format(", {}", name_of(port.options.role));
  }
  if (!port.options.labels.empty()) {
    text += fmt::format(", labels {}", labels_text(port.options.labels));
  }
  if (!port.options.addresses.empty()) {
    text += fmt::format(", addresses {}", addresses_text(port.options));
  }
  if (port.options.mac) {
    text += fmt::format(", mac {}", mac_text(port.options));
  }
  if (port.options.mtu) {
    text += fmt::format(", mtu {}", mtu_text(port.options));
  }
  return text;
}

/// Words for what differs, joined.
class Words {
 public:
  template <class T>
  void compare(std::string_view name, const T& from, const T& to) {
    if (!(from == to)) {
      words_.push_back(fmt::format("{}: {} -> {}", name, from, to));
    }
  }
  [[nodiscard]] std::string take() const { return fmt::format("{}", fmt::join(words_, "; ")); }

 private:
  std::vector<std::string> words_;
};

std::string chain_text(const NodeFile& file, const NodeFile::ChainEntry& chain) {
  std::vector<std::string> services;
  for (const std::size_t service : chain.services) {
    services.push_back(file.services[service].kind->name);
  }
  return fmt::format("{} for {}", fmt::join(services, ", "),
                     chain.selector.empty() ? "every port" : labels_text(chain.selector));
}

void compare_ports(const NodeFile& from, const NodeFile& to, std::vector<NodeChange>& changes) {
  using Kind = NodeChange::Kind;
  for (const NodeFile::PortEntry& port : from.ports) {
    if (find_port(to, port.name) == nullptr) {
      changes.push_back({Kind::remove, "port " + port.name, port_text(port)});
    }
  }
  for (const NodeFile::PortEntry& port : to.ports) {
    const NodeFile::PortEntry* before = find_port(from, port.name);
    if (before == nullptr) {
      changes.push_back({Kind::add, "port " + port.name, port_text(port)});
      continue;
    }
    Words words;
    words.compare("device", before->device.to_string(), port.device.to_string());
    words.compare("role", std::string(name_of(before->options.role)), std::string(name_of(port.options.role)));
    words.compare("labels", labels_text(before->options.labels), labels_text(port.options.labels));
    words.compare("addresses", addresses_text(before->options), addresses_text(port.options));
    words.compare("mac", mac_text(before->options), mac_text(port.options));
    words.compare("mtu", mtu_text(before->options), mtu_text(port.options));
    if (std::string detail = words.take(); !detail.empty()) {
      changes.push_back({Kind::change, "port " + port.name, std::move(detail)});
    }
  }
}

void compare_chains(const NodeFile& from, const NodeFile& to, std::vector<NodeChange>& changes) {
  using Kind = NodeChange::Kind;
  const auto find = [](const NodeFile& file, const std::string& name) {
    const auto place = std::ranges::find(file.chains, name, &NodeFile::ChainEntry::name);
    return place == file.chains.end() ? nullptr : &*place;
  };
  for (const NodeFile::ChainEntry& chain : from.chains) {
    if (find(to, chain.name) == nullptr) {
      changes.push_back({Kind::remove, "chain " + chain.name, chain_text(from, chain)});
    }
  }
  std::vector<std::string> order_before;
  std::vector<std::string> order_after;
  for (const NodeFile::ChainEntry& chain : to.chains) {
    const NodeFile::ChainEntry* before = find(from, chain.name);
    if (before == nullptr) {
      changes.push_back({Kind::add, "chain " + chain.name, chain_text(to, chain)});
      continue;
    }
    order_after.push_back(chain.name);
    const std::string was = chain_text(from, *before);
    const std::string is = chain_text(to, chain);
    if (was != is) {
      changes.push_back({Kind::change, "chain " + chain.name, fmt::format("{} -> {}", was, is)});
    }
  }
  for (const NodeFile::ChainEntry& chain : from.chains) {
    if (find(to, chain.name) != nullptr) {
      order_before.push_back(chain.name);
    }
  }
  if (order_before != order_after) {
    changes.push_back({Kind::change, "order of chains",
                       fmt::format("{} -> {}", fmt::join(order_before, ", "), fmt::join(order_after, ", "))});
  }
}

const NodeFile::ServiceEntry* find_service(const NodeFile& file, const ServiceKind& kind) {
  const auto place =
      std::ranges::find_if(file.services, [&](const auto& entry) { return entry.kind->name == kind.name; });
  return place == file.services.end() ? nullptr : &*place;
}

/// Calls visit(setting, before, after) for the settings that differ.
template <class Visit>
void for_each_changed_setting(const NodeFile::ServiceEntry& from, const NodeFile::ServiceEntry& to, Visit visit) {
  for (const Setting& setting : to.kind->settings) {
    const Config before = from.settings.get(setting.name);
    const Config after = to.settings.get(setting.name);
    if (!before.same_as(after)) {
      visit(setting, before, after);
    }
  }
}

void compare_services(const NodeFile& from, const NodeFile& to, std::vector<NodeChange>& changes) {
  for (const NodeFile::ServiceEntry& service : to.services) {
    const NodeFile::ServiceEntry* before = find_service(from, *service.kind);
    Words words;
    if (before != nullptr) {
      for_each_changed_setting(*before, service, [&](const Setting& setting, const Config& was, const Config& is) {
        const auto text = [&](const Config& value) {
          return !value.is_null() ? value.text() : setting.otherwise.empty() ? "not given" : setting.otherwise;
        };
        words.compare(setting.name, text(was), text(is));
      });
    }
    if (std::string detail = words.take(); !detail.empty()) {
      changes.push_back({NodeChange::Kind::change, "service " + service.kind->name, std::move(detail)});
    }
  }
}

void check_options(const NodeOptions& from, const NodeOptions& to, Errors& errors) {
  constexpr std::array idle{"poll", "adaptive", "interrupt"};
  constexpr std::array engine{"core", "reference"};
  const auto check = [&](std::string_view name, const auto& was, const auto& is) {
    if (was != is) {
      errors.add(Error{fmt::format("{}: {} -> {} takes a restart of the node", name, was, is)});
    }
  };
  check("node", from.name, to.name);
  check("workers.count", from.workers, to.workers);
  check("workers.idle", std::string(idle.at(static_cast<std::size_t>(from.idle))),
        std::string(idle.at(static_cast<std::size_t>(to.idle))));
  check("engines", std::string(engine.at(static_cast<std::size_t>(from.engine))),
        std::string(engine.at(static_cast<std::size_t>(to.engine))));
  check("rule_cache", from.rule_cache, to.rule_cache);
  check("connections.limit", from.connections, to.connections);
  if (from.connection_timeouts != to.connection_timeouts) {
    errors.add(Error{"connections: other timeouts take a restart of the node"});
  }
  check("decision_budget", from.decision_share.percent, to.decision_share.percent);
  check("seed", from.seed, to.seed);
  check("frames", from.frames, to.frames);
  check("batch", from.batch, to.batch);
  check("pin", from.pin, to.pin);
  if (from.capture_time != to.capture_time) {
    const char* const now = from.capture_time ? "capture" : "system";
    errors.add(
        Error{fmt::format("the clock is that of the {}, which cannot change while the node runs; write 'clock: {}'",
                          from.capture_time ? "captures" : "system", now)});
  }
}

}  // namespace

const NodeFile::PortEntry* find_port(const NodeFile& file, std::string_view name) {
  const auto place = std::ranges::find(file.ports, name, &NodeFile::PortEntry::name);
  return place == file.ports.end() ? nullptr : &*place;
}

Result<> check_live_changes(const NodeFile& from, const NodeFile& to) {
  Errors errors;
  check_options(from.options, to.options, errors);
  if (from.control != to.control) {
    errors.add(Error{fmt::format("control: '{}' -> '{}' takes a restart of the node", from.control, to.control)});
  }
  for (const NodeFile::ServiceEntry& service : from.services) {
    if (find_service(to, *service.kind) == nullptr) {
      errors.add(
          Error{fmt::format("service '{}' is not in the new file; a service stays while its node runs: leave it "
                            "out of the chains, or restart the node",
                            service.kind->name)});
    }
  }
  for (const NodeFile::ServiceEntry& service : to.services) {
    const NodeFile::ServiceEntry* before = find_service(from, *service.kind);
    if (before == nullptr) {
      errors.take(
          service.name.error("service '{}' cannot be added while the node runs; restart the node", service.kind->name));
      continue;
    }
    for_each_changed_setting(*before, service, [&](const Setting& setting, const Config& was, const Config& is) {
      if (!setting.live) {
        errors.take(is.error("'{}' of {} cannot change while the node runs ({} -> {}); restart the node", setting.name,
                             service.kind->name, was.text(), is.text()));
      }
    });
  }
  return errors.result();
}

std::vector<NodeChange> differences(const NodeFile& from, const NodeFile& to) {
  std::vector<NodeChange> changes;
  compare_ports(from, to, changes);
  compare_services(from, to, changes);
  compare_chains(from, to, changes);
  return changes;
}

}  // namespace weir
