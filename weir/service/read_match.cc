#include <weir/service/read_match.h>

#include <array>
#include <charconv>

namespace weir {

namespace {

using PortBlocks = std::vector<std::pair<std::uint16_t, unsigned>>;

constexpr std::array<std::string_view, 9> protocols{"tcp", "udp",  "sctp", "icmp", "icmpv6",
                                                    "arp", "ipv4", "ipv6", "ip"};
constexpr std::array protocol_layers{layers::tcp, layers::udp,  layers::sctp, layers::icmp, layers::icmpv6,
                                     layers::arp, layers::ipv4, layers::ipv6, layers::ip};

template <class T>
Result<T> placed(const Config& text, Result<T> parsed) {
  return parsed ? parsed : std::unexpected(parsed.error().at(text.place()));
}

Result<PortBlocks> read_range(const Config& value) {
  const auto refuse = [&] {
    return value.error("expected a port (0 to 65535) or a range such as \"1000-2000\", found {}", value.found());
  };
  const auto text = value.string("a port");
  if (!text) {
    return refuse();
  }
  const char* const end = text->data() + text->size();
  std::uint16_t low = 0;
  auto [at, failure] = std::from_chars(text->data(), end, low);
  std::uint16_t high = low;
  if (failure == std::errc{} && at != end && *at == '-') {
    std::tie(at, failure) = [&] {
      const auto [next, error] = std::from_chars(at + 1, end, high);
      return std::pair(next, error);
    }();
  }
  if (failure != std::errc{} || at != end) {
    return refuse();
  }
  if (high < low) {
    return value.error("the range {} ends before it starts", *text);
  }
  return port_ranges(low, high);
}

/// None: any port.
Result<PortBlocks> read_ports(const Config* value) {
  if (value == nullptr) {
    return PortBlocks{};
  }
  if (value->kind() != Config::Kind::list) {
    return read_range(*value);
  }
  PortBlocks all;
  const auto items = value->list();
  for (const Config& item : *items) {
    auto blocks = read_range(item);
    if (!blocks) {
      return blocks;
    }
    all.insert(all.end(), blocks->begin(), blocks->end());
  }
  if (all.empty()) {
    return value->error("an empty list of ports matches nothing; leave the key out to match any");
  }
  return all;
}

/// Each match with each of the blocks.
void multiply(std::vector<Match>& matches, Field<std::uint16_t> field, const PortBlocks& blocks) {
  if (blocks.empty()) {
    return;
  }
  std::vector<Match> product;
  for (const Match& match : matches) {
    for (const auto& [value, free_bits] : blocks) {
      product.push_back(Match(match).with_block(field, value, free_bits));
    }
  }
  matches = std::move(product);
}

}  // namespace

std::span<const std::string_view> match_keys() {
  static constexpr std::array<std::string_view, 6> keys{"protocol", "src", "dst", "src_port", "dst_port", "vlan"};
  return keys;
}

Result<IpPrefix> read_prefix(const Config& text) {
  const auto value = text.string("an IP prefix such as 10.0.0.0/8");
  return value ? placed(text, IpPrefix::parse(*value)) : std::unexpected(value.error());
}

Result<MacAddress> read_mac(const Config& text) {
  const auto value = text.string("an Ethernet address such as 02:00:00:00:00:01");
  return value ? placed(text, MacAddress::parse(*value)) : std::unexpected(value.error());
}

Result<std::vector<Match>> read_match(const Config& rule) {
  Errors errors;
  Match match;
  bool may_have_ports = true;
  if (const Config* protocol = rule.find("protocol")) {
    const std::size_t which = errors.take(protocol->one_of(protocols));
    match.with(protocol_layers[which]);
    const Layer layer = protocol_layers[which];
    may_have_ports = layer == layers::tcp || layer == layers::udp || layer == layers::sctp || layer == layers::ip ||
                     layer == layers::ipv4 || layer == layers::ipv6;
  }
  const Config* src = rule.find("src");
  const Config* dst = rule.find("dst");
  const IpPrefix from = src == nullptr ? IpPrefix() : errors.take(read_prefix(*src));
  const IpPrefix to = dst == nullptr ? IpPrefix() : errors.take(read_prefix(*dst));
  if (src != nullptr && dst != nullptr && errors.empty() && from.address.v6 != to.address.v6) {
    errors.take(dst->error("src is {} and dst is {}; no packet has both", from.address.v6 ? "IPv6" : "IPv4",
                           to.address.v6 ? "IPv6" : "IPv4"));
  }
  if (src != nullptr) {
    match.with(ip::src, from);
  }
  if (dst != nullptr) {
    match.with(ip::dst, to);
  }
  if (const Config* vlan = rule.find("vlan")) {
    match.with(vlan::id, static_cast<std::uint16_t>(errors.take(vlan->integer(1, 4094))));
  }
  std::vector<Match> matches{match};
  for (const auto& [key, field] : {std::pair("src_port", l4::src_port), std::pair("dst_port", l4::dst_port)}) {
    const Config* ports = rule.find(key);
    multiply(matches, field, errors.take(read_ports(ports)));
    if (ports != nullptr && !may_have_ports) {
      errors.take(ports->error("{} does not go with this protocol; only tcp, udp and sctp have ports", key));
    }
  }
  if (!errors.empty()) {
    return std::unexpected(errors.result().error());
  }
  return matches;
}

}  // namespace weir
