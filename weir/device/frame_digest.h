#pragma once
// A hash of every byte of a frame, to compare what two runs or two engines sent.

#include <bit>
#include <cstdint>
#include <span>

#include <weir/base/hash.h>
#include <weir/packet/packet.h>

namespace weir {

/// The frame's bytes and length in 64 bits. How a frame is cut into segments makes no difference. Digests of many
/// frames are added (modulo 2^64), so that the order of frames makes none either. Not for secrets: who knows the
/// function can make two frames of the same digest.
std::uint64_t frame_digest(const Packet& packet);
std::uint64_t frame_digest(std::span<const std::uint8_t> frame);

}  // namespace weir
