#pragma once
// Frames of numbered flows, every byte written anew for every frame.

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include <weir/base/error.h>
#include <weir/base/random.h>
#include <weir/base/simd/simd.h>
#include <weir/device/internal/flow_order.h>
#include <weir/packet/address.h>
#include <weir/packet/frame_pool.h>

namespace weir::device_internal {

struct GeneratorConfig {
  std::uint32_t flows = 1;
  Order order = Order::random;
  double skew = 1;
  bool random_headers = false;
  std::uint32_t size = 0;  ///< bytes of a frame; 0: 64, or what the headers take if that is more
  bool imix = false;
  bool tcp = false;
  bool v6 = false;
  std::optional<std::uint16_t> vlan;
  MacAddress src_mac{{2, 0, 0, 0, 0, 1}};
  MacAddress dst_mac{{2, 0, 0, 0, 0, 2}};
  std::optional<IpAddress> src;  ///< of flow 0
  std::optional<IpAddress> dst;
  std::uint16_t src_port = 1024;
  std::uint16_t dst_port = 80;
  bool vary_src = true;
  bool vary_dst = true;
  bool vary_ports = true;
  bool vary_macs = false;
};

/// One frame of flow 0, and the sums of its headers without what depends on the flow: 16-bit words in this machine's
/// order, which RFC 1071, section 2(B), allows as long as they are stored in the same order. Folded to 16 bits.
struct FrameTemplate {
  std::vector<std::uint8_t> bytes;  ///< filled up to whole simd::blocks
  std::uint32_t size = 0;
  std::uint64_t ip_sum = 0;
  std::uint64_t l4_sum = 0;
};

/// What flow `first + step * i` sends, for i below `share`. One thread at a time.
class Generator {
 public:
  static constexpr std::uint32_t max_size = 9000;

  /// Errors name the option at fault.
  static Result<> check(const GeneratorConfig& config);

  /// `config` has passed `check`; share >= 1.
  Generator(const GeneratorConfig& config, std::uint32_t first, std::uint32_t step, std::uint32_t share,
            std::uint64_t seed);

  /// Fills `out` as far as there are frames; returns how many.
  std::size_t generate(std::span<Packet*> out, PacketCache& frames, std::uint64_t timestamp);

 private:
  // Offsets, and values of flow 0 in host order.
  struct Fields {
    std::uint32_t l3_at = 0;
    std::uint32_t l4_checksum_at = 0;
    std::uint32_t src = 0;
    std::uint32_t dst = 0;
    std::uint16_t src_port = 0;
    std::uint16_t dst_port = 0;
    std::uint32_t vary_src = 0;  // all ones or zero
    std::uint32_t vary_dst = 0;
    std::uint32_t vary_ports = 0;
    bool vary_macs = false;
    std::uint32_t src_mac = 0;  // last four bytes
    bool udp = false;
  };

  template <bool V4, bool L4Checksum>
  std::size_t write_batch(std::span<Packet*> out, std::span<const std::uint32_t> flows, PacketCache& frames,
                          std::uint64_t timestamp);
  template <bool V4, bool L4Checksum>
  std::size_t write_small(std::span<Packet*> out, std::span<const std::uint32_t> flows, PacketCache& frames,
                          std::uint64_t timestamp);
  template <bool V4, bool L4Checksum>
  static void patch(std::uint8_t* at, const Fields& fields, const FrameTemplate& frame, std::uint32_t flow);
  std::size_t write_random(std::span<Packet*> out, PacketCache& frames, std::uint64_t timestamp);
  simd::Line small_;  // the only template, if it is small; first, as it is aligned
  GeneratorConfig config_;
  FlowOrder order_;
  Fields fields_;
  std::vector<FrameTemplate> templates_;
  std::uint32_t position_ = 0;    // in the IMIX pattern
  std::uint32_t small_size_ = 0;  // of the frames of small_; 0: there is none
  Random random_;
};

/// Writes `frame` (64 bytes or more) with random headers of a random layout: Ethernet with random addresses, now and
/// then one or two tags; ARP, IPv4 (now and then with options or a fragment) or IPv6; TCP, UDP, SCTP, ICMP or another
/// protocol. Each can be parsed to its end, lengths and the IPv4 checksum are right; L4 checksums are not.
void write_random_frame(std::span<std::uint8_t> frame, Random& random);

}  // namespace weir::device_internal
