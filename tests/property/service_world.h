#pragma once
// Nodes with the services as they ship, which random traffic and random changes must find alike.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <weir/base/random.h>
#include <weir/control/managed_node.h>

namespace weir::property {

using Bytes = std::vector<std::uint8_t>;

/// What a node file may say differently from time to time.
struct Settings {
  bool second_vtep = true;
  bool suppress = true;
  bool flood_unknown = true;
  bool second_gateway = true;
  bool bindings = false;  ///< and fixed Ethernet addresses
  bool few_macs = false;
  bool nat = true;  ///< in the chain of the first network
  bool firewall = true;
  bool check_sources = true;
  bool masquerade = true;
  bool labels = true;            ///< of one of the endpoints
  std::uint8_t fourth_port = 0;  ///< in the first network, the second, or a trunk of both

  static Settings random(Random& random);
  /// The node file, of ports p1 to p5 (hosts 10.0.0.1 to 10.0.0.3 and 10.0.1.1, 10.0.1.2, and the same of 2001:db8::/64
  /// and 2001:db8:1::/64) and the uplink `up`, and its endpoints.
  [[nodiscard]] std::string node_file() const;
  [[nodiscard]] std::string endpoints() const;
};

inline constexpr std::array<const char*, 6> port_names{"p1", "p2", "p3", "p4", "p5", "up"};
inline constexpr const char* gateway_mac = "02:00:5e:00:00:01";
inline constexpr const char* uplink_mac = "02:00:00:00:aa:01";
inline constexpr const char* their_router = "02:00:00:00:cc:02";

/// A number of policies that may be there or not.
inline constexpr unsigned policies = 8;

/// One thing that happens.
struct Event {
  enum class Kind : std::uint8_t { packet, settings, apply_policy, delete_policy, link, tend };
  Kind kind;
  Nanoseconds at = 0;
  std::uint16_t number = 0;  ///< port or policy
  bool up = false;
  Bytes bytes{};
  Settings settings{};

  [[nodiscard]] std::string to_string() const;
};

/// What can be seen of a node.
struct Seen {
  std::map<std::string, std::vector<Bytes>> sent;  ///< by port, since the last look
  std::map<std::string, std::uint64_t> drops;
  std::map<std::string, std::uint64_t> numbers;  ///< counters, sizes of tables, connections

  bool operator==(const Seen&) const = default;
};
std::string difference(const Seen& a, const Seen& b);

enum class NodeKind : std::uint8_t { cached, uncached, reference };

class ServiceNode {
 public:
  ServiceNode(NodeKind kind, const Settings& settings, const std::filesystem::path& folder);

  /// Nothing, or what went wrong.
  [[nodiscard]] std::string happen(const Event& event);
  [[nodiscard]] Seen look();
  [[nodiscard]] Summary summary() const { return managed_->node().summary(); }

 private:
  void run();
  std::string call(const std::string& name, const Json& arguments);

  std::filesystem::path folder_;
  std::unique_ptr<ManagedNode> managed_;
  std::map<std::string, std::size_t> looked_at_;
};

}  // namespace weir::property
