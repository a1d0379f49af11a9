#include <weir/control/chains.h>

#include <algorithm>
#include <ranges>

namespace weir {

namespace {

constexpr DropReason chain_end{"chain_end", "the last service of its port's chain passed it on"};
constexpr DropReason no_chain{"no_chain", "its port has no chain any more"};

}  // namespace

Verdict ChainStage::decide(Flow& flow) const {
  const ChainPlan& plan = flow.read(plan_);
  const auto entry = plan.chains.find(plan.only ? *plan.only : flow.read(*ports_[flow.ingress().number]));
  if (entry == plan.chains.end()) {
    return flow.drop(no_chain);
  }
  const std::optional<StageRef>& next = entry->second[place_];
  if (!next) {
    return flow.drop(chain_end);
  }
  return next->flow != nullptr ? flow.to(*next->flow) : flow.to(*next->packet);
}

// A port whose chain has none, by now, lets the packet go.
Verdict DeliveryStage::decide(Flow& flow) const {
  const ChainPlan& plan = flow.read(plan_);
  const auto entry = plan.deliveries.find(plan.only ? *plan.only : flow.read(*ports_[flow.egress().number]));
  if (entry == plan.deliveries.end() || !entry->second[place_]) {
    return flow.next();
  }
  const StageRef& next = *entry->second[place_];
  return next.flow != nullptr ? flow.to(*next.flow) : flow.to(*next.packet);
}

Chains::Chains(Node& node) : plan_(node.state().versioned<ChainPlan>("the chains", {})) {
  for (unsigned port = 0; port < max_ports; ++port) {
    ports_.push_back(&node.state().versioned<ChainId>("the chain of its port", 0));
  }
  node.graph().connect_ports(node.graph().add<ChainStage>("chains", plan_, ports_, 0U));
}

void Chains::connect(Graph& graph, std::span<const NamedService> services) {
  services_ = services;
  for (std::size_t i = 0; i < services.size(); ++i) {
    if (const auto& exit = services[i].service->stages().exit) {
      graph.connect(*exit, graph.add<ChainStage>("behind " + services[i].name, plan_, ports_, i + 1));
    }
  }
  const auto delivers = [](const NamedService& service) { return service.service->stages().delivery.has_value(); };
  if (std::ranges::none_of(services, delivers)) {
    return;
  }
  delivery_ = graph.deliver_at(graph.add<DeliveryStage>("delivery", plan_, ports_, 0U));
  for (std::size_t i = 0; i < services.size(); ++i) {
    if (const ServiceStages& stages = services[i].service->stages(); stages.delivery) {
      graph.connect(stages.delivery_exit.value_or(*stages.delivery),
                    graph.add<DeliveryStage>("delivery behind " + services[i].name, plan_, ports_, i + 1));
    }
  }
}

// From the end of the chain to its beginning.
ChainPlan::Next Chains::delivery_of(const NodeFile& file, const NodeFile::ChainEntry& chain) const {
  ChainPlan::Next next(services_.size() + 1);
  std::size_t place = 0;
  for (const std::size_t service : std::views::reverse(chain.services)) {
    const std::size_t index = index_of(file.services[service].kind->name);
    if (const auto& delivery = services_[index].service->stages().delivery) {
      next[place] = delivery;
      place = index + 1;
    }
  }
  return next;
}

std::size_t Chains::index_of(std::string_view service) const {
  return static_cast<std::size_t>(std::ranges::find(services_, service, &NamedService::name) - services_.begin());
}

ChainPlan::Next Chains::next_of(const NodeFile& file, const NodeFile::ChainEntry& chain) const {
  ChainPlan::Next next(services_.size() + 1);
  std::size_t place = 0;
  for (const std::size_t service : chain.services) {
    const std::size_t index = index_of(file.services[service].kind->name);
    next[place] = services_[index].service->stages().entry;
    place = index + 1;
  }
  return next;
}

void Chains::assign(const NodeFile& file, std::span<const ServicePort> ports, Update& update) {
  next_ = {.plan = {}, .ports = {}, .last = now_.last};
  std::vector<ChainId> ids;
  for (const NodeFile::ChainEntry& chain : file.chains) {
    ChainPlan::Next next = next_of(file, chain);
    // One that passes the same services is the same, whatever its name.
    const auto same = [&](const auto& known) { return known.second == next; };
    auto known = std::ranges::find_if(next_.plan.chains, same);
    if (known == next_.plan.chains.end()) {
      const auto before = std::ranges::find_if(now_.plan.chains, same);
      const ChainId id = before != now_.plan.chains.end() ? before->first : ++next_.last;
      known = next_.plan.chains.emplace(id, std::move(next)).first;
      if (ChainPlan::Next delivery = delivery_of(file, chain); delivery[0]) {
        next_.plan.deliveries.emplace(id, std::move(delivery));
      }
    }
    ids.push_back(known->first);
  }
  if (next_.plan.chains.size() == 1) {
    next_.plan.only = next_.plan.chains.begin()->first;
  }
  for (const ServicePort& port : ports) {
    next_.ports[port.id] = ids[file.chain_of(port.options)];
  }
  if (next_.plan != now_.plan) {
    // In between, both old and new chains are there: no port is without one.
    ChainPlan both = next_.plan;
    both.chains.insert(now_.plan.chains.begin(), now_.plan.chains.end());
    both.deliveries.insert(now_.plan.deliveries.begin(), now_.plan.deliveries.end());
    both.only.reset();
    update.set(plan_, std::move(both));
  }
  for (const auto& [port, chain] : next_.ports) {
    const auto before = now_.ports.find(port);
    if (before == now_.ports.end() || before->second != chain) {
      update.set(*ports_[port.number], chain);
    }
  }
  for (const ServicePort& port : ports) {
    const bool delivers = port.options.role == PortRole::host && next_.plan.deliveries.contains(next_.ports[port.id]);
    if (port.id.valid()) {  // else it is only looked at what would change
      update.set_delivery(port.id, delivers ? delivery_ : Deliveries::nowhere);
    }
  }
  if (next_.plan != now_.plan) {
    update.set(plan_, next_.plan);
  }
}

}  // namespace weir
