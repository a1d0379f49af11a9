#include <weir/service/firewall/read_endpoints.h>

#include <algorithm>
#include <charconv>

#include <weir/packet/ipv4.h>
#include <weir/service/firewall/internal/policy_reader.h>
#include <weir/service/firewall/read_labels.h>

namespace weir {

namespace {

class Reader {
 public:
  explicit Reader(Names& names) : names_(names) {}

  Result<Endpoints> read(const Config& file) {
    if (file.find("weir_endpoints") == nullptr) {
      return file.error("expected an endpoints file, a map that begins with 'weir_endpoints: 1', found {}",
                        file.found());
    }
    errors_.take(file.check_keys({"weir_endpoints", "namespaces", "endpoints"}));
    errors_.take(file.get("weir_endpoints").integer(1, 1));
    for (const auto& [key, name, labels] :
         errors_.take(file.get("namespaces").map("a map of namespaces, NAME: {LABEL: VALUE}"))) {
      endpoints_.namespaces[read_object_name(key, "the name of a namespace", errors_)] = read_labels(labels, errors_);
    }
    for (const Config::Entry& entry :
         errors_.take(file.get("endpoints").map("a map of endpoints, NAMESPACE/NAME: {labels: ..., addresses: ...}"))) {
      endpoints_.entries.push_back(read_entry(entry));
    }
    return errors_.empty() ? Result<Endpoints>(std::move(endpoints_)) : std::unexpected(errors_.result().error());
  }

 private:
  EndpointEntry read_entry(const Config::Entry& config) {
    EndpointEntry entry{.key = read_key(config.key), .place = config.key.place()};
    const Config& value = config.value;
    if (auto checked = value.check_keys({"port", "labels", "addresses", "ports"}); !checked) {
      errors_.take(checked);
      return entry;
    }
    if (const Config* port = value.find("port")) {
      entry.port = errors_.take(port->string("the name of a port of the node"));
    }
    entry.labels = read_labels(value.get("labels"), errors_);
    for (const Config& each : errors_.take(value.get("addresses").list("a list of addresses"))) {
      const auto address = IpAddress::parse(errors_.take(each.string("an address such as 10.0.0.1")));
      if (address) {
        entry.addresses.push_back(*address);
      } else {
        errors_.add(address.error().at(each.place()));
      }
    }
    for (const auto& [key, name, ports] :
         errors_.take(value.get("ports").map("a map of named ports, NAME: NUMBER/PROTOCOL"))) {
      read_ports(names_.id(read_port_name(key, errors_)), ports, entry);
    }
    return entry;
  }

  EndpointKey read_key(const Config& config) {
    const std::string text = *config.string();
    const std::size_t slash = text.find('/');
    const bool has_namespace = slash != std::string::npos;
    EndpointKey key{has_namespace ? text.substr(0, slash) : "default", has_namespace ? text.substr(slash + 1) : text};
    if (key.in_namespace.empty() || key.name.empty() || key.name.contains('/')) {
      errors_.take(config.error("'{}' is no name of an endpoint; write NAMESPACE/NAME", text));
    }
    return key;
  }

  void read_ports(NameId name, const Config& config, EndpointEntry& entry) {
    if (config.kind() != Config::Kind::list) {
      return read_port(name, config, entry);
    }
    for (const Config& each : config.list().value_or(std::span<const Config>())) {
      read_port(name, each, entry);
    }
  }

  void read_port(NameId name, const Config& config, EndpointEntry& entry) {
    const std::string text = errors_.take(config.string("a port such as 80 or 53/UDP"));
    const std::size_t slash = text.find('/');
    NamedPort port{.name = name, .protocol = ip_protocol::tcp};
    const char* const end = text.data() + std::min(slash, text.size());
    const auto [at, failure] = std::from_chars(text.data(), end, port.number);
    const std::string protocol = slash == std::string::npos ? "TCP" : text.substr(slash + 1);
    constexpr std::array words{"TCP", "UDP", "SCTP"};
    constexpr std::array numbers{ip_protocol::tcp, ip_protocol::udp, ip_protocol::sctp};
    const auto known = std::ranges::find(words, protocol);
    if (failure != std::errc{} || at != end || port.number == 0 || known == words.end()) {
      errors_.take(
          config.error("{} is no port; write a number from 1 to 65535, perhaps with its protocol: 80, 53/UDP "
                       "or 36412/SCTP",
                       config.found()));
      return;
    }
    port.protocol = numbers.at(static_cast<std::size_t>(known - words.begin()));
    const auto same = [&](const NamedPort& other) { return other.name == name && other.protocol == port.protocol; };
    if (std::ranges::any_of(entry.ports, same)) {
      errors_.take(
          config.error("a second {} port of this name; a name stands for one port of each protocol", protocol));
      return;
    }
    entry.ports.push_back(port);
  }

  Names& names_;
  Errors errors_;
  Endpoints endpoints_;
};

}  // namespace

Result<Endpoints> read_endpoints(const Config& file, Names& names) { return Reader(names).read(file); }

Result<Endpoints> with_ports(Endpoints file, std::span<const ServicePort> ports) {
  Errors errors;
  std::map<std::string, const EndpointEntry*> behind;
  for (const EndpointEntry& entry : file.entries) {
    if (entry.port.empty()) {
      continue;
    }
    const auto [first, fresh] = behind.try_emplace(entry.port, &entry);
    if (!fresh) {
      errors.add(Error{fmt::format("port '{}' is that of endpoint {} already; behind a port is one endpoint",
                                   entry.port, first->second->key.to_string())}
                     .at(entry.place));
    }
  }
  std::vector<EndpointEntry> own;
  for (const ServicePort& port : ports) {
    const auto described = behind.find(port.name);
    if (port.options.role != PortRole::host) {
      if (described != behind.end()) {
        errors.add(
            Error{fmt::format("port '{}' has the role {}, where no endpoint is guarded; leave 'port' out, or name a "
                              "port with the role host",
                              port.name, name_of(port.options.role))}
                .at(described->second->place));
      }
      continue;
    }
    if (described != behind.end()) {
      continue;
    }
    EndpointEntry entry{.key = {"default", port.name},
                        .labels = port.options.labels,
                        .port = port.name,
                        .place = fmt::format("port '{}'", port.name)};
    if (const auto in = entry.labels.find(std::string(namespace_label)); in != entry.labels.end()) {
      entry.key.in_namespace = in->second;
      entry.labels.erase(in);
    }
    for (const auto& [address, network] : port.options.addresses) {
      entry.addresses.push_back(address);
    }
    own.push_back(std::move(entry));
  }
  std::ranges::move(own, std::back_inserter(file.entries));
  std::map<EndpointKey, std::string> keys;
  std::map<IpAddress, const EndpointEntry*> addresses;
  for (const EndpointEntry& entry : file.entries) {
    const auto [first, fresh] = keys.try_emplace(entry.key, entry.place);
    if (!fresh) {
      errors.add(
          Error{fmt::format("endpoint {} is there twice; the other is {}. If they are one, write the port's name "
                            "behind 'port'",
                            entry.key.to_string(), first->second)}
              .at(entry.place));
    }
    for (const IpAddress& address : entry.addresses) {
      const auto [other, unused] = addresses.try_emplace(address, &entry);
      if (!unused) {
        errors.add(Error{fmt::format("{} is the address of endpoint {} already ({})", address.to_string(),
                                     other->second->key.to_string(), other->second->place)}
                       .at(entry.place));
      }
    }
  }
  return errors.empty() ? Result<Endpoints>(std::move(file)) : std::unexpected(errors.result().error());
}

}  // namespace weir
