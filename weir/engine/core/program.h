#pragma once
// A rule's actions as the core engine runs them: a short list of operations next to the rule, with what can be worked
// out beforehand worked out.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <weir/flow/rule.h>

namespace weir {

enum class Op : std::uint8_t {
  set_macs,  ///< bytes[0..11]: both Ethernet addresses
  set_eth_dst,
  set_eth_src,
  set_vlan,  ///< number: slot; bytes[0..1] value, [2..3] mask
  set_src,   ///< bytes: address
  set_dst,
  set_src_port,
  set_dst_port,
  set_tos,  ///< bytes[0] value, [1] mask
  set_ttl,
  decrement_ttl,
  push_vlan,
  pop_vlan,
  encapsulate,  ///< operand: Tunnel
  decapsulate,  ///< number: what its VNI shall be and bit 24, or 0
  set_icmp_id,
  translate_quoted,  ///< operand: QuotedTranslation
  track,             ///< operand: Track
  count,             ///< operand: Counter*
  meter,             ///< operand: Meter*
  mirror,
  // final
  output,
  flood,   ///< slot: 1 where delivery sides are passed over, since the packet was encapsulated
  select,  ///< operand: Group*; slot as of flood
  reject,  ///< operand: ReasonId
  drop,    ///< number: ReasonId
  enter,
  to_host,
  resolve,  ///< number: port; operand: IpAddress
};

/// One step. What it needs beyond follows it, padded to 8 bytes.
struct Operation {
  Op op;
  std::uint8_t words;  ///< 8-byte words to the next operation
  std::uint8_t slot;
  std::uint8_t reserved;
  std::uint32_t number;

  template <class T>
  [[nodiscard]] const T& operand() const {
    return *reinterpret_cast<const T*>(this + 1);
  }
  [[nodiscard]] const std::uint8_t* bytes() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }
  [[nodiscard]] const Operation* next() const { return this + words; }
};
static_assert(sizeof(Operation) == 8);

/// Operand of encapsulate: outer headers, ready but for the fields that depend on the packet.
struct Tunnel {
  std::uint16_t checksum_base;  ///< sum of the IPv4 header's fixed words
  std::uint8_t bytes;           ///< of header: 50 for IPv4, 70 for IPv6
  bool v6;
  std::array<std::uint8_t, 70> header;

  static Tunnel make(const Vxlan& vxlan);
};

/// The operations of one rule, in the rule itself if they fit: what a hit reads is then next to what it has read.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Replaces the program by `rule`'s actions.
  void compile(const Rule& rule);

  [[nodiscard]] const Operation* begin() const {
    return reinterpret_cast<const Operation*>(more_ == nullptr ? inline_.data() : more_.get());
  }

  /// Whether running it needs the packet parsed.
  [[nodiscard]] bool reads_packet() const { return reads_packet_; }

 private:
  std::unique_ptr<std::uint64_t[]> more_;
  std::array<std::uint64_t, 13> inline_;
  bool reads_packet_ = false;
};
static_assert(sizeof(Program) == 120);

}  // namespace weir
