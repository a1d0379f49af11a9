// NetworkPolicy, networking.k8s.io/v1.

#include <weir/packet/ipv4.h>
#include <weir/service/firewall/internal/policy_reader.h>
#include <weir/service/firewall/read_labels.h>

namespace weir {

namespace {

class Reader {
 public:
  Reader(PolicyDraft& draft, Names& names, Errors& errors) : draft_(draft), names_(names), errors_(errors) {}

  void read(const Config& spec) {
    if (auto checked = spec.check_keys({"podSelector", "policyTypes", "ingress", "egress"}); !checked) {
      errors_.take(checked);
      return;
    }
    Policy& policy = draft_.policy;
    policy.in_namespace = names_.id(policy.key.in_namespace);
    policy.pods = read_selector(spec.get("podSelector"), names_, errors_);
    const Config types = spec.get("policyTypes");
    const auto listed = errors_.take(types.list("a list of Ingress and Egress"));
    for (const Config& type : listed) {
      policy.applies[errors_.take(type.one_of({"Ingress", "Egress"}))] = true;
    }
    const auto ingress = errors_.take(spec.get("ingress").list("a list of rules"));
    const auto egress = errors_.take(spec.get("egress").list("a list of rules"));
    if (listed.empty()) {
      policy.applies = {true, !egress.empty()};
    }
    read_rules(ingress, Direction::ingress);
    read_rules(egress, Direction::egress);
  }

 private:
  // Also rules of a direction that policyTypes leaves out are read, so that their mistakes are told; they count for
  // nothing then.
  void read_rules(std::span<const Config> rules, Direction direction) {
    const bool in = direction == Direction::ingress;
    const auto index = static_cast<std::size_t>(direction);
    for (const Config& config : rules) {
      PolicyRule rule;
      const std::string_view peers = in ? "from" : "to";
      if (config.is_null()) {
        errors_.take(config.error("an empty rule; write {{}} for one that allows everything"));
      } else if (auto checked = config.check_keys({peers, "ports"}); !checked) {
        errors_.take(checked);
      } else {
        read_peers(config.get(peers), rule);
        read_ports(config.get("ports"), rule);
      }
      if (draft_.policy.applies[index]) {
        draft_.policy.rules[index].push_back(std::move(rule));
        draft_.rule_places[index].push_back(config.place());
      }
    }
  }

  void read_peers(const Config& config, PolicyRule& rule) {
    const auto peers = errors_.take(config.list("a list of peers"));
    rule.any_peer = peers.empty();
    for (const Config& peer : peers) {
      rule.peers.push_back(read_peer(peer));
    }
  }

  PolicyPeer read_peer(const Config& config) {
    PolicyPeer peer;
    if (auto checked = config.check_keys({"podSelector", "namespaceSelector", "ipBlock"}); !checked) {
      errors_.take(checked);
      return peer;
    }
    // An empty selector selects everything; one that is not there selects nothing of its own.
    const Config pods = config.get("podSelector");
    const Config namespaces = config.get("namespaceSelector");
    const Config block = config.get("ipBlock");
    if (!block.is_null()) {
      if (!pods.is_null() || !namespaces.is_null()) {
        errors_.take(block.error("an ipBlock stands alone; give the selectors a peer of their own"));
      }
      read_ip_block(block, peer);
      return peer;
    }
    if (pods.is_null() && namespaces.is_null()) {
      errors_.take(config.error(
          "a peer without podSelector, namespaceSelector or ipBlock; write namespaceSelector: {{}} for all endpoints"));
    }
    peer.pods = read_selector(pods, names_, errors_);
    if (namespaces.is_null()) {
      peer.in_namespace = draft_.policy.in_namespace;
    } else {
      peer.namespaces = read_selector(namespaces, names_, errors_);
    }
    return peer;
  }

  void read_ip_block(const Config& config, PolicyPeer& peer) {
    peer.is_block = true;
    if (auto checked = config.check_keys({"cidr", "except"}); !checked) {
      errors_.take(checked);
      return;
    }
    peer.block = read_block(config.get("cidr"), errors_);
    for (const Config& each : errors_.take(config.get("except").list("a list of prefixes"))) {
      const IpPrefix except = read_block(each, errors_);
      if (errors_.empty() && (!peer.block.contains(except.address) || except.length <= peer.block.length)) {
        errors_.take(each.error("{} is no part of {}", except.to_string(), peer.block.to_string()));
      }
      peer.except.push_back(except);
    }
  }

  void read_ports(const Config& config, PolicyRule& rule) {
    const auto ports = errors_.take(config.list("a list of ports"));
    rule.any_port = ports.empty();
    for (const Config& each : ports) {
      rule.ports.push_back(read_port(each));
    }
  }

  PolicyPort read_port(const Config& config) {
    PolicyPort port{.protocol = ip_protocol::tcp};
    if (config.is_null()) {
      errors_.take(config.error("an empty port; write {{protocol: TCP}} for all of TCP"));
      return port;
    }
    if (auto checked = config.check_keys({"protocol", "port", "endPort"}); !checked) {
      errors_.take(checked);
      return port;
    }
    if (const Config protocol = config.get("protocol"); !protocol.is_null()) {
      port.protocol = read_protocol(protocol, errors_);
    }
    const Config number = config.get("port");
    const Config end = config.get("endPort");
    if (number.is_null()) {
      if (!end.is_null()) {
        errors_.take(end.error("an endPort without a port; write port: FIRST, endPort: LAST"));
      }
      return port;
    }
    const bool is_number =
        number.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()).has_value();
    if (!is_number) {
      port.name = names_.id(read_port_name(number, errors_));
      if (!end.is_null()) {
        errors_.take(end.error("an endPort behind a port's name; a range is of numbers"));
      }
      return port;
    }
    port.first = read_port_number(number, errors_);
    port.last = port.first;
    if (!end.is_null()) {
      port.last = read_port_number(end, errors_);
      if (port.first != 0 && port.last != 0 && port.last < port.first) {
        errors_.take(end.error("the range ends before it begins: {} to {}", port.first, port.last));
      }
    }
    return port;
  }

  PolicyDraft& draft_;
  Names& names_;
  Errors& errors_;
};

}  // namespace

void read_network_policy(const Config& spec, PolicyDraft& draft, Names& names, Errors& errors) {
  Reader(draft, names, errors).read(spec);
}

}  // namespace weir
