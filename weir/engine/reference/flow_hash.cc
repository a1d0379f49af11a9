#include <weir/engine/reference/flow_hash.h>

namespace weir::reference {

namespace {

constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;

// The product's two halves, exclusive-ored; long multiplication in digits of 32 bits.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a1 = a >> 32U;
  const std::uint64_t a0 = a & 0xffffffffU;
  const std::uint64_t b1 = b >> 32U;
  const std::uint64_t b0 = b & 0xffffffffU;
  const std::uint64_t low = a0 * b0;
  const std::uint64_t middle = a1 * b0 + (low >> 32U);
  const std::uint64_t middle_2 = a0 * b1 + (middle & 0xffffffffU);
  const std::uint64_t high = a1 * b1 + (middle >> 32U) + (middle_2 >> 32U);
  return high ^ (middle_2 << 32U | (low & 0xffffffffU));
}

// `count` bytes as a big-endian number that is followed by `zeros` zero bytes.
std::uint64_t number(const Frame& frame, std::size_t at, unsigned count, unsigned zeros = 0) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < count; ++i) {
    value = value << 8U | frame.bytes[at + i];
  }
  return value << 8U * zeros;
}

struct End {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::uint64_t port = 0;
};

std::uint64_t mix(const End& end, std::uint64_t seed) { return mix(end.high ^ seed, end.low ^ end.port ^ odd); }

}  // namespace

std::uint64_t flow_hash(const Frame& frame, const Headers& headers, std::uint64_t seed) {
  End src;
  End dst;
  std::uint64_t protocol = 0;
  const Layout layout = headers.layout;
  const std::size_t l3 = headers.l3;
  if (layout.l3() == L3::ipv4) {
    src.high = number(frame, l3 + 12, 4, 4);
    dst.high = number(frame, l3 + 16, 4, 4);
  } else if (layout.l3() == L3::ipv6) {
    src = {number(frame, l3 + 8, 8), number(frame, l3 + 16, 8)};
    dst = {number(frame, l3 + 24, 8), number(frame, l3 + 32, 8)};
  } else if (layout.ethernet()) {
    dst.high = number(frame, 0, 6);
    src.high = number(frame, 6, 6);
  }
  if (layout.ip() && !layout.fragment()) {
    protocol = headers.protocol;
  }
  if (layout.ports() && !layout.fragment()) {
    src.port = number(frame, headers.l4, 2);
    dst.port = number(frame, headers.l4 + 2, 2);
  } else if ((layout.l4() == L4::icmp || layout.l4() == L4::icmpv6) && !layout.fragment()) {
    src.port = dst.port = number(frame, headers.l4 + 4, 2);
  }
  return mix((mix(src, seed) + mix(dst, seed)) ^ seed, odd + 2 * protocol);
}

}  // namespace weir::reference
