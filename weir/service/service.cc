#include <weir/service/service.h>

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>

namespace weir {

Result<Json> Service::call(std::string_view name, const Json& /*arguments*/) { return error("'{}' is not done", name); }

void ServiceRegistry::add(ServiceKind kind) {
  std::erase_if(kinds_, [&](const ServiceKind& other) { return other.name == kind.name; });
  kinds_.push_back(std::move(kind));
}

const ServiceKind* ServiceRegistry::find(std::string_view name) const {
  const auto place = std::ranges::find(kinds_, name, &ServiceKind::name);
  return place == kinds_.end() ? nullptr : &*place;
}

Result<const ServiceKind*> ServiceRegistry::require(const Config& name) const {
  const auto wanted = name.string("the name of a service");
  if (!wanted) {
    return std::unexpected(wanted.error());
  }
  if (const ServiceKind* kind = find(*wanted)) {
    return kind;
  }
  std::vector<std::string_view> known;
  for (const ServiceKind& kind : kinds_) {
    known.emplace_back(kind.name);
  }
  return name.error("unknown service '{}'; there are: {}{}", *wanted, fmt::join(known, ", "),
                    did_you_mean(*wanted, known));
}

Result<std::unique_ptr<Service>> build_service(ServiceContext& context, const ServiceKind& kind) {
  auto service = kind.build(context);
  if (!service) {
    return service;
  }
  Result<> configured;
  auto updated = context.node.update([&](Update& update) { configured = (*service)->configure(context, update); });
  if (!configured) {
    return std::unexpected(configured.error());
  }
  return updated ? std::move(service) : std::unexpected(updated.error());
}

Result<std::unique_ptr<Service>> build_service(Node& node, const ServiceKind& kind, const Config& settings,
                                               const std::filesystem::path& folder) {
  if (auto checked = check_settings(kind.name, kind.settings, settings); !checked) {
    return std::unexpected(checked.error());
  }
  const std::vector<ServicePort> ports = service_ports(node);
  ServiceContext context(node, kind, settings, folder, ports, {});
  return build_service(context, kind);
}

std::vector<ServicePort> service_ports(const Node& node) {
  std::vector<ServicePort> ports;
  node.for_each_port([&](PortId id, const Port& port) { ports.push_back({port.name, id, port.options}); });
  return ports;
}

}  // namespace weir
