// A router: longest prefix, next hops by flow hash, TTL and MTU, ICMP errors about what it cannot forward.

#include <examples/services.h>

#include <weir/service/read_match.h>

namespace weir::examples {

constexpr DropReason not_ip{"not_ip", "a router forwards IP only"};

static Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  auto& table = context.state().prefixes<NextHops>("routes");
  const FlowStage& stage = context.node.graph().stage(context.name(), [&table](Flow& flow) {
    if (!flow.has(layers::ip)) {
      return flow.drop(not_ip);
    }
    const NextHops* hops = flow.lookup(table, ip::dst);  // consults only the bits it walked
    if (hops == nullptr) {
      return flow.reject(no_route);
    }
    if (!flow.decrement_ttl()) {
      return flow.reject(time_exceeded);
    }
    return flow.fits(hops->mtu) ? flow.select(*hops) : flow.reject(too_big(hops->mtu));
  });
  std::map<std::string, Group*> groups;  // by prefix, for as long as the node lives
  return make_service({stage, {}}, [&table, groups](const ServiceContext& now, Update& update) mutable {
    Errors errors;
    std::vector<std::pair<IpPrefix, NextHops>> routes;
    for (const auto& [key, prefix, hops] : now.map("routes")) {
      Group*& group = groups[prefix];
      group = group != nullptr ? group : &now.state().group(prefix);
      update.set_members(*group, errors.take(now.members(hops)));
      routes.emplace_back(errors.take(read_prefix(key)),
                          NextHops{group->id(), static_cast<std::uint16_t>(now.number("mtu"))});
    }
    update.assign(table, std::move(routes));
    return errors.result();
  });
}

ServiceKind l3_router() {
  const std::string routes = "prefix: [{port, mac, from}, ...]; mac is the next hop's, from the router's own";
  return {"l3_router",
          "forwards IP by the longest prefix, over several next hops by flow",
          {live(required_setting("routes", SettingType::map, routes)),
           live(number_setting("mtu", "bytes of the longest IP packet", 1500, 68, 65'535))},
          build};
}

}  // namespace weir::examples
