#include <weir/device/pcap.h>

#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/device/frame_digest.h>
#include <weir/device/internal/capture_builder.h>
#include <weir/device/internal/testing.h>

namespace weir {
namespace {

using device_testing::Bench;
using device_testing::Bytes;
using device_testing::CaptureBuilder;
using device_testing::TemporaryFolder;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Nanoseconds second = 1'000'000'000;

Bytes frame(std::uint8_t fill, std::size_t size = 60) { return Bytes(size, fill); }

// Frames 1, 2, 3 at 100.0, 100.3 and 100.2 seconds.
Bytes three() {
  return CaptureBuilder(false)
      .pcap_header(false)
      .record(100, 0, frame(1))
      .record(100, 300'000, frame(2))
      .record(100, 200'000, frame(3))
      .bytes();
}

std::vector<Nanoseconds> times(const Bench& bench) {
  std::vector<Nanoseconds> all;
  all.reserve(bench.packets.size());
  for (const Packet* packet : bench.packets) {
    all.push_back(packet->timestamp);
  }
  return all;
}

class PcapDeviceTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string in_ = folder_.write("in.pcap", three());
};

TEST_F(PcapDeviceTest, ReadsThrough) {
  Bench bench("pcap:" + in_);
  bench.opened();
  const DeviceTraits traits = bench.device->traits();
  EXPECT_TRUE(traits.finite && traits.waits && traits.symmetric);
  EXPECT_EQ(traits.queues, 1U);
  EXPECT_FALSE(bench.device->finished(0));
  EXPECT_THAT(bench.take(2), ElementsAre(frame(1), frame(2)));
  EXPECT_FALSE(bench.device->finished(0));
  EXPECT_THAT(bench.take(2), ElementsAre(frame(3)));
  EXPECT_TRUE(bench.device->finished(0));
  EXPECT_TRUE(bench.take(2).empty());
  EXPECT_TRUE(bench.device->flush());
  EXPECT_EQ(bench.device->counters().bad_input, 0U);
  bench.cache.reset();
  EXPECT_EQ(bench.pool->available(), bench.pool->frames());
}

TEST_F(PcapDeviceTest, MovesTheCaptureClock) {
  Bench bench("pcap:" + in_);
  bench.opened(true);
  EXPECT_EQ(bench.device->next_time(0), 100 * second);
  EXPECT_EQ(bench.device->next_time(1), std::nullopt);
  EXPECT_EQ(bench.clock.now(), 0U);
  bench.receive(1);
  EXPECT_EQ(bench.clock.now(), 100 * second);
  EXPECT_THAT(times(bench), ElementsAre(100 * second));
  bench.drop();
  EXPECT_EQ(bench.device->next_time(0), 100 * second + 300'000'000);
  bench.receive(2);
  EXPECT_EQ(bench.clock.now(), 100 * second + 300'000'000);
  // The third was captured before the second: time does not go back.
  EXPECT_THAT(times(bench), ElementsAre(100 * second + 300'000'000, 100 * second + 300'000'000));
  bench.drop();
  EXPECT_EQ(bench.device->next_time(0), std::nullopt);
  EXPECT_TRUE(bench.device->finished(0));
}

TEST_F(PcapDeviceTest, WithoutACaptureClockPacketsHaveTheNodesTime) {
  Bench bench("pcap:" + in_);
  bench.opened();
  bench.clock.set(77);
  bench.receive(9);
  EXPECT_THAT(times(bench), ElementsAre(77, 77, 77));
  bench.drop();
}

TEST_F(PcapDeviceTest, LoopsWithTimeGoingOn) {
  Bench bench("pcap:" + in_ + ",loop=3");
  bench.opened(true);
  EXPECT_TRUE(bench.device->traits().finite);
  bench.receive(100);
  // The file spans 0.3 s with a mean distance of 0.15: each pass begins 0.45 s after the one before.
  constexpr Nanoseconds a = 100 * second;
  constexpr Nanoseconds ms = 1'000'000;
  EXPECT_THAT(times(bench), ElementsAre(a, a + 300 * ms, a + 300 * ms, a + 450 * ms, a + 750 * ms, a + 750 * ms,
                                        a + 900 * ms, a + 1200 * ms, a + 1200 * ms));
  bench.drop();
  EXPECT_TRUE(bench.device->finished(0));

  Bench forever("pcap:" + in_ + ",loop=0");
  forever.opened();
  EXPECT_FALSE(forever.device->traits().finite);
  std::size_t total = 0;
  for (int i = 0; i < 100; ++i) {
    total += forever.take(32).size();
  }
  EXPECT_EQ(total, 3200U);
}

TEST_F(PcapDeviceTest, ALoopOverNothingEnds) {
  const std::string empty = folder_.write("none.pcap", CaptureBuilder(false).pcap_header(false).bytes());
  Bench bench("pcap:" + empty + ",loop=0");
  bench.opened();
  EXPECT_TRUE(bench.take(10).empty());
  EXPECT_TRUE(bench.device->finished(0));
}

TEST_F(PcapDeviceTest, ASteadyRate) {
  Bench bench("pcap:" + in_ + ",rate=1000,loop=2");
  bench.opened();
  EXPECT_EQ(bench.take(10).size(), 1U);
  bench.clock.advance(2'000'000);
  EXPECT_EQ(bench.take(10).size(), 2U);
  bench.clock.advance(999'999);
  EXPECT_EQ(bench.take(10).size(), 0U);
  bench.clock.advance(1'000'000'000);
  EXPECT_EQ(bench.take(10).size(), 3U);  // nothing of a file is lost
  EXPECT_TRUE(bench.take(10).empty());
  EXPECT_TRUE(bench.device->finished(0));
}

TEST_F(PcapDeviceTest, TheRateOfTheCapture) {
  Bench bench("pcap:" + in_ + ",rate=capture");
  bench.clock.set(5);
  bench.opened();
  EXPECT_THAT(bench.take(10), ElementsAre(frame(1)));
  bench.clock.advance(299'999'999);
  EXPECT_TRUE(bench.take(10).empty());
  bench.clock.advance(1);
  EXPECT_THAT(bench.take(10), ElementsAre(frame(2), frame(3)));
}

TEST_F(PcapDeviceTest, RecordsWaitForFrames) {
  CaptureBuilder capture(false);
  capture.pcap_header(false);
  for (std::uint8_t i = 0; i < 100; ++i) {
    capture.record(i, 0, frame(i, 5000));  // two segments
  }
  Bench bench("pcap:" + folder_.write("many.pcap", capture.bytes()), 1, 64);
  bench.opened();
  std::vector<Bytes> all;
  while (!bench.device->finished(0)) {
    for (Bytes& bytes : bench.take(100)) {
      all.push_back(std::move(bytes));
    }
  }
  ASSERT_EQ(all.size(), 100U);
  for (std::uint8_t i = 0; i < 100; ++i) {
    EXPECT_EQ(all[i], frame(i, 5000));
  }
}

TEST_F(PcapDeviceTest, ARecordLongerThanThePoolIsLost) {
  const auto capture = CaptureBuilder(false)
                           .pcap_header(false)
                           .record(1, 0, frame(1))
                           .record(2, 0, frame(2, 262'144))
                           .record(3, 0, frame(3))
                           .bytes();
  Bench bench("pcap:" + folder_.write("huge.pcap", capture), 1, 64);
  bench.opened();
  EXPECT_THAT(bench.take(10), ElementsAre(frame(1), frame(3)));
  EXPECT_EQ(bench.device->counters().lost, 1U);
  Bench large("pcap:" + folder_.file("huge.pcap"));
  large.opened();
  EXPECT_THAT(large.take(10), ElementsAre(frame(1), frame(2, 262'144), frame(3)));
}

TEST_F(PcapDeviceTest, DamageInTheMiddle) {
  Bytes bytes = three();
  bytes.pop_back();
  const std::string path = folder_.write("cut.pcap", bytes);
  Bench bench("pcap:" + path + ",loop=0");
  bench.opened();
  EXPECT_THAT(bench.take(10), ElementsAre(frame(1), frame(2)));
  EXPECT_TRUE(bench.device->finished(0));
  EXPECT_EQ(bench.device->counters().bad_input, 1U);
  const auto flushed = bench.device->flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().message, path +
                                         ": byte 176: the file is cut off: the record needs 76 bytes and 75 are "
                                         "there; the 2 packets before it were read");
}

TEST_F(PcapDeviceTest, WritesWhatItReads) {
  const std::string out = folder_.file("out.pcap");
  CaptureBuilder capture(true);
  capture.pcap_header(true).record(5, 123'456'789, frame(1)).record(6, 1, frame(2, 10'000)).record(7, 2, {});
  {
    Bench bench("pcap:" + folder_.write("odd.pcap", capture.bytes()) + ",out=" + out);
    bench.opened(true);
    ASSERT_EQ(bench.receive(10), 3U);
    EXPECT_EQ(bench.transmit(), 3U);
    EXPECT_TRUE(bench.device->flush());
    bench.cache.reset();
    EXPECT_EQ(bench.pool->available(), bench.pool->frames());
  }
  CaptureBuilder expected(false);
  expected.u32(0xa1b23c4d).u16(2).u16(4).u32(0).u32(0).u32(262'144).u32(1);
  expected.record(5, 123'456'789, frame(1)).record(6, 1, frame(2, 10'000)).record(7, 2, {});
  EXPECT_EQ(folder_.read("out.pcap"), expected.bytes());
}

TEST_F(PcapDeviceTest, SnaplenCutsWhatIsWritten) {
  const std::string out = folder_.file("out.pcap");
  Bench bench(
      "pcap:" + folder_.write("x", CaptureBuilder(false).pcap_header(false).record(5, 0, frame(1, 9000)).bytes()) +
      ",out=" + out + ",snaplen=3000");
  bench.opened(true);
  bench.receive(1);
  bench.transmit();
  ASSERT_TRUE(bench.device->flush());
  const auto reader = *PcapReader::open(out);
  const auto* record = reader->next();
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->bytes.size(), 3000U);
  EXPECT_EQ(record->original_length, 9000U);
}

TEST_F(PcapDeviceTest, WriteOnly) {
  const std::string out = folder_.file("out.pcap");
  Bench source("pcap:" + in_);
  source.opened(true);
  source.receive(10);
  {
    Bench bench("pcap:,out=" + out);
    bench.opened();
    EXPECT_TRUE(bench.device->traits().finite);
    EXPECT_TRUE(bench.device->finished(0));
    EXPECT_EQ(bench.receive(10), 0U);
    EXPECT_EQ(bench.device->transmit(0, source.packets, *source.cache), 3U);
  }  // closing writes out
  const auto reader = *PcapReader::open(out);
  int records = 0;
  while (reader->next() != nullptr) {
    ++records;
  }
  EXPECT_EQ(records, 3);
  EXPECT_FALSE(reader->error());
}

TEST_F(PcapDeviceTest, WithoutAnOutputFramesAreFreed) {
  Bench bench("pcap:" + in_);
  bench.opened();
  bench.receive(10);
  EXPECT_EQ(bench.transmit(), 3U);
  bench.cache.reset();
  EXPECT_EQ(bench.pool->available(), bench.pool->frames());
}

TEST_F(PcapDeviceTest, TheSystemsClockIsWrittenAsWallTime) {
  const std::string out = folder_.file("out.pcap");
  const SystemClock clock;
  const auto pool = *FramePool::create(64);
  PacketCache cache(*pool);
  auto device = *make_device("pcap:,out=" + out);
  ASSERT_TRUE(device->open({*pool, clock, nullptr, 1, 1}));
  Packet* packet = cache.allocate(frame(1));
  packet->timestamp = clock.now();
  device->transmit(0, std::span(&packet, 1), cache);
  ASSERT_TRUE(device->flush());
  const auto reader = *PcapReader::open(out);
  const auto now = static_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch().count());
  const auto* record = reader->next();
  ASSERT_NE(record, nullptr);
  EXPECT_LE(record->time, now + second);
  EXPECT_GE(record->time + 60 * second, now);
}

TEST_F(PcapDeviceTest, CannotBeOpened) {
  const std::string folder = folder_.file("");
  const auto fails = [](const std::string& spec) {
    const auto result = Bench(spec).open();
    EXPECT_FALSE(result) << spec;
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(fails("pcap:/no/such.pcap"), HasSubstr("cannot read /no/such.pcap: No such file"));
  EXPECT_THAT(fails("pcap:" + folder), HasSubstr("is a directory"));
  EXPECT_THAT(fails("pcap:,out=" + folder), HasSubstr("Is a directory; give a file that you may write"));
  EXPECT_THAT(fails("pcap:,out=/no/such/folder/x"), HasSubstr("make its folder first"));
  EXPECT_THAT(fails("pcap:" + in_ + ",out=" + in_), HasSubstr("is read and written at once"));
  ASSERT_EQ(symlink(in_.c_str(), folder_.file("link").c_str()), 0);
  EXPECT_THAT(fails("pcap:" + in_ + ",out=" + folder_.file("link")), HasSubstr("is read and written at once"));
  EXPECT_EQ(folder_.read("in.pcap"), three());
  // A bad input leaves the output as it was.
  fails("pcap:/no/such.pcap,out=" + folder_.write("old.pcap", {1, 2, 3}));
  EXPECT_EQ(folder_.read("old.pcap"), (Bytes{1, 2, 3}));
}

TEST_F(PcapDeviceTest, AFullDiskFromTheStart) {
  if (access("/dev/full", W_OK) != 0) {
    GTEST_SKIP() << "there is no /dev/full";
  }
  const auto result = Bench("pcap:,out=/dev/full").open();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "cannot write /dev/full: No space left on device; make room or write elsewhere");
}

// A limit on the size of files stands for the disk that fills up on the way.
TEST_F(PcapDeviceTest, AFullDiskOnTheWay) {
  const std::string out = folder_.file("out.pcap");
  Bench source("memory:flows=1,size=1500");
  source.opened();
  Bench bench("pcap:,out=" + out);
  bench.opened();
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 3'000'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto* const handler = signal(SIGXFSZ, SIG_IGN);

  std::size_t accepted = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 100; ++i) {
    source.receive(32);
    const std::size_t took = bench.device->transmit(0, source.packets, *source.cache);
    accepted += took;
    refused += source.packets.size() - took;
    source.cache->free_many(std::span(source.packets).subspan(took));
  }
  const auto flushed = bench.device->flush();
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);

  constexpr std::size_t fit = (3'000'000 - 24) / (16 + 1500);
  EXPECT_GT(accepted, fit);
  EXPECT_GT(refused, 0U);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().message,
            fmt::format("cannot write {}: File too large; make room or write elsewhere. It holds the first {} packets, "
                        "{} more were accepted and lost",
                        out, fit, accepted - fit));
  const auto reader = *PcapReader::open(out);
  while (reader->next() != nullptr) {
  }
  EXPECT_FALSE(reader->error());
  EXPECT_EQ(reader->records(), fit);
  source.cache.reset();
  EXPECT_EQ(source.pool->available(), source.pool->frames());
}

TEST_F(PcapDeviceTest, SeveralWorkersWriteWholeRecords) {
  const std::string out = folder_.file("out.pcap");
  Bench bench("pcap:,out=" + out, 2);
  bench.opened();
  constexpr int batches = 500;
  const auto work = [&](std::uint8_t fill) {
    PacketCache cache(*bench.pool);
    for (int i = 0; i < batches; ++i) {
      std::array<Packet*, 4> packets{};
      for (Packet*& packet : packets) {
        packet = cache.allocate(frame(fill, std::size_t{100} * fill));
        packet->timestamp = 1;
      }
      EXPECT_EQ(bench.device->transmit(fill - 1U, packets, cache), packets.size());
    }
  };
  std::thread one(work, 1);
  std::thread two(work, 2);
  one.join();
  two.join();
  ASSERT_TRUE(bench.device->flush());
  const auto reader = *PcapReader::open(out);
  std::array<int, 3> seen{};
  while (const auto* record = reader->next()) {
    ASSERT_FALSE(record->bytes.empty());
    const std::uint8_t fill = record->bytes.front();
    ASSERT_EQ(Bytes(record->bytes.begin(), record->bytes.end()), frame(fill, std::size_t{100} * fill));
    ++seen.at(fill);
  }
  EXPECT_THAT(seen, ElementsAre(0, 4 * batches, 4 * batches));
}

}  // namespace
}  // namespace weir
