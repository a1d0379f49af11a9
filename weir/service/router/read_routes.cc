#include <weir/service/router/read_routes.h>

#include <algorithm>
#include <optional>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/service/read_match.h>

namespace weir {

namespace {

class Reader {
 public:
  explicit Reader(const std::vector<RouterPort>& ports) : ports_(ports) {}

  void read(const Config::Entry& entry) {
    const auto route = value(entry.value);
    const auto to = route ? destination(entry, *route) : std::nullopt;
    if (!to) {
      return;
    }
    if (!routes_.emplace(*to, *route).second) {
      errors_.take(entry.key.error("a second route to {}; list the next hops in one", to->to_string()));
    }
  }

  Result<Routes> result() {
    if (!errors_.empty()) {
      return std::unexpected(errors_.result().error());
    }
    return std::move(routes_);
  }

 private:
  // Each of these says what is wrong, and then gives nothing.

  std::optional<IpPrefix> destination(const Config::Entry& entry, const Route& route) {
    const bool v6 = !route.hops.empty() && route.hops.front().address.v6;
    if (entry.name == "default") {
      if (route.hops.empty()) {
        errors_.take(entry.key.error("a default route needs a next hop; write 0.0.0.0/0 or ::/0 for one without"));
        return std::nullopt;
      }
      return v6 ? IpPrefix(Ipv6Address{}, 0) : IpPrefix(Ipv4Address{}, 0);
    }
    const auto to = read_prefix(entry.key);
    if (!to) {
      errors_.add(to.error());
      return std::nullopt;
    }
    for (const Hop& hop : route.hops) {
      if (hop.address.v6 != to->address.v6) {
        errors_.take(entry.value.error("{} is no next hop to {}: they are of two families", hop.address.to_string(),
                                       to->to_string()));
        return std::nullopt;
      }
    }
    return *to;
  }

  std::optional<Route> value(const Config& config) {
    if (config.kind() == Config::Kind::scalar) {
      const auto word = config.one_of({"blackhole"});
      if (!word) {
        errors_.add(word.error());
        return std::nullopt;
      }
      return Route{.kind = Route::Kind::blackhole};
    }
    Route route{.kind = Route::Kind::hops};
    bool good = true;
    if (config.kind() == Config::Kind::list) {
      for (const Config& each : errors_.take(config.list())) {
        good = add(each, route) && good;
      }
    } else {
      good = add(config, route);
    }
    if (good && route.kind == Route::Kind::link && config.kind() == Config::Kind::list) {
      errors_.take(config.error("a port without 'via' stands alone, not in a list"));
      return std::nullopt;
    }
    if (good && route.hops.size() > Route::hop_limit) {
      errors_.take(config.error("{} next hops; a route has at most {}", route.hops.size(), Route::hop_limit));
      return std::nullopt;
    }
    if (good && route.kind == Route::Kind::hops && route.hops.empty()) {
      errors_.take(config.error("a route without a next hop; write {{via: ADDRESS}}, {{port: NAME}} or blackhole"));
      return std::nullopt;
    }
    return good ? std::optional(route) : std::nullopt;
  }

  // A map of via, port and bfd.
  bool add(const Config& config, Route& route) {
    if (auto checked = config.check_keys({"via", "port", "bfd"}); !checked) {
      errors_.take(checked);
      return false;
    }
    const RouterPort* port = nullptr;
    if (const Config* name = config.find("port")) {
      port = port_named(*name);
      if (port == nullptr) {
        return false;
      }
    }
    std::optional<bool> bfd;
    const Config* via = config.find("via");
    if (const Config* watched = config.find("bfd")) {
      const auto value = watched->boolean();
      if (!value || via == nullptr) {
        errors_.add(value ? watched->error("BFD is spoken with next hops; give one ('via')").error() : value.error());
        return false;
      }
      bfd = *value;
    }
    if (via == nullptr) {
      if (port != nullptr) {
        route.kind = Route::Kind::link;
        route.port = port->id;
      }
      return true;
    }
    if (via->kind() != Config::Kind::list) {
      return add_hop(*via, port, bfd, route);
    }
    bool good = true;
    for (const Config& each : errors_.take(via->list())) {
      good = add_hop(each, port, bfd, route) && good;
    }
    return good;
  }

  bool add_hop(const Config& config, const RouterPort* port, std::optional<bool> bfd, Route& route) {
    const auto text = config.string("a next hop's address");
    if (!text) {
      errors_.add(text.error());
      return false;
    }
    const auto address = IpAddress::parse(*text);
    if (!address) {
      errors_.add(address.error().at(config.place()));
      return false;
    }
    const auto owns = [&](const PortAddress& own) { return own.address == *address; };
    const auto is_own = [&](const RouterPort& each) { return std::ranges::any_of(each.addresses, owns); };
    if (std::ranges::any_of(ports_, is_own)) {
      errors_.take(config.error("{} is the node's own address; name the next router's", *text));
      return false;
    }
    if (port == nullptr) {
      const auto reaches = [&](const PortAddress& own) { return own.network.contains(*address); };
      const auto place = std::ranges::find_if(
          ports_, [&](const RouterPort& each) { return std::ranges::any_of(each.addresses, reaches); });
      if (place == ports_.end()) {
        errors_.take(
            config.error("no port has an address in a network with {}; give one such an address, or name "
                         "the port",
                         *text));
        return false;
      }
      port = &*place;
    }
    route.hops.push_back({port->id, *address, bfd});
    return true;
  }

  const RouterPort* port_named(const Config& config) {
    const std::string name = errors_.take(config.string("the name of a port"));
    const auto place = std::ranges::find(ports_, name, &RouterPort::name);
    if (place != ports_.end()) {
      return &*place;
    }
    std::vector<std::string_view> known;
    for (const RouterPort& each : ports_) {
      known.emplace_back(each.name);
    }
    errors_.take(
        config.error("no port '{}'; there are: {}{}", name, fmt::join(known, ", "), did_you_mean(name, known)));
    return nullptr;
  }

  const std::vector<RouterPort>& ports_;
  Routes routes_;
  Errors errors_;
};

}  // namespace

Result<Routes> read_routes(std::span<const Config::Entry> routes, const std::vector<RouterPort>& ports) {
  Reader reader(ports);
  for (const Config::Entry& entry : routes) {
    reader.read(entry);
  }
  return reader.result();
}

}  // namespace weir
