#include <weir/device/frame_digest.h>

#include <algorithm>

#include <weir/device/internal/digest_lanes.h>

namespace weir {

using device_internal::digest_stripe;
using device_internal::DigestLanes;

namespace {

std::uint64_t digest_chain(const Packet& packet) {
  DigestLanes lanes;
  std::array<std::uint8_t, digest_stripe> gathered{};
  std::size_t held = 0;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    std::span<const std::uint8_t> bytes = segment->bytes();
    if (held != 0) {
      const std::size_t part = std::min(digest_stripe - held, bytes.size());
      std::copy_n(bytes.begin(), part, gathered.begin() + static_cast<std::ptrdiff_t>(held));
      bytes = bytes.subspan(part);
      held += part;
      if (held < digest_stripe) {
        continue;
      }
      lanes.whole(gathered.data());
    }
    for (; bytes.size() >= digest_stripe; bytes = bytes.subspan(digest_stripe)) {
      lanes.whole(bytes.data());
    }
    std::ranges::copy(bytes, gathered.begin());
    held = bytes.size();
  }
  lanes.rest(gathered.data(), held);
  return lanes.finish(packet.length);
}

}  // namespace

std::uint64_t frame_digest(std::span<const std::uint8_t> frame) {
  return device_internal::digest_bytes(frame.data(), frame.size());
}

std::uint64_t frame_digest(const Packet& packet) {
  return packet.next == nullptr ? frame_digest(packet.bytes()) : digest_chain(packet);
}

}  // namespace weir
