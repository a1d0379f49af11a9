#include <weir/service/firewall/policy_commands.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <unordered_map>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/packet/ipv4.h>

namespace weir {

namespace {

/// Everything but `allowed` is a mistake.
Result<> check_arguments(const Json& arguments, std::initializer_list<std::string_view> allowed) {
  for (const auto& [key, value] : arguments.items()) {
    if (std::ranges::find(allowed, std::string_view(key)) == allowed.end()) {
      return error("unknown argument '{}'; there are: {}{}", key, fmt::join(allowed, ", "),
                   did_you_mean(key, std::span(allowed.begin(), allowed.size())));
    }
  }
  return {};
}

Result<bool> flag(const Json& arguments, const char* name) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) {
    return false;
  }
  return found->is_boolean() ? Result<bool>(found->get<bool>()) : error("'{}' is true or false", name);
}

Result<std::string> text(const Json& arguments, const char* name, const char* example) {
  const auto found = arguments.find(name);
  if (found == arguments.end() || !found->is_string()) {
    return error("'{}' is missing, or no text; send one such as \"{}\"", name, example);
  }
  return found->get<std::string>();
}

Result<std::vector<std::string>> files(const Json& arguments) {
  std::vector<std::string> paths;
  const auto found = arguments.find("files");
  if (found == arguments.end()) {
    return paths;
  }
  if (!found->is_array() || !std::ranges::all_of(*found, [](const Json& each) { return each.is_string(); })) {
    return error("'files' is no list of paths; send one such as [\"/path/of/policies.yaml\"]");
  }
  for (const Json& each : *found) {
    paths.push_back(each.get<std::string>());
    if (!std::filesystem::path(paths.back()).is_absolute()) {
      return error("'{}' is no absolute path; name the file from / on", paths.back());
    }
  }
  return paths;
}

/// Those that a name may stand for: "x/web", "web", and with the kind before it.
std::vector<PolicyKey> candidates(const std::string& name, const PolicyModel& model) {
  std::vector<PolicyKey> found;
  for (const PolicyKind kind : {PolicyKind::admin, PolicyKind::network, PolicyKind::baseline}) {
    std::string rest = name;
    if (const std::size_t space = name.find(' '); space != std::string::npos) {
      if (name.substr(0, space) != kind_name(kind)) {
        continue;
      }
      rest = name.substr(space + 1);
    }
    PolicyKey key{kind, "", rest};
    if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
      key.in_namespace = rest.substr(0, slash);
      key.name = rest.substr(slash + 1);
    } else if (kind == PolicyKind::network) {
      key.in_namespace = "default";
    }
    if (model.policies().contains(key)) {
      found.push_back(std::move(key));
    }
  }
  return found;
}

struct ProtocolName {
  std::string_view name;
  std::uint8_t number;
  bool has_ports;
};
constexpr std::array<ProtocolName, 5> protocols{{{"tcp", ip_protocol::tcp, true},
                                                 {"udp", ip_protocol::udp, true},
                                                 {"sctp", ip_protocol::sctp, true},
                                                 {"icmp", ip_protocol::icmp, false},
                                                 {"icmpv6", ip_protocol::icmpv6, false}}};

}  // namespace

Result<ApplyArguments> read_apply(const Json& arguments) {
  if (auto checked = check_arguments(arguments, {"files", "dry_run"}); !checked) {
    return std::unexpected(checked.error());
  }
  auto paths = files(arguments);
  const auto dry_run = flag(arguments, "dry_run");
  if (!paths || !dry_run) {
    return std::unexpected(paths ? dry_run.error() : paths.error());
  }
  if (paths->empty()) {
    return error("no files; send some such as {{\"files\": [\"/path/of/policies.yaml\"]}}");
  }
  return ApplyArguments{std::move(*paths), *dry_run};
}

Result<DeleteArguments> read_delete(const Json& arguments, const PolicyModel& model) {
  if (auto checked = check_arguments(arguments, {"name", "dry_run"}); !checked) {
    return std::unexpected(checked.error());
  }
  const auto name = text(arguments, "name", "x/web");
  const auto dry_run = flag(arguments, "dry_run");
  if (!name || !dry_run) {
    return std::unexpected(name ? dry_run.error() : name.error());
  }
  const std::vector<PolicyKey> found = candidates(*name, model);
  if (found.size() == 1) {
    return DeleteArguments{found.front(), *dry_run};
  }
  std::vector<std::string> names;
  if (found.size() > 1) {
    std::ranges::transform(found, std::back_inserter(names), &PolicyKey::to_string);
    return error("several policies are named '{}'; say which one: {}", *name, fmt::join(names, ", "));
  }
  for (const auto& [key, read] : model.policies()) {
    const std::string full = key.to_string();
    names.push_back(full.substr(full.find(' ') + 1));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  return error("there is no policy '{}'{}; weir policy list shows them", *name, did_you_mean(*name, views));
}

Result<ExplainArguments> read_explain(const Json& arguments) {
  if (auto checked = check_arguments(arguments, {"from", "to", "protocol", "port", "files"}); !checked) {
    return std::unexpected(checked.error());
  }
  auto from = text(arguments, "from", "x/a");
  auto to = text(arguments, "to", "10.0.0.1");
  auto paths = files(arguments);
  if (!from || !to || !paths) {
    return std::unexpected(!from ? from.error() : !to ? to.error() : paths.error());
  }
  ExplainArguments read{{.from = std::move(*from), .to = std::move(*to)}, std::move(*paths)};
  const std::string protocol = arguments.contains("protocol") && arguments["protocol"].is_string()
                                   ? arguments["protocol"].get<std::string>()
                                   : "tcp";
  const auto known = std::ranges::find(protocols, std::string_view(protocol), &ProtocolName::name);
  if (known == protocols.end() || (arguments.contains("protocol") && !arguments["protocol"].is_string())) {
    return error("'protocol' is one of tcp, udp, sctp, icmp and icmpv6");
  }
  read.question.protocol = known->number;
  const auto port = arguments.find("port");
  const bool is_port = port != arguments.end() && port->is_number_unsigned() && port->get<std::uint64_t>() >= 1 &&
                       port->get<std::uint64_t>() <= 65'535;
  if (port != arguments.end() && !is_port) {
    return error("'port' is a number from 1 to 65535");
  }
  if (known->has_ports != is_port) {
    return known->has_ports ? error("'port' is missing: the port at the destination")
                            : error("{} has no ports; leave 'port' out", protocol);
  }
  if (is_port) {
    read.question.port = port->get<std::uint16_t>();
  }
  return read;
}

Json changes_json(const PolicyModel& model, const PolicyModel::Draft& draft) {
  Json changes = Json::array();
  const auto rules = [](const Policy& policy) {
    const std::size_t in = policy.rules_of(Direction::ingress).size();
    const std::size_t out = policy.rules_of(Direction::egress).size();
    return fmt::format("{} {} for ingress, {} for egress", in, in == 1 ? "rule" : "rules", out);
  };
  for (const PolicyPtr& policy : draft.fresh) {
    const bool there = model.policies().contains(policy->key);
    changes.push_back(
        {{"kind", there ? "change" : "add"}, {"what", policy->key.to_string()}, {"detail", rules(*policy)}});
  }
  std::set<PolicyKey> replaced;
  std::ranges::transform(draft.fresh, std::inserter(replaced, replaced.end()),
                         [](const auto& each) { return each->key; });
  for (const PolicyPtr& policy : draft.gone) {
    if (!replaced.contains(policy->key)) {
      changes.push_back({{"kind", "remove"}, {"what", policy->key.to_string()}, {"detail", rules(*policy)}});
    }
  }
  return changes;
}

Json policies_json(const PolicyModel& model) {
  std::unordered_map<const Policy*, std::size_t> about;
  for (const auto& [key, endpoint] : model.endpoints()) {
    std::set<const Policy*> seen;
    for (const auto& direction : endpoint.policies->all) {
      for (const auto& kind : direction) {
        for (const PolicyPtr& policy : kind) {
          seen.insert(policy.get());
        }
      }
    }
    for (const Policy* policy : seen) {
      ++about[policy];
    }
  }
  Json policies = Json::array();
  for (const auto& [key, read] : model.policies()) {
    Json policy{{"kind", kind_name(key.kind)}, {"name", key.name}};
    if (!key.in_namespace.empty()) {
      policy["namespace"] = key.in_namespace;
    }
    if (key.kind == PolicyKind::admin) {
      policy["priority"] = read.policy->priority;
    }
    policy["directions"] = Json::array();
    for (const Direction direction : both_directions) {
      if (read.policy->applies_to(direction)) {
        policy["directions"].push_back(direction_name(direction));
      }
    }
    policy["endpoints"] = about[read.policy.get()];
    policy["place"] = read.place;
    policies.push_back(std::move(policy));
  }
  return policies;
}

Json endpoints_json(const PolicyModel& model) {
  Json endpoints = Json::array();
  for (const auto& [key, endpoint] : model.endpoints()) {
    Json json{{"name", key.to_string()}, {"port", endpoint.entry->port}, {"addresses", Json::array()}};
    for (const IpAddress& address : endpoint.entry->addresses) {
      json["addresses"].push_back(address.to_string());
    }
    json["labels"] = endpoint.entry->labels;
    std::set<PolicyPtr> about;
    for (const auto& direction : endpoint.policies->all) {
      for (const auto& kind : direction) {
        about.insert(kind.begin(), kind.end());
      }
    }
    json["policies"] = about.size();
    endpoints.push_back(std::move(json));
  }
  return endpoints;
}

}  // namespace weir
