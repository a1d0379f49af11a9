#include <weir/service/router/router.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include <weir/base/log.h>
#include <weir/engine/host/bfd_sessions.h>
#include <weir/service/router/learned.h>
#include <weir/service/router/read_bfd.h>
#include <weir/service/router/read_routes.h>
#include <weir/service/router/router_stage.h>

namespace weir {

namespace {

std::vector<RouterPort> ports_of(const ServiceContext& context) {
  std::vector<RouterPort> ports;
  for (const ServicePort& each : context.ports()) {
    RouterPort port{.id = each.id, .name = each.name};
    for (const auto& [address, network] : each.options.addresses) {
      port.addresses.push_back({address, network});
    }
    // For a difference that is only shown, some are not there yet.
    if (context.node.find_port(each.name) == each.id) {
      port.mac = context.node.mac_with(each.id, each.options);
      port.mtu = context.node.mtu_with(each.id, each.options);
      port.interface = context.node.port(each.id).device->interface();
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

Interfaces interfaces_of(const std::vector<RouterPort>& ports) {
  Interfaces interfaces;
  for (const RouterPort& port : ports) {
    if (port.id.valid()) {
      interfaces.ports.resize(std::max<std::size_t>(interfaces.ports.size(), port.id.number + std::size_t{1}));
      interfaces.ports[port.id.number] = {port.mac, port.mtu};
    }
  }
  return interfaces;
}

template <class V>
std::vector<std::pair<IpPrefix, V>> entries_of(const std::map<IpPrefix, V>& map) {
  return {map.begin(), map.end()};
}

/// The number of the kernel's table that `kernel_routes` asks for; nothing if for none.
Result<std::optional<std::uint32_t>> read_table(const Config& setting) {
  const std::string text = setting.is_null() ? "false" : setting.string().value_or("");
  if (text == "false") {
    return std::nullopt;
  }
  if (text == "true") {
    return KernelRoutes::main_table;
  }
  const auto number = setting.integer(1, 0xffffffff);
  if (!number) {
    return setting.error("expected true, false or the number of a routing table (254 is 'main'), found {}",
                         setting.found());
  }
  return static_cast<std::uint32_t>(*number);
}

class Router final : public Service {
 public:
  Router(const ServiceContext& context, const RouterStage::Tables& tables, const FlowStage& stage,
         std::unique_ptr<KernelRoutes> kernel)
      : Service({stage, {}}),
        name_(context.name()),
        node_(context.node),
        tables_(tables),
        kernel_(std::move(kernel)),
        sessions_(node_.state().shared<BfdSessions>()) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    std::vector<RouterPort> ports = ports_of(context);
    auto configured = read_routes(context.map("routes"), ports);
    if (!configured) {
      return std::unexpected(configured.error());
    }
    const Config bfd = context.config("bfd");
    const auto settings = bfd.is_null() ? Result<BfdSettings>() : read_bfd_settings(bfd);
    if (!settings) {
      return std::unexpected(settings.error());
    }
    if (kernel_ != nullptr) {
      report(kernel_->tend(SystemClock::read()));
    }
    const Wish wish{std::move(ports), std::move(*configured), *settings, !bfd.is_null()};
    update.assign(tables_.interfaces, interfaces_of(wish.ports));
    update.assign(tables_.sources, entries_of(all_sources(wish.ports)));
    update.assign(tables_.routes, entries_of(routes(wish)));
    update.afterwards([this, wish] {
      wish_ = wish;
      want();
    });
    return {};
  }

  void tend() override {
    if (kernel_ != nullptr && report(kernel_->tend(SystemClock::read()))) {
      const auto done = node_.update([&](Update& update) { update.assign(tables_.routes, entries_of(routes(wish_))); });
      if (!done) {
        log::warn("router: the kernel's routes cannot be taken over: {}", done.error().message);
      }
      want();
    }
    tell_changes();
  }

  [[nodiscard]] Json state() const override {
    Json json{{"routes", Json::object()}, {"from_kernel", kernel_ != nullptr}};
    for (const auto& [to, route] : told_routes()) {
      json["routes"][to.to_string()] = route.to_string();
    }
    json["neighbours"] = Json::array();
    for_each_neighbour([&](const NeighbourKey& key, const MacAddress& mac) {
      json["neighbours"].push_back(
          {{"port", node_.port(key.port).name}, {"address", key.address.to_string()}, {"mac", mac.to_string()}});
    });
    json["paths"] = Json::array();
    const std::vector<BfdReport> sessions = sessions_.reports();
    for (const PathWish& wish : wishes()) {
      const PathKey& key = wish.key;
      Json path{{"port", node_.port(key.port).name},
                {"address", key.address.to_string()},
                {"up", node_.state().paths().up(key)}};
      const auto session = std::ranges::find(sessions, key, &BfdReport::key);
      if (wish.bfd && session != sessions.end()) {
        path["bfd"] = json_of(*session);
      }
      json["paths"].push_back(std::move(path));
    }
    return json;
  }

  [[nodiscard]] std::span<const ServiceCall> calls() const override {
    static constexpr std::array<ServiceCall, 1> all{
        {{"forget_neighbours", "forgets what Ethernet addresses neighbours have; they are asked again"}}};
    return all;
  }

  Result<Json> call(std::string_view /*name*/, const Json& /*arguments*/) override {
    std::vector<NeighbourKey> keys;
    for_each_neighbour([&](const NeighbourKey& key, const MacAddress& /*mac*/) { keys.push_back(key); });
    const auto done = node_.update([&](Update& update) {
      for (const NeighbourKey& key : keys) {
        update.erase(node_.state().neighbours().table(), key);
      }
    });
    return done ? Result<Json>(Json{{"forgotten", keys.size()}}) : std::unexpected(done.error());
  }

  [[nodiscard]] std::vector<ServiceMetric> metrics() const override {
    double up = 0;
    double flaps = 0;
    const std::vector<BfdReport> sessions = sessions_.reports();
    for (const BfdReport& session : sessions) {
      up += session.state == BfdState::up ? 1 : 0;
      flaps += static_cast<double>(session.flaps);
    }
    return {{"routes", "Routes that the router has.", false, static_cast<double>(told_routes().size())},
            {"bfd_sessions", "BFD sessions of the node.", false, static_cast<double>(sessions.size())},
            {"bfd_sessions_up", "BFD sessions that are up.", false, up},
            {"bfd_flaps", "Times that a BFD session went down, of those that there are.", false, flaps}};
  }

 private:
  /// What was configured.
  struct Wish {
    std::vector<RouterPort> ports;
    Routes configured;
    BfdSettings bfd;
    bool bfd_for_all = false;  ///< unless a route says otherwise
  };

  [[nodiscard]] Json json_of(const BfdReport& session) const {
    const auto milliseconds = [](Nanoseconds time) { return static_cast<double>(time / 1'000) / 1'000; };
    return {{"state", name_of(session.state)},
            {"remote_state", name_of(session.remote_state)},
            {"diagnostic", name_of(session.diagnostic)},
            {"remote_diagnostic", name_of(session.remote_diagnostic)},
            {"discriminator", session.discriminator},
            {"remote_discriminator", session.remote_discriminator},
            {"multiplier", session.multiplier},
            {"transmit_interval_ms", milliseconds(session.transmit_interval)},
            {"detection_time_ms", milliseconds(session.detection_time)},
            {"flaps", session.flaps},
            {"sent", session.sent},
            {"received", session.received},
            {"seconds_in_state", milliseconds(node_.clock().now() - session.changed_at) / 1'000}};
  }

  [[nodiscard]] Routes routes(const Wish& wish) const {
    const Routes learned = kernel_ != nullptr ? learned_routes(kernel_->routes(), wish.ports) : Routes();
    return all_routes(wish.ports, wish.configured, learned);
  }

  /// Without those that follow from the node's own addresses and from what no packet may be sent to.
  [[nodiscard]] Routes told_routes() const {
    Routes told = routes(wish_);
    std::erase_if(told, [](const auto& entry) {
      const Route::Kind kind = entry.second.kind;
      return kind != Route::Kind::hops && kind != Route::Kind::link && kind != Route::Kind::blackhole;
    });
    return told;
  }

  template <class Visit>
  void for_each_neighbour(Visit visit) const {
    if (node_.state().has_neighbours()) {
      node_.state().neighbours().table().for_each(visit);
    }
  }

  // Next hops are known before a packet needs them.
  void want() {
    std::vector<NeighbourKey> keys;
    for (const Hop& hop : all_hops(routes(wish_))) {
      keys.push_back({hop.port, hop.address});
    }
    if (!keys.empty() || node_.state().has_neighbours()) {
      node_.state().neighbours().want(std::move(keys));
    }
    node_.state().paths().want(name_, wishes());
  }

  // A next hop that stands alone and has no session needs no watching: there is no other.
  [[nodiscard]] std::vector<PathWish> wishes() const {
    const Routes all = routes(wish_);
    std::vector<PathWish> wishes;
    for (const Hop& hop : all_hops(all)) {
      const bool bfd = hop.bfd.value_or(wish_.bfd_for_all);
      const bool one_of_several = std::ranges::any_of(all, [&](const auto& entry) {
        const auto same = [&](const Hop& other) { return other.port == hop.port && other.address == hop.address; };
        return entry.second.hops.size() > 1 && std::ranges::any_of(entry.second.hops, same);
      });
      if (bfd || one_of_several) {
        wishes.push_back({{hop.port, hop.address}, bfd ? std::optional(wish_.bfd) : std::nullopt});
      }
    }
    return wishes;
  }

  // Paths that went up or down since it last looked.
  void tell_changes() {
    Paths& paths = node_.state().paths();
    const std::uint64_t changes = paths.changes();
    if (changes == changes_told_) {
      return;
    }
    changes_told_ = changes;
    for (const PathWish& wish : wishes()) {
      const bool up = paths.up(wish.key);
      const auto known = paths_told_.emplace(wish.key, true).first;
      if (known->second != up) {
        known->second = up;
        log::info("router: the path to {} over {} is {}", wish.key.address.to_string(), node_.port(wish.key.port).name,
                  up ? "up" : "down");
      }
    }
  }

  // Whether there is a change; a failure is told once, until it is over.
  bool report(const Result<bool>& changed) {
    if (!changed && !failed_) {
      log::warn("router: {}; the routes stay as they are", changed.error().message);
    }
    failed_ = !changed;
    return changed.value_or(false);
  }

  std::string name_;
  Node& node_;
  RouterStage::Tables tables_;
  std::unique_ptr<KernelRoutes> kernel_;
  BfdSessions& sessions_;
  std::uint64_t changes_told_ = 0;
  std::map<PathKey, bool> paths_told_;  ///< whether they were up
  bool failed_ = false;
  Wish wish_;  ///< that holds
};

Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  const auto table = read_table(context.config("kernel_routes"));
  if (!table) {
    return std::unexpected(table.error());
  }
  std::unique_ptr<KernelRoutes> kernel;
  if (*table) {
    auto opened = KernelRoutes::open(**table);
    if (!opened) {
      return std::unexpected(opened.error().at(context.config("kernel_routes").place()));
    }
    kernel = std::move(*opened);
  }
  State& state = context.state();
  const RouterStage::Tables tables{state.prefixes<Route>("routes"), state.prefixes<Source>("sources"),
                                   state.versioned<Interfaces>("interfaces", {})};
  const FlowStage& stage = context.node.graph().add<RouterStage>(context.name(), tables);
  return std::make_unique<Router>(context, tables, stage, std::move(kernel));
}

}  // namespace

ServiceKind router() {
  const std::string routes = "prefix: {via: next hop or a list, port: NAME} or blackhole; 'default' for all else";
  const std::string bfd = "{interval: 10ms to 60s, multiplier: 1 to 255}: next hops are watched by BFD";
  const std::string kernel = "whether the kernel's routes count too, after those here; or the number of its table";
  return {"router",
          "forwards IP between the ports' networks and by routes; answers for the node's own addresses",
          {live({.name = "bfd", .type = SettingType::map, .help = bfd}),
           live({.name = "routes", .type = SettingType::map, .help = routes}),
           {.name = "kernel_routes", .type = SettingType::text, .help = kernel, .otherwise = "false"}},
          build};
}

}  // namespace weir
