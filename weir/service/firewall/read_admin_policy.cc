// AdminNetworkPolicy and BaselineAdminNetworkPolicy, policy.networking.k8s.io/v1alpha1.

#include <weir/packet/ipv4.h>
#include <weir/service/firewall/internal/policy_reader.h>
#include <weir/service/firewall/read_labels.h>

namespace weir {

namespace {

constexpr std::int64_t last_priority = 1000;

class Reader {
 public:
  Reader(PolicyDraft& draft, Names& names, Errors& errors)
      : draft_(draft), names_(names), errors_(errors), admin_(draft.policy.key.kind == PolicyKind::admin) {}

  void read(const Config& spec) {
    const auto checked = admin_ ? spec.check_keys({"priority", "subject", "ingress", "egress"})
                                : spec.check_keys({"subject", "ingress", "egress"});
    if (!checked) {
      errors_.take(checked);
      return;
    }
    if (admin_) {
      draft_.policy.priority = static_cast<std::int32_t>(errors_.take(spec.get("priority").integer(0, last_priority)));
    }
    read_subject(spec.get("subject"));
    read_rules(spec.get("ingress"), Direction::ingress);
    read_rules(spec.get("egress"), Direction::egress);
  }

 private:
  void read_subject(const Config& config) {
    Policy& policy = draft_.policy;
    if (auto checked = config.check_keys({"namespaces", "pods"}); !checked) {
      errors_.take(checked);
      return;
    }
    const Config namespaces = config.get("namespaces");
    const Config pods = config.get("pods");
    if (namespaces.is_null() == pods.is_null()) {
      errors_.take(
          config.error("expected one of 'namespaces' and 'pods' as the subject, found {}; write namespaces: "
                       "{{}} for everyone",
                       namespaces.is_null() ? "neither" : "both"));
      return;
    }
    if (pods.is_null()) {
      policy.namespaces = read_selector(namespaces, names_, errors_);
    } else {
      read_pods(pods, policy.namespaces, policy.pods);
    }
  }

  void read_pods(const Config& config, Selector& namespaces, Selector& pods) {
    if (auto checked = config.check_keys({"namespaceSelector", "podSelector"}); !checked) {
      errors_.take(checked);
      return;
    }
    for (const std::string_view key : {"namespaceSelector", "podSelector"}) {
      if (config.get(key).is_null()) {
        errors_.take(config.error("'pods' without a {}; write {}: {{}} to select all", key, key));
      }
    }
    namespaces = read_selector(config.get("namespaceSelector"), names_, errors_);
    pods = read_selector(config.get("podSelector"), names_, errors_);
  }

  void read_rules(const Config& config, Direction direction) {
    const auto index = static_cast<std::size_t>(direction);
    for (const Config& each : errors_.take(config.list("a list of rules"))) {
      draft_.policy.rules[index].push_back(read_rule(each, direction));
      draft_.rule_places[index].push_back(each.place());
    }
    draft_.policy.applies[index] = !draft_.policy.rules[index].empty();
  }

  PolicyRule read_rule(const Config& config, Direction direction) {
    PolicyRule rule;
    const std::string_view key = direction == Direction::ingress ? "from" : "to";
    if (auto checked = config.check_keys({"name", "action", key, "ports"}); !checked) {
      errors_.take(checked);
      return rule;
    }
    if (const Config name = config.get("name"); !name.is_null()) {
      rule.name = errors_.take(name.string("a name"));
    }
    const Config action = config.get("action");
    const auto effect = admin_ ? action.one_of({"Allow", "Deny", "Pass"}) : action.one_of({"Allow", "Deny"});
    rule.effect = static_cast<Effect>(errors_.take(effect));
    const Config peers = config.get(key);
    const auto listed = errors_.take(peers.list("a list of peers"));
    if (listed.empty() && (peers.is_null() || peers.kind() == Config::Kind::list)) {
      errors_.take(peers.error("a rule without peers; write {}: [{{namespaces: {{}}}}] for all endpoints", key));
    }
    for (const Config& peer : listed) {
      read_peer(peer, direction, rule);
    }
    const auto ports = errors_.take(config.get("ports").list("a list of ports"));
    rule.any_port = ports.empty();
    for (const Config& port : ports) {
      rule.ports.push_back(read_port(port));
    }
    return rule;
  }

  // A list of networks becomes a peer each.
  void read_peer(const Config& config, Direction direction, PolicyRule& rule) {
    const bool egress = direction == Direction::egress;
    for (const std::string_view key : {"nodes", "domainNames"}) {
      if (const Config* found = config.find(key); found != nullptr && egress) {
        errors_.take(found->error("weir knows no '{}'; name their addresses in 'networks'", key));
        return;
      }
    }
    const auto checked =
        egress ? config.check_keys({"namespaces", "pods", "networks"}) : config.check_keys({"namespaces", "pods"});
    if (!checked) {
      errors_.take(checked);
      return;
    }
    const Config namespaces = config.get("namespaces");
    const Config pods = config.get("pods");
    const Config networks = config.get("networks");
    const int given = (namespaces.is_null() ? 0 : 1) + (pods.is_null() ? 0 : 1) + (networks.is_null() ? 0 : 1);
    if (given != 1) {
      errors_.take(config.error("expected one of {} as a peer, found {}",
                                egress ? "'namespaces', 'pods' and 'networks'" : "'namespaces' and 'pods'",
                                given == 0 ? "none" : "several"));
      return;
    }
    if (!networks.is_null()) {
      const auto blocks = errors_.take(networks.list("a list of prefixes"));
      if (blocks.empty() && networks.kind() == Config::Kind::list) {
        errors_.take(networks.error("no network; write networks: [10.0.0.0/8]"));
      }
      for (const Config& block : blocks) {
        rule.peers.push_back({.is_block = true, .block = read_block(block, errors_)});
      }
      return;
    }
    PolicyPeer peer;
    if (pods.is_null()) {
      peer.namespaces = read_selector(namespaces, names_, errors_);
    } else {
      read_pods(pods, peer.namespaces, peer.pods);
    }
    rule.peers.push_back(std::move(peer));
  }

  PolicyPort read_port(const Config& config) {
    PolicyPort port;
    if (auto checked = config.check_keys({"portNumber", "portRange", "namedPort"}); !checked) {
      errors_.take(checked);
      return port;
    }
    const Config number = config.get("portNumber");
    const Config range = config.get("portRange");
    const Config name = config.get("namedPort");
    if ((number.is_null() ? 0 : 1) + (range.is_null() ? 0 : 1) + (name.is_null() ? 0 : 1) != 1) {
      errors_.take(config.error("expected one of 'portNumber', 'portRange' and 'namedPort'"));
      return port;
    }
    if (!name.is_null()) {
      port.name = names_.id(read_port_name(name, errors_));
      return port;
    }
    const Config& ports = number.is_null() ? range : number;
    const auto checked =
        number.is_null() ? ports.check_keys({"protocol", "start", "end"}) : ports.check_keys({"protocol", "port"});
    if (!checked) {
      errors_.take(checked);
      return port;
    }
    const Config protocol = ports.get("protocol");
    port.protocol = protocol.is_null() ? ip_protocol::tcp : read_protocol(protocol, errors_);
    if (number.is_null()) {
      port.first = read_port_number(ports.get("start"), errors_);
      port.last = read_port_number(ports.get("end"), errors_);
      if (port.first != 0 && port.last != 0 && port.last < port.first) {
        errors_.take(ports.get("end").error("the range ends before it begins: {} to {}", port.first, port.last));
      }
    } else {
      port.first = port.last = read_port_number(ports.get("port"), errors_);
    }
    return port;
  }

  PolicyDraft& draft_;
  Names& names_;
  Errors& errors_;
  bool admin_;
};

}  // namespace

void read_admin_policy(const Config& spec, PolicyDraft& draft, Names& names, Errors& errors) {
  Reader(draft, names, errors).read(spec);
}

}  // namespace weir
