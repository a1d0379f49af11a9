#include <weir/runtime/ring.h>

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(PacketRing, KeepsOrderAndKnowsItsRoom) {
  auto ring = std::make_unique<PacketRing>();
  std::vector<Packet> packets(PacketRing::capacity);
  for (Packet& packet : packets) {
    EXPECT_TRUE(ring->push(&packet));
  }
  EXPECT_EQ(ring->room(), 0U);
  EXPECT_FALSE(ring->push(&packets[0]));
  std::vector<Packet*> out(PacketRing::capacity + 1);
  ASSERT_EQ(ring->pop(out), PacketRing::capacity);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    EXPECT_EQ(out[i], &packets[i]);
  }
  EXPECT_TRUE(ring->empty());
  EXPECT_EQ(ring->room(), PacketRing::capacity);
}

TEST(PacketRing, OneWriterOneReader) {
  constexpr std::size_t total = 100'000;
  auto ring = std::make_unique<PacketRing>();
  std::vector<Packet> packets(2 * PacketRing::capacity);
  std::thread writer([&] {
    for (std::size_t i = 0; i < total;) {
      packets[i % packets.size()].length = static_cast<std::uint32_t>(i);
      if (ring->push(&packets[i % packets.size()])) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::vector<Packet*> out(64);
  for (std::size_t seen = 0; seen < total;) {
    const std::size_t count = ring->pop(out);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(out[i]->length, seen + i);
    }
    seen += count;
    if (count == 0) {
      std::this_thread::yield();
    }
  }
  writer.join();
}

}  // namespace
}  // namespace weir
