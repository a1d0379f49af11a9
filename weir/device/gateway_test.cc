#include <weir/device/gateway.h>

#include <gtest/gtest.h>
#include <poll.h>

#include <weir/device/internal/testing.h>

namespace weir {
namespace {

bool readable(const Device& device, unsigned queue) {
  pollfd wanted{device.descriptor(queue), POLLIN, 0};
  return ::poll(&wanted, 1, 0) == 1;
}

class Gateway : public testing::Test {
 protected:
  Gateway() {
    device_ = std::move(*make_device(std::string_view("gateway")));
    EXPECT_TRUE(device_->open({*pool_, clock_, nullptr, 2, 1}));
  }
  std::vector<Packet*> made(std::size_t count) {
    std::vector<Packet*> packets(count);
    for (Packet*& packet : packets) {
      packet = frames_.allocate();
    }
    return packets;
  }

  std::unique_ptr<FramePool> pool_ = std::move(*FramePool::create(4096));
  ManualClock clock_{5};
  PacketCache frames_{*pool_};
  std::unique_ptr<Device> device_;
  std::array<Packet*, 64> in_{};
};

TEST_F(Gateway, GivesBackWhatItIsSentOnTheSameQueueInOrder) {
  EXPECT_FALSE(readable(*device_, 0));
  EXPECT_TRUE(device_->finished(0));
  auto packets = made(3);
  packets[1]->tunnel = 1;
  packets[1]->vni = 7;
  packets[1]->waits = 2;
  packets[2]->egress = 9;
  packets[2]->offload.flags = Offload::needs_checksum | Offload::has_ports;
  EXPECT_EQ(device_->transmit(0, packets, frames_), 3U);
  EXPECT_TRUE(readable(*device_, 0));
  EXPECT_FALSE(device_->finished(0));
  EXPECT_EQ(device_->next_time(0), 5U);
  EXPECT_EQ(device_->receive(1, in_, frames_), 0U);
  EXPECT_EQ(device_->receive(0, std::span(in_).first(2), frames_), 2U);
  EXPECT_EQ(in_[0], packets[0]);
  EXPECT_EQ(in_[1], packets[1]);
  EXPECT_EQ(in_[1]->tunnel, 0);
  EXPECT_EQ(in_[1]->vni, 0U);
  EXPECT_EQ(in_[1]->waits, 0);
  EXPECT_EQ(in_[1]->timestamp, 5U);
  EXPECT_TRUE(readable(*device_, 0));
  EXPECT_EQ(device_->receive(0, in_, frames_), 1U);
  EXPECT_EQ(in_[0]->egress, 0);
  EXPECT_EQ(in_[0]->offload.flags, Offload::needs_checksum);
  EXPECT_FALSE(readable(*device_, 0));
  EXPECT_TRUE(device_->finished(0));
  EXPECT_FALSE(device_->next_time(0));
  frames_.free_many(packets);
}

TEST_F(Gateway, TakesNoMoreThanItHasRoomFor) {
  auto packets = made(GatewayDevice::room + 10);
  EXPECT_EQ(device_->transmit(1, packets, frames_), GatewayDevice::room);
  EXPECT_EQ(device_->receive(1, std::span(in_).first(4), frames_), 4U);
  frames_.free_many(std::span(in_).first(4));
  const std::span<Packet*> rest = std::span(packets).last(10);
  EXPECT_EQ(device_->transmit(1, rest, frames_), 4U);
  frames_.free_many(rest.last(6));
  device_.reset();  // frees the others: the pool's destructor would find them missing
}

}  // namespace
}  // namespace weir
