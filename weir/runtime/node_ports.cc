// A node's ports, as they come, change and go.

#include <algorithm>

#include <weir/device/device_spec.h>
#include <weir/runtime/node.h>

namespace weir {

namespace {

constexpr std::uint32_t usual_mtu = 1500;  // of Ethernet

// An address that no maker gave out (IEEE 802, clause 8.4), the same each time a node of this name and seed starts.
MacAddress made_up_mac(const std::string& port, const NodeOptions& options) {
  MacAddress mac;
  std::uint64_t bits = hash_value(port, hash_value(options.name, options.seed));
  for (std::uint8_t& byte : mac.bytes) {
    byte = static_cast<std::uint8_t>(bits);
    bits >>= 8U;
  }
  constexpr std::uint8_t local = 2;
  constexpr std::uint8_t group = 1;
  mac.bytes[0] = static_cast<std::uint8_t>((mac.bytes[0] | local) & ~group);
  return mac;
}

}  // namespace

Summary::PortLine Port::line() const {
  const DeviceCounters from_device = device->counters();
  return {name,
          sum(&PortCounters::in_packets),
          sum(&PortCounters::in_bytes),
          sum(&PortCounters::out_packets),
          sum(&PortCounters::out_bytes),
          from_device.lost,
          from_device.digest,
          from_device.bad_input};
}

std::string_view name_of(PortRole role) {
  switch (role) {
    case PortRole::host:
      return "host";
    case PortRole::uplink:
      return "uplink";
    case PortRole::gateway:
      return "gateway";
  }
  return {};
}

Result<PortId> Node::add_port(std::string name, std::string_view device, PortOptions options) {
  auto made = make_device(device);
  if (!made) {
    return std::unexpected(made.error().at(fmt::format("port '{}'", name)));
  }
  return add_port(std::move(name), std::move(*made), std::move(options));
}

Result<PortId> Node::add_port(std::string name, std::unique_ptr<Device> device, PortOptions options) {
  const auto port = attach_port(std::move(name), std::move(device), std::move(options));
  if (!port) {
    return port;
  }
  if (auto done = update([&](Update& change) { change.flood_to(*port); }); !done) {
    return std::unexpected(done.error());
  }
  if (auto up = set_port_up(*port, true); !up) {
    return std::unexpected(up.error());
  }
  return port;
}

Result<> Node::remove_port(PortId port) {
  if (auto down = set_port_up(port, false); !down) {
    return down;
  }
  if (auto done = update([&](Update& change) { change.forget(port); }); !done) {
    return std::unexpected(done.error());
  }
  detach_port(port);
  return {};
}

Result<PortId> Node::attach_port(std::string name, std::unique_ptr<Device> device, PortOptions options) {
  if (find_port(name)) {
    return error("two ports are named '{}'; rename one", name);
  }
  if (ports_.size() == max_ports && free_numbers_.empty()) {
    return error("port '{}' is one too many; a node has at most {}", name, max_ports);
  }
  if (!workers_.empty() && pipeline_.entry_of(PortId{max_ports - 1}) == Pipeline::nowhere) {
    return error(
        "port '{}' cannot be added while the node runs: its graph does not say where packets of such ports "
        "enter (Graph::connect_ports)",
        name);
  }
  const DeviceContext context{*pool_, clock(), options_.capture_time ? &capture_clock_ : nullptr, options_.workers,
                              options_.seed};
  if (auto opened = device->open(context); !opened) {
    return std::unexpected(opened.error().at(fmt::format("port '{}'", name)));
  }
  auto port = std::make_unique<Port>();
  port->name = std::move(name);
  port->device = std::move(device);
  port->traits = port->device->traits();
  port->wanted_up = false;
  port->device_up = port->device->tend();
  port->counters = std::vector<PortCounters>(options_.workers);
  if (!port->traits.finite) {
    endless_.store(true, std::memory_order_relaxed);
  }
  Port& attached = *port;
  PortId id;
  {
    const std::lock_guard guard(ports_mutex_);
    if (ports_.size() < max_ports) {
      id.number = static_cast<std::uint16_t>(ports_.size());
      ports_.push_back(std::move(port));
    } else {
      id.number = free_numbers_.front();
      free_numbers_.pop_front();
      ports_[id.number] = std::move(port);
    }
    port_table_.ports[id.number].name = attached.name;
    port_table_.count.store(static_cast<std::uint16_t>(ports_.size()), std::memory_order_release);
  }
  set_port_options(id, std::move(options));
  for (const auto& worker : workers_) {
    if (worker->polls(id, attached)) {
      on_worker(*worker, [&](Worker& to) { to.add(id, attached); });
    }
  }
  return id;
}

void Node::detach_port(PortId port) {
  for (const auto& worker : workers_) {
    on_worker(*worker, [port](Worker& from) { from.remove(port); });
  }
  for (const auto& worker : workers_) {
    on_worker(*worker, [](Worker& with) { with.drain(); });
  }
  const std::lock_guard tend_guard(tend_mutex_);
  std::unique_ptr<Port> detached;
  {
    const std::lock_guard guard(ports_mutex_);
    detached = std::move(ports_[port.number]);
    free_numbers_.push_back(port.number);
    const Summary::PortLine line = detached->line();
    removed_ports_.in_packets += line.in_packets;
    removed_ports_.in_bytes += line.in_bytes;
    removed_ports_.out_packets += line.out_packets;
    removed_ports_.out_bytes += line.out_bytes;
    removed_ports_.lost += line.lost;
    removed_ports_.bad_input += line.bad_input;
  }
}

void Node::set_port_options(PortId port, PortOptions options) {
  const std::lock_guard guard(ports_mutex_);
  std::vector<PortAddress> addresses;
  for (const auto& [address, network] : options.addresses) {
    addresses.push_back({address, network});
  }
  PortTable::Port& entry = port_table_.ports[port.number];
  // Workers may be reading what stays as it is.
  if (const auto mac = mac_with(port, options); mac != entry.mac) {
    entry.mac = mac;
  }
  if (const auto mtu = mtu_with(port, options); mtu != entry.mtu) {
    entry.mtu = mtu;
  }
  if (addresses != entry.addresses) {
    entry.addresses = std::move(addresses);
  }
  ports_[port.number]->options = std::move(options);
}

MacAddress Node::mac_with(PortId port, const PortOptions& options) const {
  const Port& on = *ports_[port.number];
  const auto mac = options.mac ? options.mac : on.device->mac();
  return mac.value_or(made_up_mac(on.name, options_));
}

std::uint32_t Node::mtu_with(PortId port, const PortOptions& options) const {
  return options.mtu.value_or(ports_[port.number]->device->mtu().value_or(usual_mtu));
}

void Node::show_state(PortId port) {
  const Port& shown = *ports_[port.number];
  const bool up = shown.wanted_up && shown.device_up;
  port_table_.ports[port.number].up.store(up, std::memory_order_release);
  state_->paths().link(port, up);
}

Result<> Node::set_port_up(PortId port, bool up) {
  {
    const std::lock_guard guard(ports_mutex_);
    if (port.number >= ports_.size() || ports_[port.number] == nullptr) {
      return error("there is no port number {}", port.number);
    }
    Port& changed = *ports_[port.number];
    changed.wanted_up = up;
    show_state(port);
  }
  epochs_.barrier();
  return {};
}

std::size_t Node::port_count() const {
  std::size_t count = 0;
  for_each_port([&](PortId, const Port&) { ++count; });
  return count;
}

std::optional<PortId> Node::find_port(std::string_view name) const {
  std::optional<PortId> found;
  for_each_port([&](PortId id, const Port& port) {
    if (port.name == name) {
      found = id;
    }
  });
  return found;
}

}  // namespace weir
