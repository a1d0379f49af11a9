#pragma once
// A rule's actions as the core engine runs them: a short list of fixed-size operations next to the rule, with what can
// be worked out beforehand worked out.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <weir/flow/rule.h>

namespace weir {

enum class Op : std::uint8_t {
  set_macs,      ///< bytes[0..11]: both Ethernet addresses
  set_eth_dst,
  set_eth_src,
  set_vlan,      ///< number: slot; bytes[0..1] value, [2..3] mask
  set_src,       ///< bytes: address
  set_dst,
  set_src_port,
  set_dst_port,
  set_tos,       ///< bytes[0] value, [1] mask
  set_ttl,
  decrement_ttl,
  push_vlan,
  pop_vlan,
  encapsulate,   ///< object: Tunnel
  decapsulate,
  count,
  meter,
  mirror,
  // final
  output,
  flood,
  select,        ///< object: Group
  reject,
  drop,
  enter,
};

/// Outer headers, ready but for the fields that depend on the packet.
struct Tunnel {
  std::array<std::uint8_t, 14 + 40 + 8 + 8> header{};
  std::uint8_t bytes = 0;         ///< of header: 50 for IPv4, 70 for IPv6
  bool v6 = false;
  std::uint16_t checksum_base = 0;  ///< sum of the IPv4 header's fixed words

  explicit Tunnel(const Vxlan& vxlan);
};

struct Operation {
  Op op;
  std::uint8_t slot = 0;
  ReasonId reason = 0;
  std::uint32_t number = 0;
  union {
    std::array<std::uint8_t, 16> bytes;
    void* object;
  };
};
static_assert(sizeof(Operation) == 24);

/// The operations of one rule. Four or fewer lie in the rule itself.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Replaces the program by `rule`'s actions.
  void compile(const Rule& rule);

  [[nodiscard]] const Operation* begin() const { return size_ <= inline_size ? inline_.data() : more_->operations.data(); }

  /// Whether running it needs the packet parsed.
  [[nodiscard]] bool reads_packet() const { return reads_packet_; }

 private:
  static constexpr std::size_t inline_size = 4;
  struct More {
    std::vector<Operation> operations;
    std::vector<Tunnel> tunnels;
  };

  std::array<Operation, inline_size> inline_;
  std::unique_ptr<More> more_;
  std::uint8_t size_ = 0;
  bool reads_packet_ = false;
};

}  // namespace weir
