#include <weir/device/frame_digest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace weir {

namespace {

constexpr std::size_t block = 16;
constexpr std::size_t stripe = 4 * block;

// The digits of pi after the point: nothing up the sleeve.
constexpr std::array<std::uint64_t, 8> secret{0x243f6a8885a308d3U, 0x13198a2e03707344U, 0xa4093822299f31d0U,
                                              0x082efa98ec4e6c89U, 0x452821e638d01377U, 0xbe5466cf34e90c6cU,
                                              0xc0ac29b7c97c50ddU, 0x3f84d5b5b5470917U};

// Little-endian, so that all machines agree.
inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t value;
  std::memcpy(&value, from, 8);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

inline std::uint64_t load32(const std::uint8_t* from) {
  std::uint32_t value;
  std::memcpy(&value, from, 4);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

// Four independent lanes, one per 16-byte block of a 64-byte stripe, so that their multiplications overlap.
struct Lanes {
  std::uint64_t a = secret[0];
  std::uint64_t b = secret[1];
  std::uint64_t c = secret[2];
  std::uint64_t d = secret[3];

  static void mix(std::uint64_t& lane, std::uint64_t key, std::uint64_t low, std::uint64_t high) {
    lane = multiply_fold(low ^ lane, high ^ key);
  }

  void whole(const std::uint8_t* at) {
    mix(a, secret[4], load64(at), load64(at + 8));
    mix(b, secret[5], load64(at + 16), load64(at + 24));
    mix(c, secret[6], load64(at + 32), load64(at + 40));
    mix(d, secret[7], load64(at + 48), load64(at + 56));
  }

  // The last `size` < 64 bytes; the last block is filled up with zeros (the length tells them from real ones).
  void rest(const std::uint8_t* at, std::size_t size) {
    if (size >= 48) {
      mix(a, secret[4], load64(at), load64(at + 8));
      mix(b, secret[5], load64(at + 16), load64(at + 24));
      mix(c, secret[6], load64(at + 32), load64(at + 40));
      return last(d, secret[7], at + 48, size - 48);
    }
    if (size >= 32) {
      mix(a, secret[4], load64(at), load64(at + 8));
      mix(b, secret[5], load64(at + 16), load64(at + 24));
      return last(c, secret[6], at + 32, size - 32);
    }
    if (size >= 16) {
      mix(a, secret[4], load64(at), load64(at + 8));
      return last(b, secret[5], at + 16, size - 16);
    }
    last(a, secret[4], at, size);
  }

  // Fewer than 16 bytes, without reading beyond them: by loads that overlap.
  static void last(std::uint64_t& lane, std::uint64_t key, const std::uint8_t* at, std::size_t size) {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    if (size > 8) {
      low = load64(at);
      high = load64(at + size - 8) >> (8 * (block - size));
    } else if (size == 8) {
      low = load64(at);
    } else if (size >= 4) {
      low = load32(at) | (load32(at + size - 4) << (8 * (size - 4)));
    } else if (size > 0) {
      low = at[0] | std::uint64_t{at[size / 2]} << (8 * (size / 2)) | std::uint64_t{at[size - 1]} << (8 * (size - 1));
    } else {
      return;
    }
    mix(lane, key, low, high);
  }

  [[nodiscard]] std::uint64_t finish(std::uint64_t length) const {
    return multiply_fold((a + std::rotl(b, 32)) ^ length, (c + std::rotl(d, 32)) ^ secret[0]);
  }
};

std::uint64_t digest_chain(const Packet& packet) {
  Lanes lanes;
  std::array<std::uint8_t, stripe> gathered{};
  std::size_t held = 0;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    std::span<const std::uint8_t> bytes = segment->bytes();
    if (held != 0) {
      const std::size_t part = std::min(stripe - held, bytes.size());
      std::copy_n(bytes.begin(), part, gathered.begin() + static_cast<std::ptrdiff_t>(held));
      bytes = bytes.subspan(part);
      held += part;
      if (held < stripe) {
        continue;
      }
      lanes.whole(gathered.data());
    }
    for (; bytes.size() >= stripe; bytes = bytes.subspan(stripe)) {
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
  Lanes lanes;
  const std::uint8_t* at = frame.data();
  std::size_t left = frame.size();
  for (; left >= stripe; left -= stripe, at += stripe) {
    lanes.whole(at);
  }
  lanes.rest(at, left);
  return lanes.finish(frame.size());
}

std::uint64_t frame_digest(const Packet& packet) {
  return packet.next == nullptr ? frame_digest(packet.bytes()) : digest_chain(packet);
}

}  // namespace weir
