#include <weir/service/nat/nat_rules.h>

#include <algorithm>
#include <charconv>

#include <weir/packet/ipv4.h>
#include <weir/service/read_match.h>

namespace weir {

namespace {

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0 ? std::optional(port) : std::nullopt;
}

// "1024-65535"
Result<PortRange> read_range(const Config& config) {
  const auto text = config.string("a range of ports");
  if (!text) {
    return std::unexpected(text.error());
  }
  const std::size_t dash = text->find('-');
  const auto first = parse_port(std::string_view(*text).substr(0, dash));
  const auto last = dash == std::string::npos ? first : parse_port(std::string_view(*text).substr(dash + 1));
  if (!first || !last || *first > *last) {
    return config.error("expected a range of ports like 1024-65535, found {}", config.found());
  }
  return PortRange{*first, *last};
}

Result<std::uint16_t> read_port(const Config& config) {
  const auto port = config.integer(1, 65'535);
  return port ? Result<std::uint16_t>(static_cast<std::uint16_t>(*port)) : std::unexpected(port.error());
}

// An address, or the name of a port, whose first address of the family is meant.
Result<IpAddress> read_address(const Config& config, const ServiceContext& context, std::optional<bool> v6) {
  const auto text = config.string("an address, or the name of a port that has one");
  if (!text) {
    return std::unexpected(text.error());
  }
  if (const auto address = IpAddress::parse(*text)) {
    if (v6 && address->v6 != *v6) {
      return config.error("{} is of the other family than what it stands for", *text);
    }
    return *address;
  }
  const auto port = std::ranges::find(context.ports(), *text, &ServicePort::name);
  if (port == context.ports().end()) {
    return config.error("expected an address or the name of a port, found {}", config.found());
  }
  for (const auto& [address, network] : port->options.addresses) {
    if (!v6 || address.v6 == *v6) {
      return address;
    }
  }
  return config.error("port '{}' has no {} address; give it one, or write the address here", *text,
                      !v6   ? ""
                      : *v6 ? "IPv6"
                            : "IPv4");
}

class Reader {
 public:
  explicit Reader(const ServiceContext& context) : context_(context) {}

  Result<NatRules> read() {
    for (const Config& each : context_.list("masquerade")) {
      read_masquerade(each);
    }
    for (const Config& each : context_.list("forward")) {
      read_forward(each);
    }
    for (const ServicePort& port : context_.ports()) {
      for (const auto& [address, network] : port.options.addresses) {
        rules_.own.push_back(address);
      }
    }
    if (!errors_.empty()) {
      return std::unexpected(errors_.result().error());
    }
    return std::move(rules_);
  }

 private:
  void read_masquerade(const Config& config) {
    errors_.take(config.check_keys({"from", "except", "to", "ports"}));
    const auto from = read_prefix(config.get("from"));
    if (!from) {
      return errors_.add(from.error());
    }
    Masquerade rule{.from = *from};
    for (const Config& each : errors_.take(config.get("except").list())) {
      rule.except.push_back(errors_.take(read_prefix(each)));
    }
    rule.to = errors_.take(read_address(config.get("to"), context_, from->address.v6));
    if (const Config* ports = config.find("ports")) {
      rule.ports = errors_.take(read_range(*ports));
    }
    rules_.masquerades.push_back(rule);
  }

  void read_forward(const Config& config) {
    errors_.take(config.check_keys({"address", "protocol", "port", "to", "to_port"}));
    PortForward rule;
    const auto to = read_address(config.get("to"), context_, {});
    if (!to) {
      return errors_.add(to.error());
    }
    rule.to = *to;
    rule.address = errors_.take(read_address(config.get("address"), context_, to->v6));
    if (const Config* protocol = config.find("protocol")) {
      static constexpr std::uint8_t numbers[] = {ip_protocol::tcp, ip_protocol::udp, ip_protocol::sctp};
      rule.protocol = numbers[errors_.take(protocol->one_of({"tcp", "udp", "sctp"}))];
      rule.port = errors_.take(read_port(config.get("port")));
      rule.to_port = config.find("to_port") != nullptr ? errors_.take(read_port(config.get("to_port"))) : rule.port;
    } else if (config.find("port") != nullptr || config.find("to_port") != nullptr) {
      errors_.take(config.error("a port needs a protocol: tcp, udp or sctp"));
    }
    const auto same = [&](const PortForward& other) {
      return other.address == rule.address && other.protocol == rule.protocol && other.port == rule.port;
    };
    if (std::ranges::any_of(rules_.forwards, same)) {
      errors_.take(config.error("a second forward of {} {}", rule.address.to_string(),
                                rule.protocol == 0 ? "as a whole" : fmt::format("port {}", rule.port)));
    }
    rules_.forwards.push_back(rule);
  }

  const ServiceContext& context_;
  Errors errors_;
  NatRules rules_;
};

// Spoken to who is on the link: nobody forwards it.
bool stays_on_link(const IpAddress& address) {
  constexpr Ipv4Address all{{255, 255, 255, 255}};
  const bool link_local = address.v6 ? address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0U) == 0x80
                                     : address.bytes[0] == 169 && address.bytes[1] == 254;
  return address.multicast() || link_local || (!address.v6 && address.to_v4() == all);
}

const PortForward* find_forward(const std::vector<PortForward>& forwards, const ConnectionTuple& first) {
  const PortForward* whole = nullptr;
  for (const PortForward& each : forwards) {
    if (each.address != first.dst) {
      continue;
    }
    if (each.protocol == 0) {
      whole = &each;
    } else if (each.protocol == first.protocol && each.port == first.dst_port) {
      return &each;
    }
  }
  return whole;
}

}  // namespace

std::optional<Translation> NatRules::translation(const ConnectionTuple& first) const {
  Translation translation;
  IpAddress dst = first.dst;
  const PortForward* forward = find_forward(forwards, first);
  if (forward != nullptr) {
    translation.dst = dst = forward->to;
    if (forward->protocol != 0) {
      translation.dst_port = forward->to_port;
    }
  } else if (stays_on_link(dst) || std::ranges::find(own, dst) != own.end()) {
    return std::nullopt;
  }
  for (const Masquerade& each : masquerades) {
    // One of them that reaches another through its forwarded port must get its answers by the same way.
    const bool hairpin = forward != nullptr && each.from.contains(dst);
    const bool stays = each.from.contains(dst) ||
                       std::ranges::any_of(each.except, [&](const IpPrefix& prefix) { return prefix.contains(dst); });
    if (each.from.contains(first.src) && (hairpin || !stays)) {
      translation.src = each.to;
      translation.src_ports = each.ports;
      break;
    }
  }
  return translation.src || translation.dst ? std::optional(translation) : std::nullopt;
}

Result<NatRules> read_nat_rules(const ServiceContext& context) { return Reader(context).read(); }

}  // namespace weir
