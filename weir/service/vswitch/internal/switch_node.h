#pragma once
// A node with a switch, for tests: frames in, frames out.

#include <map>

#include <gtest/gtest.h>

#include <weir/device/memory.h>
#include <weir/packet/packet_builder.h>
#include <weir/service/vswitch/switch_tables.h>
#include <weir/service/vswitch/vswitch.h>

namespace weir::vswitch_testing {

using Bytes = std::vector<std::uint8_t>;
using Leaves = std::vector<std::string>;

inline constexpr const char* alice = "02:00:00:00:00:0a";
inline constexpr const char* bob = "02:00:00:00:00:0b";
inline constexpr const char* carol = "02:00:00:00:00:0c";
inline constexpr const char* everybody = "ff:ff:ff:ff:ff:ff";
inline constexpr const char* uplink_mac = "02:00:00:00:aa:01";
inline constexpr const char* gateway_mac = "02:00:5e:00:00:01";
inline constexpr const char* vtep_mac = "02:00:00:00:bb:02";

inline PacketBuilder frame(const char* from, const char* to, unsigned bytes = 40) {
  return PacketBuilder().eth(from, to).ipv4("10.0.0.1", "10.0.0.2").udp(1000, 2000).payload(bytes);
}

/// Ports a, b, c and t are hosts', up is an uplink with 192.0.2.1/24 and 2001:db8::1/64, and there may be gateways.
class SwitchNode : public testing::TestWithParam<EngineKind> {
 protected:
  struct Gateway {
    const char* name;
    std::vector<const char*> addresses;
    const char* mac = gateway_mac;
  };

  void build(const std::string& settings, const std::vector<Gateway>& gateways = {}) {
    node_ = std::move(*Node::create({.engine = GetParam(), .decision_share = {100}, .frames = 16384}));
    for (const char* name : {"a", "b", "c", "t"}) {
      add(name, {});
    }
    PortOptions options{.role = PortRole::uplink, .mac = *MacAddress::parse(uplink_mac)};
    options.addresses.push_back(*IpPrefix::parse_interface("192.0.2.1/24"));
    options.addresses.push_back(*IpPrefix::parse_interface("2001:db8::1/64"));
    add("up", options);
    for (const Gateway& gateway : gateways) {
      PortOptions own{.role = PortRole::gateway, .mac = *MacAddress::parse(gateway.mac)};
      for (const char* address : gateway.addresses) {
        own.addresses.push_back(*IpPrefix::parse_interface(address));
      }
      ASSERT_TRUE(node_->add_port(gateway.name, "gateway", own));
    }
    settings_ = *Config::parse(settings, "n.yaml");
    auto built = build_service(*node_, kind_, settings_, folder_);
    ASSERT_TRUE(built) << built.error().message;
    service_ = std::move(*built);
    node_->graph().connect_ports(service_->stages().entry);
    ASSERT_TRUE(node_->prepare());
    known({"192.0.2.2", "192.0.2.3", "192.0.2.254", "2001:db8::2"});
  }

  /// They answered.
  void known(std::initializer_list<const char*> addresses) {
    (void)node_->update([&](Update& update) {
      for (const char* address : addresses) {
        update.set(node_->state().neighbours().table(), {PortId{4}, *IpAddress::parse(address)},
                   *MacAddress::parse(vtep_mac));
      }
    });
    service_->tend();
  }

  Result<UpdateReport> configure(const std::string& settings) {
    settings_ = *Config::parse(settings, "n.yaml");
    const std::vector<ServicePort> ports = service_ports(*node_);
    const ServiceContext context(*node_, kind_, settings_, folder_, ports, {});
    Result<> configured;
    auto updated = node_->update([&](Update& update) { configured = service_->configure(context, update); });
    return configured ? updated : std::unexpected(configured.error());
  }

  void add(const char* name, const PortOptions& options) {
    auto device = std::move(*MemoryDevice::make(*DeviceSpec::parse("memory:record=10000")));
    devices_.push_back(static_cast<MemoryDevice*>(device.get()));
    names_.emplace_back(name);
    seen_.push_back(0);
    ASSERT_TRUE(node_->add_port(name, std::move(device), options));
  }

  /// Where a frame leaves that comes in by the port, or why it is dropped; what left is in `out_`.
  Leaves send(const std::string& port, const PacketBuilder& packet) { return send(port, packet.bytes()); }
  Leaves send(const std::string& port, const Bytes& bytes) {
    const auto drops = drop_counts();
    devices_[index_of(port)]->inject(bytes);
    for (int round = 0; round < 6; ++round) {
      node_->poll_once();
    }
    Leaves leaves;
    out_.clear();
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const std::vector<Bytes> all = devices_[i]->recorded();
      for (; seen_[i] < all.size(); ++seen_[i]) {
        leaves.push_back(names_[i]);
        out_.push_back(all[seen_[i]]);
      }
    }
    for (const auto& [reason, count] : drop_counts()) {
      const auto before = drops.find(reason);
      if (before == drops.end() || before->second != count) {
        leaves.push_back("dropped: " + reason);
      }
    }
    return leaves;
  }

  /// What a VTEP sends.
  PacketBuilder tunnelled(std::uint32_t vni, const PacketBuilder& inner, const char* from = "192.0.2.2") {
    PacketBuilder outer;
    outer.eth(vtep_mac, uplink_mac);
    std::string_view(from).find(':') == std::string_view::npos ? outer.ipv4(from, "192.0.2.1")
                                                               : outer.ipv6(from, "2001:db8::1");
    return outer.vxlan(vni, inner);
  }

  std::map<std::string, std::uint64_t> drop_counts() const {
    std::map<std::string, std::uint64_t> counts;
    for (const auto& line : node_->summary().drops) {
      counts[line.reason] = line.packets;
    }
    return counts;
  }
  std::size_t index_of(const std::string& port) const {
    return static_cast<std::size_t>(std::ranges::find(names_, port) - names_.begin());
  }
  std::uint64_t rules() const { return node_->summary().rules; }

  ServiceKind kind_ = vswitch();
  Config settings_;
  std::filesystem::path folder_ = ".";
  std::unique_ptr<Node> node_;
  std::unique_ptr<Service> service_;
  std::vector<MemoryDevice*> devices_;
  std::vector<std::string> names_;
  std::vector<std::size_t> seen_;
  std::vector<Bytes> out_;
};

}  // namespace weir::vswitch_testing
