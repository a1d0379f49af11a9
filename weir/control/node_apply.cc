// A change of a node that runs, as one transaction.

#include <algorithm>
#include <utility>

#include <weir/base/log.h>
#include <weir/control/device_use.h>
#include <weir/control/internal/node_difference.h>

namespace weir {

namespace {

/// Whether one of them must be closed before the other can be opened.
bool exclude_each_other(const DeviceSpec& a, const DeviceSpec& b) {
  const auto uses = uses_of(a);
  return std::ranges::any_of(uses_of(b), [&](const DeviceUse& use) {
    return std::ranges::any_of(
        uses, [&](const DeviceUse& other) { return use.what == other.what && (use.alone || other.alone); });
  });
}

std::string text_of(const Difference& difference) {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count != 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    }
  };
  add(difference.added, "added");
  add(difference.removed, "removed");
  add(difference.changed, "changed");
  return text;
}

}  // namespace

std::vector<ServicePort> ManagedNode::ports_of(const NodeFile& to) const {
  std::vector<ServicePort> ports;
  for (const NodeFile::PortEntry& port : to.ports) {
    ports.push_back({port.name, node_->find_port(port.name).value_or(PortId{}), port.options});
  }
  return ports;
}

Result<> ManagedNode::configure_services(const NodeFile& to, std::span<const ServicePort> ports, Update& update) {
  Errors errors;
  for (const NamedService& service : services_) {
    const auto entry = std::ranges::find_if(to.services, [&](const auto& e) { return e.kind->name == service.name; });
    const ServiceContext context(*node_, *entry->kind, entry->settings, to.folder, ports, services_);
    errors.take(service.service->configure(context, update));
  }
  return errors.result();
}

Result<std::vector<NodeChange>> ManagedNode::compare_locked(const NodeFile& to) {
  if (auto live = check_live_changes(file_, to); !live) {
    return std::unexpected(live.error());
  }
  if (auto chains = check_chains(to); !chains) {
    return std::unexpected(chains.error());
  }
  std::vector<NodeChange> changes = differences(file_, to);
  Update update;
  if (auto configured = configure_services(to, ports_of(to), update); !configured) {
    return std::unexpected(configured.error());
  }
  for (const Difference& difference : update.preview(node_->state())) {
    changes.push_back({NodeChange::Kind::change, difference.name, text_of(difference)});
  }
  return changes;
}

/// Ports in the steps that a change takes them through, and back again if it fails.
class ManagedNode::Transaction {
 public:
  Transaction(ManagedNode& managed, const NodeFile& to) : managed_(managed), node_(*managed.node_), to_(to) {
    const NodeFile& from = managed.file_;
    for (const NodeFile::PortEntry& port : to.ports) {
      const NodeFile::PortEntry* before = find_port(from, port.name);
      if (before == nullptr || before->device != port.device) {
        opening_.push_back(&port);
      } else if (before->options != port.options) {
        changing_.push_back(&port);
      }
    }
    for (const NodeFile::PortEntry& port : from.ports) {
      const NodeFile::PortEntry* after = find_port(to, port.name);
      const bool replaced = after != nullptr && after->device != port.device;
      const bool in_the_way = std::ranges::any_of(
          opening_, [&](const auto* opened) { return exclude_each_other(opened->device, port.device); });
      if (replaced || (after == nullptr && in_the_way)) {
        closing_first_.push_back(&port);
      } else if (after == nullptr) {
        closing_.push_back(&port);
      }
    }
  }

  Result<> run() {
    Result<> done = open();
    done = done ? commit() : done;
    if (!done) {
      undo();
      return done;
    }
    for (const PortId port : opened_) {
      set_up(port, true);
    }
    for (const NodeFile::PortEntry* port : closing_) {
      node_.detach_port(*node_.find_port(port->name));
    }
    return {};
  }

 private:
  Result<PortId> attach(const NodeFile::PortEntry& port) {
    auto device = make_device(port.device);
    auto attached = device ? node_.attach_port(port.name, std::move(*device), port.options)
                           : Result<PortId>(std::unexpected(device.error()));
    return attached ? attached : std::unexpected(attached.error().at(port.place.place()));
  }

  /// Takes a port out by itself.
  void close(const NodeFile::PortEntry& port) {
    const PortId id = *node_.find_port(port.name);
    if (auto removed = node_.remove_port(id); !removed) {
      log::error("port '{}': {}", port.name, removed.error().message);
    }
    managed_.chains_->forget(id);
  }

  Result<> open() {
    for (; closed_first_ < closing_first_.size(); ++closed_first_) {
      close(*closing_first_[closed_first_]);
    }
    Errors errors;
    for (const NodeFile::PortEntry* port : opening_) {
      if (const auto opened = attach(*port)) {
        opened_.push_back(*opened);
      } else {
        errors.add(opened.error());
      }
    }
    return errors.result();
  }

  /// All of the node's state, at once. Ports that go and those whose addresses change are down meanwhile.
  Result<> commit() {
    for (const auto* ports : {&closing_, &changing_}) {
      for (const NodeFile::PortEntry* port : *ports) {
        const PortId id = *node_.find_port(port->name);
        if (node_.port(id).wanted_up && (ports == &closing_ || !only_labels_change(*port))) {
          set_up(id, false);
          taken_down_.push_back(id);
        }
      }
    }
    Result<> configured;
    const std::vector<ServicePort> ports = managed_.ports_of(to_);
    auto updated = node_.update([&](Update& update) {
      for (const PortId port : opened_) {
        update.flood_to(port);
      }
      configured = managed_.configure_services(to_, ports, update);
      managed_.chains_->assign(to_, ports, update);
      for (const NodeFile::PortEntry* port : closing_) {
        update.forget(*node_.find_port(port->name));
      }
      if (!configured) {
        update = Update();  // of which nothing is to stay
      }
    });
    if (!configured || !updated) {
      return configured ? std::unexpected(updated.error()) : configured;
    }
    managed_.chains_->commit();
    for (const NodeFile::PortEntry* port : closing_) {
      managed_.chains_->forget(*node_.find_port(port->name));
    }
    for (const NodeFile::PortEntry* port : changing_) {
      const PortId id = *node_.find_port(port->name);
      node_.set_port_options(id, port->options);
      if (std::ranges::find(taken_down_, id) != taken_down_.end()) {
        set_up(id, true);
      }
    }
    return {};
  }

  // The port is there; that is all that can fail.
  void set_up(PortId port, bool up) {
    if (auto set = node_.set_port_up(port, up); !set) {
      log::error("{}", set.error().message);
    }
  }

  bool only_labels_change(const NodeFile::PortEntry& port) const {
    const PortOptions& before = find_port(managed_.file_, port.name)->options;
    return before.addresses == port.options.addresses && before.role == port.options.role &&
           before.mac == port.options.mac && before.mtu == port.options.mtu;
  }

  void undo() {
    for (const PortId port : taken_down_) {
      set_up(port, true);
    }
    for (const PortId port : opened_) {
      node_.detach_port(port);
    }
    std::vector<PortId> again;
    std::vector<std::string> lost;
    for (std::size_t i = 0; i < closed_first_; ++i) {
      const auto attached = attach(*closing_first_[i]);
      if (!attached) {
        log::error("port '{}' cannot be opened again: {}", closing_first_[i]->name, attached.error().message);
        lost.push_back(closing_first_[i]->name);
        continue;
      }
      again.push_back(*attached);
    }
    std::erase_if(managed_.file_.ports,
                  [&](const auto& port) { return std::ranges::find(lost, port.name) != lost.end(); });
    const std::vector<ServicePort> ports = managed_.ports_of(managed_.file_);
    Result<> configured;
    auto updated = node_.update([&](Update& update) {
      for (const PortId port : again) {
        update.flood_to(port);
      }
      configured = managed_.configure_services(managed_.file_, ports, update);
      managed_.chains_->assign(managed_.file_, ports, update);
    });
    if (!configured || !updated) {
      log::error("the former settings cannot be set again: {}",
                 (configured ? updated.error() : configured.error()).message);
      return;
    }
    managed_.chains_->commit();
    for (const PortId port : again) {
      set_up(port, true);
    }
  }

  ManagedNode& managed_;
  Node& node_;
  const NodeFile& to_;
  std::vector<const NodeFile::PortEntry*> opening_, changing_;       // of the new file
  std::vector<const NodeFile::PortEntry*> closing_, closing_first_;  // of the old one
  std::size_t closed_first_ = 0;
  std::vector<PortId> opened_, taken_down_;
};

Result<std::vector<NodeChange>> ManagedNode::apply_locked(const NodeFile& to) {
  // Whatever can be found out before anything is touched.
  auto changes = compare_locked(to);
  if (!changes || changes->empty()) {
    return changes;
  }
  if (auto done = Transaction(*this, to).run(); !done) {
    return std::unexpected(done.error());
  }
  file_ = to;
  ++revision_;
  return changes;
}

Result<std::vector<NodeChange>> ManagedNode::compare(const NodeFile& to) {
  const std::lock_guard guard(mutex_);
  return compare_locked(to);
}

Result<std::vector<NodeChange>> ManagedNode::apply(const NodeFile& to) {
  const std::lock_guard guard(mutex_);
  return apply_locked(to);
}

Result<std::vector<NodeChange>> ManagedNode::change(const std::function<Result<>(NodeFile&)>& edit) {
  const std::lock_guard guard(mutex_);
  NodeFile to = file_;
  if (auto edited = edit(to); !edited) {
    return std::unexpected(edited.error());
  }
  return apply_locked(to);
}

}  // namespace weir
