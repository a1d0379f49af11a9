#pragma once
// The flow hash: which worker, which member of a group, which outer source port.

#include <weir/base/hash.h>
#include <weir/packet/key.h>

namespace weir {

/// Seeded, and symmetric: both directions of a conversation have the same. Addresses, and unless the packet is a
/// fragment, protocol and ports (or the identifier of an ICMP echo): all fragments of a packet have the same. (The
/// first of an IPv6 packet may show another protocol than those behind it, where extension headers were fragmented.)
/// Without IP: the Ethernet addresses. Plain 64-bit arithmetic, so that every engine can compute it.
inline std::uint64_t flow_hash(const Key& key, std::uint64_t seed) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
  const Layout layout{key.layout};
  std::uint64_t src_port = 0;
  std::uint64_t dst_port = 0;
  std::uint64_t protocol = 0;
  if (!layout.fragment()) {
    protocol = key.protocol;
    if (layout.ports()) {
      src_port = load_big<std::uint16_t>(key.src_port.data());
      dst_port = load_big<std::uint16_t>(key.dst_port.data());
    } else if (layout.l4() == L4::icmp || layout.l4() == L4::icmpv6) {
      src_port = dst_port = load_big<std::uint16_t>(key.dst_port.data());
    }
  }
  const auto end = [&](std::uint64_t high, std::uint64_t low, std::uint64_t port) {
    return multiply_fold(high ^ seed, low ^ port ^ odd);
  };
  std::uint64_t sum = 0;
  if (layout.ip()) {
    sum = end(load_big<std::uint64_t>(key.src.data()), load_big<std::uint64_t>(key.src.data() + 8), src_port) +
          end(load_big<std::uint64_t>(key.dst.data()), load_big<std::uint64_t>(key.dst.data() + 8), dst_port);
  } else {
    const auto mac = [](const std::array<std::uint8_t, 6>& bytes) {
      return std::uint64_t{load_big<std::uint32_t>(bytes.data())} << 16U | load_big<std::uint16_t>(bytes.data() + 4);
    };
    sum = end(mac(key.eth_src), 0, 0) + end(mac(key.eth_dst), 0, 0);
  }
  return multiply_fold(sum ^ seed, odd + 2 * protocol);
}

}  // namespace weir
