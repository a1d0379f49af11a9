#include <weir/packet/frame_pool.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include <weir/base/random.h>

namespace weir {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::unique_ptr<FramePool> make_pool(std::uint32_t frames = 256) {
  auto pool = FramePool::create(frames);
  EXPECT_TRUE(pool) << pool.error().message;
  return std::move(*pool);
}

Bytes counted(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  }
  return bytes;
}

// The bytes of the whole frame; checks what a chain promises.
Bytes content(const Packet& packet) {
  Bytes bytes;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    bytes.insert(bytes.end(), segment->data, segment->data + segment->segment);
  }
  EXPECT_EQ(bytes.size(), packet.length);
  return bytes;
}

// A chain whose segments have these lengths.
Packet* chain(PacketCache& frames, const Bytes& bytes, const std::vector<unsigned>& lengths) {
  Packet* first = nullptr;
  Packet** link = &first;
  std::size_t at = 0;
  for (const unsigned length : lengths) {
    *link = frames.allocate(std::span(bytes).subspan(at, length));
    at += length;
    link = &(*link)->next;
  }
  first->length = static_cast<std::uint32_t>(at);
  return first;
}

TEST(FramePool, RefusesSizesItCannotHave) {
  for (const std::uint32_t frames : {0U, 63U, (1U << 20U) + 1}) {
    const auto pool = FramePool::create(frames);
    ASSERT_FALSE(pool);
    EXPECT_NE(pool.error().message.find("64 to 1048576"), std::string::npos);
  }
}

TEST(FramePool, MemoryIsSharedAndLargeEnough) {
  const auto pool = make_pool(64);
  EXPECT_EQ(pool->frames(), 64U);
  EXPECT_EQ(pool->available(), 64U);
  EXPECT_GE(pool->memory().bytes.size(), 64 * FramePool::buffer_bytes);
  pool->buffer(3)[5] = 0x42;
  std::uint8_t read = 0;
  ASSERT_EQ(pread(pool->memory().descriptor, &read, 1, 3 * FramePool::buffer_bytes + 5), 1);
  EXPECT_EQ(read, 0x42);
}

TEST(PacketCache, GivesTheLastFreedFirst) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  Packet* a = frames.allocate();
  Packet* b = frames.allocate();
  frames.free(a);
  frames.free(b);
  EXPECT_EQ(frames.allocate(), b);
  EXPECT_EQ(frames.allocate(), a);
  frames.free(a);
  frames.free(b);
}

TEST(PacketCache, AllocatesCleanPacketsWithHeadroom) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  for (int round = 0; round < 2; ++round) {
    std::vector<Packet*> all;
    std::set<std::ptrdiff_t> starts;
    for (int i = 0; i < 64; ++i) {
      Packet* packet = frames.allocate();
      const std::uint8_t* buffer = pool->buffer(pool->index(*packet));
      EXPECT_GE(packet->data - buffer, FramePool::headroom);
      EXPECT_LE(packet->data + FramePool::segment_bytes, buffer + FramePool::buffer_bytes);
      starts.insert(packet->data - buffer);
      EXPECT_EQ(packet->length, 0U);
      EXPECT_EQ(packet->next, nullptr);
      EXPECT_EQ(packet->tunnel, 0);
      EXPECT_EQ(packet->stage, 0);
      EXPECT_EQ(packet->offload.flags, 0);
      EXPECT_EQ(packet->offload.gso_size, 0);
      packet->tunnel = packet->stage = 1;
      packet->offload.flags = packet->offload.gso_type = 1;
      packet->offload.gso_size = 9;
      packet->length = 7;
      all.push_back(packet);
    }
    EXPECT_EQ(starts.size(), 16U) << "starts are spread over the sets of the cache";
    for (Packet* packet : all) {
      frames.free(packet);
    }
  }
}

TEST(PacketCache, RunsOutAndRecovers) {
  const auto pool = make_pool(64);
  PacketCache frames(*pool);
  std::set<Packet*> all;
  for (int i = 0; i < 64; ++i) {
    all.insert(frames.allocate());
  }
  EXPECT_EQ(all.size(), 64U);
  EXPECT_FALSE(all.contains(nullptr));
  EXPECT_EQ(frames.allocate(), nullptr);
  EXPECT_EQ(frames.allocate(counted(10)), nullptr);
  EXPECT_EQ(frames.clone(**all.begin()), nullptr);
  EXPECT_EQ(frames.exhausted(), 3U);
  Packet* last = *all.begin();
  frames.free(last);
  EXPECT_EQ(frames.allocate(), last);
  for (Packet* packet : all) {
    frames.free(packet);
  }
}

TEST(PacketCache, AChainThatRunsOutLeavesNothingBehind) {
  const auto pool = make_pool(64);
  {
    PacketCache frames(*pool);
    std::vector<Packet*> taken;
    for (int i = 0; i < 61; ++i) {
      taken.push_back(frames.allocate());
    }
    EXPECT_EQ(frames.allocate(counted(4 * FramePool::segment_bytes)), nullptr);
    Packet* fits = frames.allocate(counted(3 * FramePool::segment_bytes));
    ASSERT_NE(fits, nullptr);
    EXPECT_EQ(frames.clone(*fits), nullptr);
    frames.free(taken.back());
    taken.pop_back();
    EXPECT_EQ(frames.clone(*fits), nullptr) << "one frame is not enough";
    frames.free(fits);
    for (Packet* packet : taken) {
      frames.free(packet);
    }
  }
  EXPECT_EQ(pool->available(), 64U);
}

TEST(PacketCache, GivesAllBackWhenItGoes) {
  const auto pool = make_pool(2'000);
  {
    PacketCache frames(*pool);
    std::vector<Packet*> all(1'500);
    std::ranges::generate(all, [&] { return frames.allocate(); });
    PacketCache other(*pool);
    for (std::size_t i = 0; i < all.size(); ++i) {
      (i % 2 == 0 ? frames : other).free(all[i]);
    }
  }
  EXPECT_EQ(pool->available(), 2'000U);
  PacketCache frames(*pool);
  std::set<Packet*> distinct;
  while (Packet* packet = frames.allocate()) {
    distinct.insert(packet);
  }
  EXPECT_EQ(distinct.size(), 2'000U);
  for (Packet* packet : distinct) {
    frames.free(packet);
  }
}

TEST(PacketCache, ManyAtOnceAreAsOneByOne) {
  const auto pool = make_pool(4'096);
  {
    PacketCache frames(*pool);
    // More than the cache holds, in both directions.
    std::vector<Packet*> packets(1'500);
    ASSERT_EQ(frames.allocate_many(packets), packets.size());
    EXPECT_EQ(std::set(packets.begin(), packets.end()).size(), packets.size());
    for (Packet* packet : packets) {
      packet->length = packet->segment = 60;
      packet->vlan = 7;
      packet->offload.flags = Offload::has_vlan;
    }
    // Among them what cannot go the short way: a chain, a clone and its original.
    packets.push_back(frames.allocate(counted(10'000)));
    packets.push_back(frames.allocate(counted(1'500)));
    packets.push_back(frames.clone(*packets.back()));
    frames.free_many(packets);
    EXPECT_EQ(frames.allocate_many(std::span(packets).first(600)), 600U);
    for (const Packet* packet : std::span(packets).first(600)) {
      EXPECT_EQ(packet->references.load(), 1);
      EXPECT_EQ(packet->next, nullptr);
      EXPECT_EQ(packet->owner, 0U);
      EXPECT_EQ(packet->length, 0U);
      EXPECT_EQ(packet->vlan, 0U);
      EXPECT_EQ(packet->offload.flags, 0U);
    }
    frames.free_many(std::span(packets).first(600));
  }
  EXPECT_EQ(pool->available(), 4'096U);
}

TEST(PacketCache, ManyAtOnceRunOut) {
  const auto pool = make_pool(64);
  PacketCache frames(*pool);
  std::vector<Packet*> packets(100);
  EXPECT_EQ(frames.allocate_many(packets), 64U);
  EXPECT_EQ(frames.exhausted(), 1U);
  EXPECT_EQ(frames.allocate_many(std::span(packets).first(0)), 0U);
  EXPECT_EQ(frames.exhausted(), 1U);
  frames.free_many(std::span(packets).first(64));
  EXPECT_EQ(frames.allocate_many(std::span(packets).first(64)), 64U);
  EXPECT_EQ(frames.exhausted(), 1U);
  frames.free_many(std::span(packets).first(64));
}

TEST(PacketCache, HoldsBytesAsAChain) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  constexpr std::size_t most = FramePool::segment_bytes;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, most, most + 1, 3 * most, 9'018UL, 65'535UL}) {
    const Bytes bytes = counted(size);
    Packet* packet = frames.allocate(bytes);
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(content(*packet), bytes);
    std::size_t segments = 0;
    for (const Packet* segment = packet; segment != nullptr; segment = segment->next) {
      ++segments;
      EXPECT_LE(segment->segment, most);
    }
    EXPECT_EQ(segments, std::max<std::size_t>(1, (size + most - 1) / most));
    frames.free(packet);
  }
}

TEST(PacketCache, PushesAndPopsInFront) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  Packet* packet = frames.allocate(counted(100));
  std::uint8_t* start = packet->data;
  EXPECT_EQ(frames.push_front(*packet, 50), start - 50);
  EXPECT_EQ(packet->length, 150U);
  EXPECT_EQ(packet->segment, 150U);
  PacketCache::pop_front(*packet, 54);
  EXPECT_EQ(packet->data, start + 4);
  EXPECT_EQ(packet->length, 96U);
  const auto room = static_cast<unsigned>(packet->data - pool->buffer(pool->index(*packet)));
  EXPECT_EQ(frames.push_front(*packet, room + 1), nullptr);
  EXPECT_EQ(packet->length, 96U) << "a refused push changes nothing";
  EXPECT_NE(frames.push_front(*packet, room), nullptr);
  frames.free(packet);
}

TEST(PacketCache, PushingInFrontOfAChainCountsOnce) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  const Bytes bytes = counted(9'000);
  Packet* packet = frames.allocate(bytes);
  std::fill_n(frames.push_front(*packet, 8), 8, std::uint8_t{0xee});
  Bytes expected = bytes;
  expected.insert(expected.begin(), 8, 0xee);
  EXPECT_EQ(content(*packet), expected);
  frames.free(packet);
}

TEST(PacketCache, PullsUpEverySplit) {
  const auto pool = make_pool(512);
  {
    PacketCache frames(*pool);
    const Bytes bytes = counted(400);
    for (unsigned a = 1; a <= 260; a += a < 20 || a > 250 ? 1 : 7) {
      for (const unsigned b : {1U, 2U, 20U, 139U}) {
        for (const unsigned wanted : {1U, 14U, 54U, 255U, 256U}) {
          Packet* packet = chain(frames, bytes, {a, b, 400 - a - b});
          EXPECT_TRUE(frames.pull_up(*packet, wanted));
          EXPECT_GE(packet->segment, wanted);
          EXPECT_EQ(content(*packet), bytes);
          for (const Packet* segment = packet; segment != nullptr; segment = segment->next) {
            EXPECT_NE(segment->segment, 0);
          }
          frames.free(packet);
        }
      }
    }
    Packet* many = chain(frames, bytes, std::vector<unsigned>(300, 1));
    EXPECT_TRUE(frames.pull_up(*many, 256));
    EXPECT_EQ(content(*many), Bytes(bytes.begin(), bytes.begin() + 300));
    frames.free(many);
  }
  EXPECT_EQ(pool->available(), pool->frames());
}

TEST(PacketCache, PullsUpNoMoreThanThereIs) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  const Bytes bytes = counted(100);
  Packet* packet = chain(frames, bytes, {50, 50});
  EXPECT_FALSE(frames.pull_up(*packet, 101));
  EXPECT_EQ(content(*packet), bytes);
  EXPECT_TRUE(frames.pull_up(*packet, 100));
  EXPECT_EQ(packet->next, nullptr);
  frames.free(packet);
}

TEST(PacketCache, PullingUpDoesNotTouchACopy) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  const Bytes bytes = counted(3'000);
  Packet* packet = chain(frames, bytes, {400, 1'400, 1'200});
  Packet* copy = frames.clone(*packet);
  PacketCache::pop_front(*packet, 254);
  EXPECT_TRUE(frames.pull_up(*packet, 256));
  std::fill_n(packet->data, 256, std::uint8_t{0xaa});
  EXPECT_EQ(content(*copy), bytes);
  frames.free(packet);
  EXPECT_EQ(content(*copy), bytes);
  frames.free(copy);
}

TEST(PacketCache, AClonesMetadataIsThePackets) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  Packet* packet = frames.allocate(counted(1'000));
  packet->timestamp = 5;
  packet->ingress = 6;
  packet->vni = 7;
  packet->layout.bits = 8;
  packet->payload = 9;
  packet->l3 = 10;
  packet->l4 = 11;
  packet->stage = 12;
  packet->tunnel = 1;
  packet->vlan = 13;
  packet->offload = {Offload::has_vlan, 1, 2, 3, 4, 5};
  Packet* copy = frames.clone(*packet);
  EXPECT_EQ(copy->timestamp, 5U);
  EXPECT_EQ(copy->ingress, 6);
  EXPECT_EQ(copy->vni, 7U);
  EXPECT_EQ(copy->layout.bits, 8);
  EXPECT_EQ(copy->payload, 9);
  EXPECT_EQ(copy->l3, 10);
  EXPECT_EQ(copy->l4, 11);
  EXPECT_EQ(copy->stage, 12);
  EXPECT_EQ(copy->tunnel, 1);
  EXPECT_EQ(copy->vlan, 13);
  EXPECT_EQ(copy->offload.flags, Offload::has_vlan);
  EXPECT_EQ(copy->offload.gso_size, 3);
  EXPECT_EQ(copy->offload.checksum_offset, 5);
  frames.free(packet);
  frames.free(copy);
}

TEST(PacketCache, ClonesOwnTheirHeadersAndShareTheRest) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  for (const std::size_t size : {std::size_t{20}, std::size_t{256}, std::size_t{511}, std::size_t{513},
                                 std::size_t{1'500}, std::size_t{9'000}}) {
    const Bytes bytes = counted(size);
    Packet* packet = frames.allocate(bytes);
    Packet* copy = frames.clone(*packet);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(content(*copy), bytes);

    Bytes changed = bytes;
    const std::size_t headers = std::min<std::size_t>(size, Packet::header_bytes);
    std::fill_n(packet->data, headers, std::uint8_t{0x11});
    std::fill_n(changed.begin(), headers, std::uint8_t{0x11});
    EXPECT_EQ(content(*copy), bytes) << "a write to the packet's headers shows in the copy";
    std::fill_n(copy->data, headers, std::uint8_t{0x22});
    EXPECT_EQ(content(*packet), changed) << "a write to the copy's headers shows in the packet";

    // Headers in front of one are not in front of the other.
    EXPECT_NE(frames.push_front(*copy, 50), nullptr);
    std::fill_n(copy->data, 50, std::uint8_t{0x33});
    EXPECT_EQ(content(*packet), changed);
    if (size > 600) {
      const Packet* shared = copy->next;
      EXPECT_GE(shared->data, packet->data);
      EXPECT_LT(shared->data, packet->data + packet->segment) << "the payload is not copied";
    }
    frames.free(packet);
    frames.free(copy);
  }
}

TEST(PacketCache, HeadersInsideATunnelAreNotShared) {
  const auto pool = make_pool();
  PacketCache frames(*pool);
  const Bytes bytes = counted(1'400);
  Packet* packet = frames.allocate(bytes);
  Packet* copy = frames.clone(*packet);
  // As decapsulation with the longest outer headers does, and rewrites behind it.
  PacketCache::pop_front(*packet, 254);
  std::fill_n(packet->data, 254, std::uint8_t{0x11});
  EXPECT_EQ(content(*copy), bytes);
  frames.free(packet);
  frames.free(copy);
}

TEST(PacketCache, ClonesOfClonesAreFreedInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto pool = make_pool();
    {
      PacketCache one(*pool);
      PacketCache two(*pool);
      const auto any = [&]() -> PacketCache& { return random.one_in(2) ? one : two; };
      struct Held {
        Packet* packet;
        Bytes bytes;
      };
      std::vector<Held> held;
      for (int step = 0; step < 60; ++step) {
        const std::uint32_t what = random.below(4);
        if (held.empty() || (what == 0 && held.size() < 12)) {
          const Bytes bytes = counted(random.below(8'000));
          if (Packet* packet = any().allocate(bytes)) {
            held.push_back({packet, bytes});
          }
        } else if (what == 1 && held.size() < 12) {
          const Held& from = held[random.below(static_cast<std::uint32_t>(held.size()))];
          if (Packet* packet = any().clone(*from.packet)) {
            held.push_back({packet, from.bytes});
          }
        } else if (what == 2) {
          Held& victim = held[random.below(static_cast<std::uint32_t>(held.size()))];
          const std::size_t count = std::min<std::size_t>(victim.bytes.size(), Packet::header_bytes);
          const auto value = static_cast<std::uint8_t>(random());
          if (victim.packet->segment >= count) {
            std::fill_n(victim.packet->data, count, value);
            std::fill_n(victim.bytes.begin(), count, value);
          }
        } else {
          const std::size_t i = random.below(static_cast<std::uint32_t>(held.size()));
          any().free(held[i].packet);
          held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
        }
        for (const Held& each : held) {
          ASSERT_EQ(content(*each.packet), each.bytes) << "step " << step;
        }
      }
      for (const Held& each : held) {
        any().free(each.packet);
      }
    }
    ASSERT_EQ(pool->available(), pool->frames());
  }
}

TEST(PacketCache, ThreadsFreeEachOthersClones) {
  const auto pool = make_pool(4'096);
  std::vector<std::vector<Packet*>> shares(4);
  {
    PacketCache frames(*pool);
    for (int i = 0; i < 200; ++i) {
      Packet* packet = frames.allocate(counted(1'500));
      for (std::size_t t = 1; t < shares.size(); ++t) {
        shares[t].push_back(frames.clone(*packet));
      }
      shares[0].push_back(packet);
    }
    std::vector<std::thread> threads;
    for (auto& share : shares) {
      threads.emplace_back([&pool, &share] {
        PacketCache own(*pool);
        for (Packet* packet : share) {
          own.free(packet);
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
  EXPECT_EQ(pool->available(), 4'096U);
}

}  // namespace
}  // namespace weir
