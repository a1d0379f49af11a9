#include <weir/service/vswitch/vswitch.h>

#include <array>
#include <map>

#include <weir/base/log.h>
#include <weir/service/vswitch/answer_stage.h>
#include <weir/service/vswitch/assigned.h>
#include <weir/service/vswitch/read_networks.h>
#include <weir/service/vswitch/switch_stage.h>

namespace weir {

namespace vswitch_internal {

namespace {

/// Gets the questions that nobody could answer on behalf of others: they go where they were going.
class UnansweredStage final : public FlowStage, Forwarding {
 public:
  explicit UnansweredStage(const SwitchTables& tables) : Forwarding(tables) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override {
    const PortId in = flow.ingress();
    const std::uint16_t vlan = flow[vlan::id].value_or(untagged);
    const Attachment* attached = flow.lookup(tables_.attachments, {in, vlan});
    return attached == nullptr ? flow.drop(gone)
                               : forward(flow, {attached->vni, {in, vlan, {}}, flow.has(layers::vlan)});
  }

 private:
  static constexpr DropReason gone{"no_network", "its port, or the VLAN of its tag there, is in no network"};
};

class VSwitch final : public Service {
 public:
  VSwitch(Node& node, std::string name, const SwitchTables& tables, const FlowStage& stage, Group& next_hops,
          AnswerStage& answers, Nanoseconds aging)
      : Service({stage, {}}),
        node_(node),
        name_(std::move(name)),
        tables_(tables),
        next_hops_(next_hops),
        answers_(answers),
        aging_(aging),
        attachments_(tables.attachments),
        macs_(tables.macs),
        networks_(tables.networks),
        vteps_(tables.vteps),
        tunnels_(tables.tunnels) {}

  Result<> configure(const ServiceContext& context, Update& update) override {
    auto plan = read_networks(context);
    if (!plan) {
      return std::unexpected(plan.error());
    }
    assign_networks(*plan, update);
    assign_floods(*plan, update);
    update.assign(tables_.underlay, plan->underlay);
    std::vector<Member> members = members_of(*plan);
    if (members != members_) {
      update.set_members(next_hops_, members);
    }
    const auto kept = std::make_shared<SwitchPlan>(std::move(*plan));
    update.afterwards([this, kept, members = std::move(members)] {
      members_ = members;
      answers_.set(bindings_of(*kept));
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
    Json json{{"networks", Json::object()}, {"macs", tables_.macs.size()}};
    for (const NetworkPlan& network : plan_.networks) {
      json["networks"][std::to_string(network.vni)] = {{"ports", network.attachments.size()},
                                                       {"vteps", network.vteps.size()}};
    }
    if (plan_.underlay.tunnels) {
      json["local"] = plan_.underlay.local.to_string();
      json["tunnel_mtu"] = plan_.underlay.inner_mtu;
    }
    json["next_hops"] = {{"configured", plan_.next_hops.size()}, {"reachable", members_.size()}};
    return json;
  }

  [[nodiscard]] std::span<const ServiceCall> calls() const override {
    static constexpr std::array<ServiceCall, 1> all{
        {{"macs", "the Ethernet addresses it knows and where they are, at most 10,000"}}};
    return all;
  }

  Result<Json> call(std::string_view /*name*/, const Json& /*arguments*/) override {
    constexpr std::size_t most = 10'000;
    Json list = Json::array();
    tables_.macs.for_each([&](const MacKey& key, const Place& place) {
      if (list.size() < most) {
        Json entry{{"network", key.vni}, {"mac", key.mac.to_string()}};
        if (place.port.valid()) {
          entry["port"] = node_.port_table().ports[place.port.number].name;
        } else {
          entry["vtep"] = place.vtep.to_string();
        }
        if (place.vlan != untagged) {
          entry["vlan"] = place.vlan;
        }
        list.push_back(std::move(entry));
      }
    });
    return Json{{"macs", std::move(list)}};
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
    decltype(networks_)::Entries networks;
    decltype(vteps_)::Entries vteps;
    decltype(tunnels_)::Entries tunnels;
    for (const NetworkPlan& network : plan.networks) {
      vnis.push_back(network.vni);
      networks.emplace_back(network.vni, network.network);
      for (const AttachKey& key : network.attachments) {
        const PortRules& rules = plan.ports.at(key.port);
        attachments.emplace_back(key, Attachment{.vni = network.vni,
                                                 .learned = learned_by(key.port, rules.macs),
                                                 .meter = meter_of(key.port, rules.rate),
                                                 .mirror = rules.mirror,
                                                 .answer = !network.bindings.empty()});
      }
      for (const IpAddress& address : network.vteps) {
        const VtepKey key{network.vni, address};
        const std::uint32_t id = id_of(key);
        const auto link = plan.link_of(address);
        vteps.emplace_back(key, link ? Vtep{.id = id, .port = *link} : Vtep{.id = id, .group = &next_hops_});
        tunnels.emplace_back(id, key);
      }
      for (const auto& [mac, place] : network.macs) {
        macs.emplace_back(MacKey{network.vni, mac}, place);
      }
    }
    attachments_.assign(update, std::move(attachments));
    macs_.assign(update, std::move(macs));
    networks_.assign(update, std::move(networks));
    vteps_.assign(update, std::move(vteps));
    tunnels_.assign(update, std::move(tunnels));
    update.assign(tables_.vnis, std::move(vnis));
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

  static Bindings bindings_of(const SwitchPlan& plan) {
    Bindings bindings;
    for (const NetworkPlan& network : plan.networks) {
      for (const AttachKey& key : network.attachments) {
        bindings.attachments[key] = network.vni;
      }
      for (const auto& [address, mac] : network.bindings) {
        bindings.macs[{network.vni, address}] = mac;
      }
    }
    return bindings;
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
        members.push_back({.port = hop.port, .dst = *mac, .src = port->mac});
      }
    }
    return members;
  }

  // Next hops, and nodes on the uplinks' links, are known before a packet needs them.
  void want() {
    std::vector<NeighbourKey> keys;
    for (const NextHop& hop : plan_.next_hops) {
      if (!hop.mac) {
        keys.push_back({hop.port, hop.address});
      }
    }
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

  // What was made for a port stays, as all state does; a port that comes back to a limit finds it again.
  LearnedMacs* learned_by(PortId port, std::uint32_t limit) {
    LearnedMacs*& table = learned_[{port, limit}];
    if (table == nullptr) {
      table =
          &node_.state().table<MacKey, std::uint8_t>(name_ + " macs of a port", {.capacity = limit, .idle = aging_});
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
  std::uint32_t id_of(const VtepKey& key) {
    const auto [place, added] = ids_.try_emplace(key, last_id_ + 1);
    last_id_ += added ? 1 : 0;
    return place->second;
  }

  Node& node_;
  std::string name_;
  SwitchTables tables_;
  Group& next_hops_;
  AnswerStage& answers_;
  Nanoseconds aging_;
  Assigned<AttachKey, Attachment> attachments_;
  Assigned<MacKey, Place> macs_;
  Assigned<Vni, Network> networks_;
  Assigned<VtepKey, Vtep> vteps_;
  Assigned<std::uint32_t, VtepKey> tunnels_;
  std::map<std::pair<PortId, std::uint32_t>, LearnedMacs*> learned_;
  std::map<std::pair<PortId, std::uint64_t>, Meter*> meters_;
  std::map<VtepKey, std::uint32_t> ids_;
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
      .networks = state.table<Vni, Network>(name + " networks", {.capacity = most_networks}),
      .vteps = state.table<VtepKey, Vtep>(name + " vteps", {.capacity = most_vteps}),
      .tunnels = state.table<std::uint32_t, VtepKey>(name + " tunnels", {.capacity = most_vteps}),
      .vnis = state.versioned<std::vector<Vni>>(name + "'s VNIs", {}),
      .underlay = state.versioned<Underlay>(name + "'s uplinks", {}),
      .too_big_to_flood = state.counter(name + " too big to flood into tunnels")};
  Graph& graph = context.node.graph();
  auto& answers = graph.add<AnswerStage>(name + " answers", state.epochs());
  const FlowStage& answered = graph.stage(name + " answered", [](Flow& flow) { return flow.output(flow.ingress()); });
  const FlowStage& unanswered = graph.add<UnansweredStage>(name + " unanswered", tables);
  graph.connect(answers, answered, 0);
  graph.connect(answers, unanswered, 1);
  const FlowStage& inside = graph.add<InsideStage>(name + " inside", tables);
  const FlowStage& stage = graph.add<SwitchStage>(name, tables, inside, &answers);
  return std::make_unique<VSwitch>(context.node, name, tables, stage, state.group(name + " next hops"), answers, aging);
}

}  // namespace

}  // namespace vswitch_internal

ServiceKind vswitch() {
  return {
      "vswitch",
      "networks of ports and, by VXLAN, of other nodes: learns, floods, isolates",
      {live({.name = "networks",
             .type = SettingType::map,
             .help = "VNI: {vlan, ports, trunks, selector, vteps, macs, bindings, unknown: flood or drop}"}),
       live({.name = "ports", .type = SettingType::map, .help = "NAME: {macs, rate in bytes a second, mirror: PORT}"}),
       live({.name = "local",
             .type = SettingType::text,
             .help = "where tunnels start: an address of an uplink; without it, the first of the first uplink"}),
       live({.name = "next_hops",
             .type = SettingType::list,
             .help = "the way to nodes on no link of an uplink: addresses, or {port, address or mac}"}),
       live(number_setting("macs_per_port", "Ethernet addresses that are learned on a port", 1024, 1, 1 << 20)),
       number_setting("macs", "Ethernet addresses that it remembers", 65'536, 16, 1 << 22),
       number_setting("aging", "seconds until an unused address is forgotten; 0: never", 300, 0, 1'000'000)},
      vswitch_internal::build};
}

}  // namespace weir
