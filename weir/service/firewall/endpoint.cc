#include <weir/service/firewall/endpoint.h>

namespace weir {

IdentityPtr identity_of(const EndpointEntry& entry, const Namespaces& namespaces, Names& names) {
  const auto known = namespaces.find(entry.key.in_namespace);
  auto labels = known == namespaces.end() ? std::map<std::string, std::string>() : known->second;
  labels["kubernetes.io/metadata.name"] = entry.key.in_namespace;
  return std::make_shared<const Identity>(Identity{.in_namespace = names.id(entry.key.in_namespace),
                                                   .name = names.id(entry.key.name),
                                                   .labels = labels_of(entry.labels, names),
                                                   .namespace_labels = labels_of(labels, names),
                                                   .ports = entry.ports});
}

}  // namespace weir
