#include <weir/service/vswitch/vswitch.h>

#include <array>
#include <map>

#include <weir/base/log.h>
#include <weir/service/vswitch/answer_stage.h>
#include <weir/service/vswitch/assigned.h>
#include <weir/service/vswitch/read_networks.h>
#include <weir/service/vswitch/report.h>
#include <weir/service/vswitch/switch_stage.h>

namespace weir {

namespace vswitch_internal {

namespace {

class VSwitch final : public Service {
 public:
  VSwitch(Node& node, std::string name, const SwitchTables& tables, const FlowStage& stage, Group& next_hops,
          Nanoseconds aging)
      : Service({stage, {}}),
        node_(node),
        name_(std::move(name)),
        tables_(tables),
        next_hops_(next_hops),
        aging_(aging),
        attachments_(tables.attachments),
        macs_(tables.macs),
        bindings_(tables.bindings),
        networks_(tables.networks),
        vteps_(tables.vteps),
        tunnels_(tables.tunnels) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    auto plan = read_networks(context);
    if (!plan) {
      return std::unexpected(plan.error());
    }
    assign_networks(*plan, update);
    assign_routes(*plan, update);
    assign_floods(*plan, update);
    update.assign(tables_.underlay, plan->underlay);
    std::vector<Member> members = members_of(*plan);
    if (members != members_) {
      update.set_members(next_hops_, members);
    }
    const auto kept = std::make_shared<SwitchPlan>(std::move(*plan));
    update.afterwards([this, kept, members = std::move(members)] {
      members_ = members;
      plan_ = std::move(*kept);
      want();
    });
    return {};
  }

  // The next hops' Ethernet addresses, as they become known, or change.
  void tend() override {
    if (plan_.next_hops.empty()) {
      return;
    }
    std::vector<Member> members = members_of(plan_);
    if (members == members_) {
      return;
    }
    const auto done = node_.update([&](Update& update) { update.set_members(next_hops_, members); });
    if (!done) {
      log::warn("{}: the next hops cannot be set: {}", name_, done.error().message);
      return;
    }
    members_ = std::move(members);
  }

  [[nodiscard]] Json state() const override {
    Json json = describe(plan_, node_);
    json["macs"] = tables_.macs.size();
    const auto up = std::ranges::count_if(members_, [this](const Member& member) {
      return !member.path || node_.state().paths().up({member.port, *member.path});
    });
    json["next_hops"] = {{"configured", plan_.next_hops.size()}, {"reachable", up}};
    return json;
  }

  [[nodiscard]] std::span<const ServiceCall> calls() const override {
    static constexpr std::array<ServiceCall, 3> all{
        {{"macs", "the Ethernet addresses it knows and where they are, at most 10,000"},
         {"addresses", "the IP addresses it knows and whose they are, at most 10,000"},
         {"routes", "where packets to each prefix go, by VRF"}}};
    return all;
  }

  Result<Json> call(std::string_view name, const Json& /*arguments*/) override {
    return name == "macs"        ? known_macs(tables_, node_)
           : name == "addresses" ? known_addresses(tables_)
                                 : known_routes(plan_);
  }

  [[nodiscard]] std::vector<ServiceMetric> metrics() const override {
    std::size_t vteps = 0;
    for (const NetworkPlan& network : plan_.networks) {
      vteps += network.vteps.size();
    }
    return {{"networks", "Networks that the switch has.", false, static_cast<double>(plan_.networks.size())},
            {"vteps", "Tunnel end points of its networks.", false, static_cast<double>(vteps)},
            {"macs", "Ethernet addresses that it knows.", false, static_cast<double>(tables_.macs.size())}};
  }

 private:
  void assign_networks(const SwitchPlan& plan, Update& update) {
    std::vector<Vni> vnis;
    decltype(attachments_)::Entries attachments;
    decltype(macs_)::Entries macs;
    decltype(bindings_)::Entries bindings;
    decltype(networks_)::Entries networks;
    decltype(vteps_)::Entries vteps;
    decltype(tunnels_)::Entries tunnels;
    const auto add_vteps = [&](Vni vni, const std::vector<IpAddress>& addresses) {
      for (const IpAddress& address : addresses) {
        const AddressKey key{vni, address};
        const std::uint32_t id = id_of(key);
        const auto link = plan.link_of(address);
        vteps.emplace_back(key, link ? Vtep{.id = id, .port = *link} : Vtep{.id = id, .group = &next_hops_});
        tunnels.emplace_back(id, key);
      }
    };
    for (const NetworkPlan& network : plan.networks) {
      vnis.push_back(network.vni);
      networks.emplace_back(network.vni, network.network);
      if (network.network.gateway.valid()) {
        networks.back().second.routes = &routes_of(network.vrf);
        attachments.emplace_back(AttachKey{network.network.gateway}, Attachment{.vni = network.vni, .gateway = true});
      }
      for (const AttachKey& key : network.attachments) {
        const PortRules& rules = plan.ports.at(key.port);
        attachments.emplace_back(key, Attachment{.vni = network.vni,
                                                 .learned = learned_by(key.port, rules.macs),
                                                 .bound = bound_by(key.port, rules.macs),
                                                 .meter = meter_of(key.port, rules.rate),
                                                 .mirror = rules.mirror});
      }
      add_vteps(network.vni, network.vteps);
      for (const auto& [mac, place] : network.macs) {
        macs.emplace_back(MacKey{network.vni, mac}, place);
      }
      for (const auto& [address, mac] : network.bindings) {
        const bool gateway = network.network.gateway.valid() && mac == network.network.router;
        bindings.emplace_back(AddressKey{network.vni, address}, Binding{mac, true, gateway});
      }
    }
    for (const VrfPlan& vrf : plan.vrfs) {
      if (vrf.vni != 0) {
        vnis.push_back(vrf.vni);
        networks.emplace_back(vrf.vni, Network{.routed_only = true,
                                               .router = vrf.mac,
                                               .mtu = plan.underlay.inner_mtu,
                                               .routes = &routes_of(vrf.name)});
        add_vteps(vrf.vni, vrf.vteps);
      }
    }
    std::ranges::sort(vnis);
    attachments_.assign(update, std::move(attachments));
    macs_.assign(update, std::move(macs));
    bindings_.assign(update, std::move(bindings));
    networks_.assign(update, std::move(networks));
    vteps_.assign(update, std::move(vteps));
    tunnels_.assign(update, std::move(tunnels));
    update.assign(tables_.vnis, std::move(vnis));
  }

  // Those that no network has any more are empty.
  void assign_routes(const SwitchPlan& plan, Update& update) {
    for (const VrfPlan& vrf : plan.vrfs) {
      routes_of(vrf.name);
    }
    for (const auto& [name, routes] : routes_) {
      const auto vrf = std::ranges::find(plan.vrfs, name, &VrfPlan::name);
      update.assign(*routes, vrf == plan.vrfs.end() ? std::vector<std::pair<IpPrefix, VrfRoute>>() : vrf->routes);
    }
  }

  void assign_floods(const SwitchPlan& plan, Update& update) const {
    std::vector<FloodDomains::Numbered> domains;
    for (const NetworkPlan& network : plan.networks) {
      FloodDomain local;
      for (const AttachKey& key : network.attachments) {
        if (key.vlan == untagged) {
          local.ports.push_back(key.port);
        } else {
          local.tagged.push_back({key.port, key.vlan});
        }
      }
      if (!network.vteps.empty()) {
        FloodDomain all = local;
        all.tunnel = {.vni = network.vni, .src = plan.underlay.local};
        all.remotes.reserve(network.vteps.size());
        for (const IpAddress& address : network.vteps) {
          Remote remote{.address = address};
          if (const auto link = plan.link_of(address)) {
            remote.port = *link;
            remote.next_hop = address;
          } else {
            remote.group = &next_hops_;
          }
          all.remotes.push_back(remote);
        }
        domains.emplace_back(domain_of(network.vni, false), std::make_shared<const FloodDomain>(std::move(all)));
      }
      domains.emplace_back(domain_of(network.vni, true), std::make_shared<const FloodDomain>(std::move(local)));
    }
    update.assign(name_ + " floods", first_domain, end_domain, std::move(domains));
  }

  // Those whose Ethernet addresses are known.
  [[nodiscard]] std::vector<Member> members_of(const SwitchPlan& plan) const {
    std::vector<Member> members;
    for (const NextHop& hop : plan.next_hops) {
      const Underlay::Port* port = plan.underlay.find(hop.port);
      const auto mac = hop.mac                          ? hop.mac
                       : node_.state().has_neighbours() ? node_.state().neighbours().find({hop.port, hop.address})
                                                        : std::nullopt;
      if (port != nullptr && mac) {
        members.push_back({.port = hop.port,
                           .dst = *mac,
                           .src = port->mac,
                           .path = hop.mac ? std::nullopt : std::optional(hop.address)});
      }
    }
    return members;
  }

  // Next hops, and nodes on the uplinks' links, are known before a packet needs them; next hops are watched.
  void want() {
    std::vector<NeighbourKey> keys;
    std::vector<PathWish> paths;
    for (const NextHop& hop : plan_.next_hops) {
      if (!hop.mac) {
        keys.push_back({hop.port, hop.address});
        paths.push_back({keys.back(), plan_.bfd});
      }
    }
    node_.state().paths().want(name_, std::move(paths));
    for (const auto& [key, vtep] : vteps_.entries()) {
      if (vtep.group == nullptr) {
        keys.push_back({vtep.port, key.address});
      }
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    keys.resize(
        std::min<std::size_t>(keys.size(), Neighbours::capacity / 2));  // others are asked when packets need them
    if (!keys.empty() || node_.state().has_neighbours()) {
      node_.state().neighbours().want(std::move(keys), name_);
    }
  }

  // What was made for a VRF or a port stays, as all state does; one that comes back finds it again.
  VrfRoutes& routes_of(const std::string& vrf) {
    VrfRoutes*& routes = routes_[vrf];
    if (routes == nullptr) {
      routes = &node_.state().prefixes<VrfRoute>(fmt::format("{} routes of {}", name_, vrf));
    }
    return *routes;
  }

  LearnedMacs* learned_by(PortId port, std::uint32_t limit) {
    LearnedMacs*& table = learned_[{port, limit}];
    if (table == nullptr) {
      table =
          &node_.state().table<MacKey, std::uint8_t>(name_ + " macs of a port", {.capacity = limit, .idle = aging_});
    }
    return table;
  }

  LearnedBindings* bound_by(PortId port, std::uint32_t macs) {
    constexpr std::uint32_t fewest = 16;  // one host has some
    const std::uint32_t limit = std::max(macs, fewest);
    LearnedBindings*& table = bound_[{port, limit}];
    if (table == nullptr) {
      table = &node_.state().table<AddressKey, std::uint8_t>(name_ + " IP addresses of a port",
                                                             {.capacity = limit, .idle = aging_});
    }
    return table;
  }

  Meter* meter_of(PortId port, std::uint64_t rate) {
    if (rate == 0) {
      return nullptr;
    }
    Meter*& meter = meters_[{port, rate}];
    if (meter == nullptr) {
      constexpr std::uint64_t least_burst = 65'536;  // a segmented packet
      meter = &node_.state().byte_meter(name_ + " rate of a port", rate, std::max(least_burst, rate / 20));
    }
    return meter;
  }

  // Never given to another: a packet that comes out of a tunnel carries it.
  std::uint32_t id_of(const AddressKey& key) {
    const auto [place, added] = ids_.try_emplace(key, last_id_ + 1);
    last_id_ += added ? 1 : 0;
    return place->second;
  }

  Node& node_;
  std::string name_;
  SwitchTables tables_;
  Group& next_hops_;
  Nanoseconds aging_;
  Assigned<AttachKey, Attachment> attachments_;
  Assigned<MacKey, Place> macs_;
  Assigned<AddressKey, Binding> bindings_;
  Assigned<Vni, Network> networks_;
  Assigned<AddressKey, Vtep> vteps_;
  Assigned<std::uint32_t, AddressKey> tunnels_;
  std::map<std::string, VrfRoutes*> routes_;  ///< by VRF
  std::map<std::pair<PortId, std::uint32_t>, LearnedMacs*> learned_;
  std::map<std::pair<PortId, std::uint32_t>, LearnedBindings*> bound_;
  std::map<std::pair<PortId, std::uint64_t>, Meter*> meters_;
  std::map<AddressKey, std::uint32_t> ids_;
  std::uint32_t last_id_ = 0;
  SwitchPlan plan_;  ///< that holds
  std::vector<Member> members_;
};

Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  State& state = context.state();
  const std::string& name = context.name();
  constexpr std::uint32_t most_networks = 16'384;
  constexpr std::uint32_t most_vteps = 131'072;
  constexpr std::uint32_t most_attachments = 16'384;
  const Nanoseconds aging = static_cast<Nanoseconds>(context.number("aging")) * 1'000'000'000;
  const SwitchTables tables{
      .attachments = state.table<AttachKey, Attachment>(name + " ports", {.capacity = most_attachments}),
      .macs = state.table<MacKey, Place>(
          name + " macs", {.capacity = static_cast<std::uint32_t>(context.number("macs")), .idle = aging}),
      .bindings = state.table<AddressKey, Binding>(
          name + " IP addresses", {.capacity = static_cast<std::uint32_t>(context.number("macs")), .idle = aging}),
      .networks = state.table<Vni, Network>(name + " networks", {.capacity = most_networks}),
      .vteps = state.table<AddressKey, Vtep>(name + " vteps", {.capacity = most_vteps}),
      .tunnels = state.table<std::uint32_t, AddressKey>(name + " tunnels", {.capacity = most_vteps}),
      .vnis = state.versioned<std::vector<Vni>>(name + "'s VNIs", {}),
      .underlay = state.versioned<Underlay>(name + "'s uplinks", {}),
      .too_big_to_flood = state.counter(name + " too big to flood into tunnels")};
  Graph& graph = context.node.graph();
  auto& answers = graph.add<AnswerStage>(name + " answers", tables);
  graph.connect(answers, graph.stage(name + " answered", [](Flow& flow) { return flow.output(flow.ingress()); }),
                AnswerStage::answered);
  graph.connect(answers, graph.add<AfterAnswers>(name + " unanswered", tables, false), AnswerStage::unanswered);
  graph.connect(answers, graph.add<AfterAnswers>(name + " to gateway", tables, true), AnswerStage::about_gateway);
  const FlowStage& inside = graph.add<InsideStage>(name + " inside", tables, answers);
  const FlowStage& stage = graph.add<SwitchStage>(name, tables, inside, answers);
  return std::make_unique<VSwitch>(context.node, name, tables, stage, state.group(name + " next hops"), aging);
}

}  // namespace

}  // namespace vswitch_internal

ServiceKind vswitch() {
  return {
      "vswitch",
      "networks of ports and, by VXLAN, of other nodes: learns, floods, isolates",
      {live({.name = "networks",
             .type = SettingType::map,
             .help = "VNI: {vlan, ports, trunks, selector, vteps, macs, bindings, unknown: flood or drop, suppress: "
                     "true or false, gateway: PORT, vrf: NAME}"}),
       live({.name = "vrfs",
             .type = SettingType::map,
             .help = "NAME: {vni, mac, routes: {PREFIX: {vtep, mac} or blackhole}}: networks that are routed between"}),
       live({.name = "ports", .type = SettingType::map, .help = "NAME: {macs, rate in bytes a second, mirror: PORT}"}),
       live({.name = "local",
             .type = SettingType::text,
             .help = "where tunnels start: an address of an uplink; without it, the first of the first uplink"}),
       live({.name = "next_hops",
             .type = SettingType::list,
             .help = "the way to nodes on no link of an uplink: addresses, or {port, address or mac}"}),
       live({.name = "bfd",
             .type = SettingType::map,
             .help = "{interval: 10ms to 60s, multiplier: 1 to 255}: next hops are watched by BFD"}),
       live(number_setting("macs_per_port", "Ethernet addresses that are learned on a port", 1024, 1, 1 << 20)),
       number_setting("macs", "Ethernet addresses that it remembers", 65'536, 16, 1 << 22),
       number_setting("aging", "seconds until an unused address is forgotten; 0: never", 300, 0, 1'000'000)},
      vswitch_internal::build};
}

}  // namespace weir
