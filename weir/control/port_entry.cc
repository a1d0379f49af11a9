#include <weir/control/internal/port_entry.h>

#include <map>

#include <weir/control/device_use.h>

namespace weir {

namespace {

constexpr std::int64_t shortest_mtu = 68;  // RFC 791
constexpr std::int64_t longest_mtu = 65'535;

MacAddress read_port_mac(const Config& config, Errors& errors) {
  const auto mac = MacAddress::parse(errors.take(config.string("an Ethernet address such as 02:00:00:00:00:01")));
  if (!mac) {
    errors.add(mac.error().at(config.place()));
    return {};
  }
  if (mac->multicast() || *mac == MacAddress{}) {
    errors.take(config.error("{} is not the address of one station; its first byte must be even", mac->to_string()));
  }
  return *mac;
}

}  // namespace

void read_port_options(const Config& config, PortOptions& options, Errors& errors) {
  if (const Config* role = config.find("role")) {
    options.role = static_cast<PortRole>(errors.take(role->one_of({"host", "uplink"})));
  }
  if (const Config* labels = config.find("labels")) {
    options.labels.clear();
    for (const auto& [key, name, value] : errors.take(labels->map("a map of labels"))) {
      options.labels[name] = errors.take(value.string("a label's value"));
    }
  }
  if (const Config* addresses = config.find("addresses")) {
    options.addresses.clear();
    for (const Config& address : errors.take(addresses->list("a list of addresses"))) {
      auto parsed = IpPrefix::parse_interface(errors.take(address.string("an address such as 10.0.0.1/24")));
      if (parsed) {
        options.addresses.push_back(*parsed);
      } else {
        errors.add(parsed.error().at(address.place()));
      }
    }
  }
  if (const Config* mac = config.find("mac")) {
    options.mac = read_port_mac(*mac, errors);
  }
  if (const Config* mtu = config.find("mtu")) {
    options.mtu = static_cast<std::uint32_t>(errors.take(mtu->integer(shortest_mtu, longest_mtu)));
  }
}

void read_port_device(const Config& device, const std::filesystem::path& folder, NodeFile::PortEntry& port,
                      Errors& errors) {
  port.place = device;
  const auto text = device.string("a device such as \"pcap:in.pcap,out=out.pcap\"");
  if (!text) {
    return errors.add(text.error());
  }
  if (auto made = make_device(std::string_view(*text)); !made) {
    return errors.add(made.error().at(device.place()));
  }
  port.device = below(*DeviceSpec::parse(*text), folder);
}

void fit_role(const Config& config, NodeFile::PortEntry& port, Errors& errors) {
  const bool gateway = port.device.kind == "gateway";
  const Config* role = config.kind() == Config::Kind::map ? config.find("role") : nullptr;
  if (gateway && role != nullptr) {
    errors.take(role->error("port '{}' is a gateway by its device; leave 'role' out", port.name));
  }
  if (gateway != (port.options.role == PortRole::gateway)) {
    port.options.role = gateway ? PortRole::gateway : PortRole::host;
  }
}

void check_device_uses(std::span<const NodeFile::PortEntry> ports, Errors& errors) {
  std::map<std::string, std::pair<const NodeFile::PortEntry*, bool>> used;  // by what; whether alone
  for (const NodeFile::PortEntry& port : ports) {
    for (const auto& [what, alone] : uses_of(port.device)) {
      const auto [first, fresh] = used.try_emplace(what, &port, alone);
      const auto& [other, other_alone] = first->second;
      if (!fresh && other != &port && (alone || other_alone)) {
        errors.take(port.place.error("{} is used by port '{}' already ({}); give each port its own", what, other->name,
                                     other->place.place()));
      }
    }
  }
}

}  // namespace weir
