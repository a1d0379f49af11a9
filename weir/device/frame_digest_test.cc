#include <weir/device/frame_digest.h>

#include <set>

#include <gtest/gtest.h>

#include <weir/base/random.h>
#include <weir/device/internal/testing.h>

namespace weir {
namespace {

using device_testing::Bytes;

Bytes random_bytes(std::size_t size, Random& random) {
  Bytes bytes(size);
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

// Cuts `bytes` into segments at random places, empty ones included.
Packet* chain(const Bytes& bytes, PacketCache& cache, Random& random) {
  Packet* first = nullptr;
  Packet** link = &first;
  std::size_t done = 0;
  while (first == nullptr || done < bytes.size()) {
    const auto part = random.below(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size() - done, 150) + 1));
    *link = cache.allocate(std::span(bytes).subspan(done, part));
    link = &(*link)->next;
    done += part;
  }
  first->length = static_cast<std::uint32_t>(bytes.size());
  return first;
}

TEST(FrameDigest, ChainsAndWholeFramesAgree) {
  const auto pool = *FramePool::create(1024);
  PacketCache cache(*pool);
  Random random(1);
  for (std::size_t size = 0; size < 700; ++size) {
    const Bytes bytes = random_bytes(size, random);
    Packet* packet = chain(bytes, cache, random);
    EXPECT_EQ(frame_digest(*packet), frame_digest(bytes)) << size;
    cache.free(packet);
  }
}

TEST(FrameDigest, EveryBitAndTheLengthCount) {
  Random random(2);
  for (const std::size_t size : {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 48, 60, 63, 64, 65, 128, 200}) {
    Bytes bytes = random_bytes(size, random);
    std::set<std::uint64_t> seen{frame_digest(bytes)};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      EXPECT_TRUE(seen.insert(frame_digest(bytes)).second) << size << " bytes, bit " << bit;
      bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    }
    bytes.push_back(0);
    EXPECT_TRUE(seen.insert(frame_digest(bytes)).second) << "a zero more behind " << size;
  }
}

TEST(FrameDigest, PositionsCount) {
  Random random(3);
  const Bytes bytes = random_bytes(256, random);
  std::set<std::uint64_t> seen{frame_digest(bytes)};
  for (const std::size_t step : {8, 16, 64}) {  // words, lanes and stripes that change places
    for (std::size_t at = 0; at + 2 * step <= bytes.size(); at += step) {
      Bytes swapped = bytes;
      const auto from = swapped.begin() + static_cast<std::ptrdiff_t>(at);
      std::swap_ranges(from, from + static_cast<std::ptrdiff_t>(step), from + static_cast<std::ptrdiff_t>(step));
      EXPECT_TRUE(seen.insert(frame_digest(swapped)).second) << step << " bytes at " << at;
    }
  }
}

// The same on all machines and for ever: recorded digests stay comparable.
TEST(FrameDigest, KnownValue) {
  Bytes bytes(60);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  EXPECT_EQ(frame_digest(bytes), 12631545858923821942U);
}

}  // namespace
}  // namespace weir
