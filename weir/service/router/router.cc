#include <weir/service/router/router.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include <weir/base/log.h>
#include <weir/service/router/learned.h>
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
  Router(Node& node, const RouterStage::Tables& tables, const FlowStage& stage, std::unique_ptr<KernelRoutes> kernel)
      : Service({stage, {}}), node_(node), tables_(tables), kernel_(std::move(kernel)) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    std::vector<RouterPort> ports = ports_of(context);
    auto configured = read_routes(context.map("routes"), ports);
    if (!configured) {
      return std::unexpected(configured.error());
    }
    if (kernel_ != nullptr) {
      report(kernel_->tend(SystemClock::read()));
    }
    const Wish wish{std::move(ports), std::move(*configured)};
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
    return {{"routes", "Routes that the router has.", false, static_cast<double>(told_routes().size())}};
  }

 private:
  /// What was configured.
  struct Wish {
    std::vector<RouterPort> ports;
    Routes configured;
  };

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
  }

  // Whether there is a change; a failure is told once, until it is over.
  bool report(const Result<bool>& changed) {
    if (!changed && !failed_) {
      log::warn("router: {}; the routes stay as they are", changed.error().message);
    }
    failed_ = !changed;
    return changed.value_or(false);
  }

  Node& node_;
  RouterStage::Tables tables_;
  std::unique_ptr<KernelRoutes> kernel_;
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
  return std::make_unique<Router>(context.node, tables, stage, std::move(kernel));
}

}  // namespace

ServiceKind router() {
  const std::string routes = "prefix: {via: next hop or a list, port: NAME} or blackhole; 'default' for all else";
  const std::string kernel = "whether the kernel's routes count too, after those here; or the number of its table";
  return {"router",
          "forwards IP between the ports' networks and by routes; answers for the node's own addresses",
          {live({.name = "routes", .type = SettingType::map, .help = routes}),
           {.name = "kernel_routes", .type = SettingType::text, .help = kernel, .otherwise = "false"}},
          build};
}

}  // namespace weir
