// A learning switch: frames go where their destination was last seen, per VLAN; what is unknown is flooded.

#include <examples/services.h>

namespace weir::examples {

struct MacKey {
  Maybe<std::uint16_t> vlan;
  MacAddress mac;
  bool operator==(const MacKey&) const = default;
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const { return mac.hash(vlan.hash(seed)); }
  [[nodiscard]] std::string to_string() const {
    return vlan ? fmt::format("{} in VLAN {}", mac.to_string(), *vlan) : mac.to_string();
  }
};

constexpr DropReason no_ethernet{"no_ethernet", "too short for an Ethernet header"};
constexpr DropReason same_port{"same_port", "its destination is on the port that it came from"};

class L2Switch final : public FlowStage {
 public:
  explicit L2Switch(Table<MacKey, PortId>& macs) : macs_(macs) {}

  Verdict decide(Flow& flow) const override {
    if (!flow.has(layers::ethernet)) {
      return flow.drop(no_ethernet);
    }
    const auto vlan = flow[vlan::id];
    if (const auto src = flow[eth::src]; !src->multicast()) {
      flow.learn(macs_, {vlan, *src}, flow.ingress());
    }
    if (const PortId* port = flow.lookup(macs_, {vlan, *flow[eth::dst]})) {
      return *port == flow.ingress() ? flow.drop(same_port) : flow.output(*port);
    }
    return flow.flood(vlan);
  }

 private:
  Table<MacKey, PortId>& macs_;
};

static Result<std::unique_ptr<Service>> build(ServiceContext& context) {
  const TableOptions options{.capacity = static_cast<std::uint32_t>(context.number("macs")),
                             .idle = static_cast<Nanoseconds>(context.number("aging")) * 1'000'000'000};
  auto& macs = context.state().table<MacKey, PortId>("macs", options);
  return std::make_unique<Service>(ServiceStages{context.node.graph().add<L2Switch>(context.name(), macs), {}});
}

ServiceKind l2_switch() {
  return {"l2_switch",
          "a learning switch: sends frames where their destination was seen, floods the rest",
          {number_setting("aging", "seconds until an unused address is forgotten; 0: never", 300, 0, 1'000'000),
           number_setting("macs", "addresses that it remembers", 8192, 16, 1 << 20)},
          build};
}

}  // namespace weir::examples
