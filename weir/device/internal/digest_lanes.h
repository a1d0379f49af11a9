#pragma once
// The digest of one contiguous frame, to be inlined where every nanosecond counts.

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include <weir/base/hash.h>

namespace weir::device_internal {

inline constexpr std::size_t digest_block = 16;
inline constexpr std::size_t digest_stripe = 4 * digest_block;

// The digits of pi after the point: nothing up the sleeve.
inline constexpr std::array<std::uint64_t, 8> digest_secret{
    0x243f6a8885a308d3U, 0x13198a2e03707344U, 0xa4093822299f31d0U, 0x082efa98ec4e6c89U,
    0x452821e638d01377U, 0xbe5466cf34e90c6cU, 0xc0ac29b7c97c50ddU, 0x3f84d5b5b5470917U};

// Little-endian, so that all machines agree.
inline std::uint64_t digest_load64(const std::uint8_t* from) {
  std::uint64_t value;
  std::memcpy(&value, from, 8);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

inline std::uint64_t digest_load32(const std::uint8_t* from) {
  std::uint32_t value;
  std::memcpy(&value, from, 4);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

// Four independent lanes, one per 16-byte block of a 64-byte stripe, so that their multiplications overlap.
struct DigestLanes {
  std::uint64_t a = digest_secret[0];
  std::uint64_t b = digest_secret[1];
  std::uint64_t c = digest_secret[2];
  std::uint64_t d = digest_secret[3];

  static void mix(std::uint64_t& lane, std::uint64_t key, std::uint64_t low, std::uint64_t high) {
    lane = multiply_fold(low ^ lane, high ^ key);
  }

  void whole(const std::uint8_t* at) {
    mix(a, digest_secret[4], digest_load64(at), digest_load64(at + 8));
    mix(b, digest_secret[5], digest_load64(at + 16), digest_load64(at + 24));
    mix(c, digest_secret[6], digest_load64(at + 32), digest_load64(at + 40));
    mix(d, digest_secret[7], digest_load64(at + 48), digest_load64(at + 56));
  }

  // The last `size` < 64 bytes; the last block is filled up with zeros (the length tells them from real ones).
  void rest(const std::uint8_t* at, std::size_t size) {
    if (size >= 48) {
      mix(a, digest_secret[4], digest_load64(at), digest_load64(at + 8));
      mix(b, digest_secret[5], digest_load64(at + 16), digest_load64(at + 24));
      mix(c, digest_secret[6], digest_load64(at + 32), digest_load64(at + 40));
      return last(d, digest_secret[7], at + 48, size - 48);
    }
    if (size >= 32) {
      mix(a, digest_secret[4], digest_load64(at), digest_load64(at + 8));
      mix(b, digest_secret[5], digest_load64(at + 16), digest_load64(at + 24));
      return last(c, digest_secret[6], at + 32, size - 32);
    }
    if (size >= 16) {
      mix(a, digest_secret[4], digest_load64(at), digest_load64(at + 8));
      return last(b, digest_secret[5], at + 16, size - 16);
    }
    last(a, digest_secret[4], at, size);
  }

  // Fewer than 16 bytes, without reading beyond them: by loads that overlap.
  static void last(std::uint64_t& lane, std::uint64_t key, const std::uint8_t* at, std::size_t size) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    if (size > 8) {
      low = digest_load64(at);
      high = digest_load64(at + size - 8) >> (8 * (digest_block - size));
    } else if (size == 8) {
      low = digest_load64(at);
    } else if (size >= 4) {
      low = digest_load32(at) | (digest_load32(at + size - 4) << (8 * (size - 4)));
    } else if (size > 0) {
      low = at[0] | std::uint64_t{at[size / 2]} << (8 * (size / 2)) | std::uint64_t{at[size - 1]} << (8 * (size - 1));
    } else {
      return;
    }
    mix(lane, key, low, high);
  }

  [[nodiscard]] std::uint64_t finish(std::uint64_t length) const {
    return multiply_fold((a + std::rotl(b, 32)) ^ length, (c + std::rotl(d, 32)) ^ digest_secret[0]);
  }
};

/// frame_digest of `size` contiguous bytes.
inline std::uint64_t digest_bytes(const std::uint8_t* at, std::size_t size) {
  DigestLanes lanes;
  if (size == digest_stripe) {  // the shortest frames are what benchmarks send
    lanes.whole(at);
    return lanes.finish(size);
  }
  std::size_t left = size;
  for (; left >= digest_stripe; left -= digest_stripe, at += digest_stripe) {
    lanes.whole(at);
  }
  if (left != 0) {
    lanes.rest(at, left);
  }
  return lanes.finish(size);
}

}  // namespace weir::device_internal
