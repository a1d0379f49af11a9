// The virtual switch and what stands around it, on one worker: frames of local ports into VXLAN, tunnel packets out of
// it, and the chain firewall, switch, VXLAN.
//
//   overlay_bench [encapsulate|decapsulate|chain]      all without

#include <cstring>
#include <filesystem>
#include <fstream>

#include "calibration.h"
#include "measure.h"
#include <fmt/format.h>
#include <unistd.h>

#include <weir/packet/packet_builder.h>
#include <weir/service/firewall/firewall.h>
#include <weir/service/vswitch/vswitch.h>

namespace weir::bench {
namespace {

enum class Workload : std::uint8_t { encapsulate, decapsulate, chain };

constexpr std::string_view networks = R"(
networks:
  100:
    ports: [pod]
    vteps: [198.51.100.7]
    macs: {"02:00:00:00:00:02": 198.51.100.7, "02:00:00:00:00:01": pod}
next_hops: [{port: up, mac: "02:00:00:00:00:fe"}]
)";

constexpr std::string_view policy = R"(
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: pod}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  egress:
  - to: [{ipBlock: {cidr: 10.0.0.0/8}}]
    ports: [{protocol: UDP, port: 1, endPort: 65535}]
)";

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(1);
  }
  return std::move(*result);
}

/// Tunnel packets of `flows` inner flows at random, each with a 64-byte frame inside.
class TunnelSource final : public Device {
 public:
  explicit TunnelSource(unsigned flows) {
    for (unsigned i = 0; i < flows; ++i) {
      const std::string src = fmt::format("10.0.{}.{}", i >> 8U & 0xffU, i & 0xffU);
      const std::string dst = fmt::format("10.1.{}.{}", i >> 8U & 0xffU, i & 0xffU);
      PacketBuilder inner;
      inner.eth("02:00:00:00:00:02", "02:00:00:00:00:01").ipv4(src, dst);
      inner.udp(static_cast<std::uint16_t>(1024 + i), static_cast<std::uint16_t>(80 + (i >> 16U))).payload(64 - 42);
      PacketBuilder outer;
      outer.eth("02:00:00:00:00:fe", up_mac).ipv4("198.51.100.7", "192.0.2.1");
      outer.udp(static_cast<std::uint16_t>(49'152 + i % 16'384), 4789).vxlan(100, inner);
      const auto bytes = outer.bytes();
      frames_.insert(frames_.end(), bytes.begin(), bytes.end());
      frames_.resize((frames_.size() + stride - 1) / stride * stride);
      length_ = static_cast<std::uint16_t>(bytes.size());
    }
    flows_ = flows;
  }
  static constexpr const char* up_mac = "02:00:00:00:07:01";

  Result<> open(const DeviceContext& /*context*/) override { return {}; }
  [[nodiscard]] std::optional<MacAddress> mac() const override { return *MacAddress::parse(up_mac); }
  [[nodiscard]] DeviceTraits traits() const override { return {.waits = true}; }
  std::size_t receive(unsigned /*queue*/, std::span<Packet*> out, PacketCache& frames) override {
    std::size_t count = 0;
    for (; count < out.size(); ++count) {
      Packet* packet = frames.allocate();
      if (packet == nullptr) {
        break;
      }
      random_ = random_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
      std::memcpy(packet->data, &frames_[((random_ >> 33U) * flows_ >> 31U) * stride], stride);
      packet->segment = length_;
      packet->length = length_;
      out[count] = packet;
    }
    return count;
  }
  std::size_t transmit(unsigned /*queue*/, std::span<Packet*> packets, PacketCache& frames) override {
    for (Packet* packet : packets) {
      frames.free(packet);
    }
    return packets.size();
  }

 private:
  static constexpr std::size_t stride = 128;
  std::vector<std::uint8_t> frames_;
  std::uint64_t random_ = 1;
  unsigned flows_ = 0;
  std::uint16_t length_ = 0;
};

struct Setup {
  std::vector<std::unique_ptr<Service>> services;  ///< live longer than the node, whose workers run their stages
  std::unique_ptr<Node> node;
  PortId out;
};

Setup build(Workload workload, unsigned flows) {
  NodeOptions options;
  options.idle = Idle::poll;
  options.decision_share = {100};
  options.rule_cache = 2 * flows + 65'536;
  Setup setup{{}, must(Node::create(options)), {}};
  Node& node = *setup.node;
  const bool out_of_tunnel = workload == Workload::decapsulate;
  PortOptions uplink;
  uplink.role = PortRole::uplink;
  uplink.addresses.push_back(*IpPrefix::parse_interface("192.0.2.1/24"));
  const PortId pod = must(node.add_port("pod", out_of_tunnel ? "memory:" : fmt::format("memory:flows={}", flows)));
  const PortId up = out_of_tunnel ? must(node.add_port("up", std::make_unique<TunnelSource>(flows), uplink))
                                  : must(node.add_port("up", "memory:", uplink));
  setup.out = out_of_tunnel ? pod : up;
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  const auto switch_settings = must(Config::parse(networks, "networks"));
  setup.services.push_back(must(build_service(node, vswitch(), switch_settings, folder)));
  const StageRef entry = setup.services.back()->stages().entry;
  node.graph().connect(up, entry);
  if (workload != Workload::chain) {
    node.graph().connect(pod, entry);
  } else {
    const std::string file = fmt::format("weir-bench-{}.yaml", ::getpid());
    std::ofstream(folder / file) << policy;
    const auto settings = must(Config::parse(fmt::format("policies: [{}]", file), "settings"));
    setup.services.push_back(must(build_service(node, firewall(), settings, folder)));
    std::filesystem::remove(folder / file);
    const ServiceStages& stages = setup.services.back()->stages();
    node.graph().connect(pod, stages.entry);
    node.graph().connect(*stages.exit, entry);
  }
  if (const auto started = node.start(); !started) {
    fmt::print(stderr, "{}\n", started.error().message);
    std::exit(1);
  }
  return setup;
}

void table(const char* only) {
  static constexpr std::pair<Workload, const char*> lines[] = {
      {Workload::encapsulate, "encapsulate"}, {Workload::decapsulate, "decapsulate"}, {Workload::chain, "chain"}};
  fmt::print("64-byte frames, one worker; a bare loop that encapsulates at the foot\n\n");
  fmt::print("{:12} {:>7} {:>6} {:>8} {:>5} {:>7} {:>9} {:>7} {:>9}\n", "workload", "flows", "Mpps", "ns/pkt", "cpu",
             "hits", "misses", "rules", "drops");
  for (const unsigned flows : {1024U, 100'000U}) {
    for (const auto& [workload, name] : lines) {
      if (only != nullptr && std::strcmp(only, name) != 0) {
        continue;
      }
      Setup setup = build(workload, flows);
      const Rate rate = measure(*setup.node, setup.out, 500 + flows / 100);
      std::uint64_t drops = 0;
      for (const auto& drop : setup.node->summary().drops) {
        drops += drop.packets;
      }
      fmt::print("{:12} {:>7} {:>6.1f} {:>8.1f} {:>5.2f} {:>7.4f} {:>9.6f} {:>7} {:>9}\n", name, flows, rate.mpps,
                 rate.ns, rate.cpu_share, rate.hits, rate.misses, rate.rules, drops);
      std::fflush(stdout);
    }
    const Calibration floor = calibrate(flows);
    fmt::print("{:12} {:>7} {:>6} {:>8.1f}\n", "bare loop", flows, "", floor.encapsulate_ns);
  }
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  fmt::print("noise: {:.3f} ns a step\n\n", weir::bench::noise_ns());
  weir::bench::table(argc > 1 ? argv[1] : nullptr);
  fmt::print("\nnoise: {:.3f} ns a step\n", weir::bench::noise_ns());
}
