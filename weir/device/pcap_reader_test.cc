#include <weir/device/pcap_reader.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base/random.h>
#include <weir/device/internal/capture_builder.h>
#include <weir/device/internal/testing.h>

namespace weir {
namespace {

using device_testing::Bytes;
using device_testing::CaptureBuilder;
using device_testing::TemporaryFolder;
using testing::HasSubstr;

constexpr Nanoseconds second = 1'000'000'000;

struct Frame {
  Bytes bytes;
  Nanoseconds time;
  bool operator==(const Frame&) const = default;
};

struct Outcome {
  std::vector<Frame> frames;
  std::string error;       // of reading
  std::string open_error;  // of opening
};

void read_all(PcapReader& reader, Outcome& outcome) {
  while (const auto* record = reader.next()) {
    outcome.frames.push_back({Bytes(record->bytes.begin(), record->bytes.end()), record->time});
  }
  EXPECT_EQ(reader.next(), nullptr);
  EXPECT_EQ(reader.records(), outcome.frames.size());
  outcome.error = reader.error() ? reader.error()->message : "";
}

Outcome read(std::span<const std::uint8_t> bytes) {
  Outcome outcome;
  const auto reader = PcapReader::from_memory(bytes, "x");
  if (!reader) {
    outcome.open_error = reader.error().message;
    return outcome;
  }
  read_all(**reader, outcome);
  return outcome;
}

Bytes frame(std::uint8_t fill, std::size_t size) { return Bytes(size, fill); }

class ByteOrders : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static CaptureBuilder builder() { return CaptureBuilder(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(PcapReader, ByteOrders, testing::Bool(),
                         [](const auto& order) { return order.param ? "Swapped" : "Native"; });

TEST_P(ByteOrders, PcapWithMicroAndNanoseconds) {
  for (const bool nanoseconds : {false, true}) {
    auto capture = builder();
    capture.pcap_header(nanoseconds).record(1'700'000'000, 5, frame(1, 60)).record(4'000'000'000, 7, {});
    const Outcome outcome = read(capture.bytes());
    const Nanoseconds unit = nanoseconds ? 1 : 1000;
    EXPECT_EQ(outcome.frames, (std::vector<Frame>{{frame(1, 60), 1'700'000'000 * second + 5 * unit},
                                                  {{}, 4'000'000'000 * second + 7 * unit}}));
    EXPECT_EQ(outcome.error + outcome.open_error, "");
  }
}

TEST_P(ByteOrders, PcapngOfEveryKindOfBlock) {
  auto capture = builder();
  auto options = capture.body();
  const std::array<std::uint8_t, 1> nano{9};
  const std::array<std::uint8_t, 5> name{'e', 't', 'h', '0', '!'};
  options.option(2, name).option(9, nano).u16(14).u16(8).put<std::uint64_t>(100).option(0, {});
  capture.section()
      .interface()
      .block(0x0bad, capture.body().u32(1).u32(2))  // unknown
      .interface(1, options)
      .enhanced(0, 5, frame(1, 61))
      .enhanced(1, 7, frame(2, 62))
      .old(1, 9, frame(3, 63))
      .simple(64, frame(4, 64))
      .block(5, capture.body().u32(0))  // statistics
      .section()                        // all interfaces go
      .interface(1, capture.body(), 10)
      .simple(64, frame(5, 10));  // cut by the interface
  const Outcome outcome = read(capture.bytes());
  EXPECT_EQ(outcome.frames, (std::vector<Frame>{
                                {frame(1, 61), 5000},
                                {frame(2, 62), 100 * second + 7},
                                {frame(3, 63), 100 * second + 9},
                                {frame(4, 64), 100 * second + 9},  // has no time: the last one's
                                {frame(5, 10), 100 * second + 9},
                            }));
  EXPECT_EQ(outcome.error + outcome.open_error, "");
}

TEST_P(ByteOrders, PcapngTimes) {
  struct Case {
    std::uint8_t resolution;
    std::int64_t offset;
    std::uint64_t ticks;
    Nanoseconds time;
  };
  for (const auto& [resolution, offset, ticks, time] : std::vector<Case>{
           {0, 0, 3, 3 * second},
           {3, 0, 1'700'000'000'123, 1'700'000'000'123'000'000},
           {12, 0, 5'999, 5},
           {127, 0, ~std::uint64_t{0}, 0},
           {0x80, 0, 2, 2 * second},
           {0x8a, 0, 1536, second + second / 2},  // 1/1024 s
           {0xff, 0, ~std::uint64_t{0}, 0},
           {9, -1, 5, 0},  // before 1970
           {9, -1, 2 * second, second},
           {0, std::numeric_limits<std::int64_t>::max(), 1, ~Nanoseconds{0}},
           {0, 0, ~std::uint64_t{0}, ~Nanoseconds{0}},
       }) {
    auto capture = builder();
    auto options = capture.body();
    options.option(9, std::array{resolution}).u16(14).u16(8).put<std::uint64_t>(static_cast<std::uint64_t>(offset));
    capture.section().interface(1, options).enhanced(0, ticks, frame(1, 60));
    const Outcome outcome = read(capture.bytes());
    ASSERT_EQ(outcome.frames.size(), 1U);
    EXPECT_EQ(outcome.frames[0].time, time) << int{resolution} << " " << offset << " " << ticks;
  }
}

TEST(PcapReader, SectionsOfBothByteOrders) {
  Bytes all;
  for (const bool swapped : {false, true, false}) {
    CaptureBuilder capture(swapped);
    capture.section().interface().enhanced(0, 1, frame(swapped ? 2 : 1, 60));
    all.insert(all.end(), capture.bytes().begin(), capture.bytes().end());
  }
  EXPECT_EQ(read(all).frames, (std::vector<Frame>{{frame(1, 60), 1000}, {frame(2, 60), 1000}, {frame(1, 60), 1000}}));
}

TEST(PcapReader, CapturesWithoutPackets) {
  for (const auto& capture : {CaptureBuilder(false).pcap_header(true), CaptureBuilder(false).section(),
                              CaptureBuilder(false).section().interface()}) {
    const Outcome outcome = read(capture.bytes());
    EXPECT_TRUE(outcome.frames.empty());
    EXPECT_EQ(outcome.error + outcome.open_error, "");
  }
}

// Wherever the file ends: the whole records before are read, and unless it ends between records, an error tells where.
void cut_everywhere(const Bytes& capture, const std::vector<std::size_t>& record_ends,
                    const std::vector<std::size_t>& clean_ends) {
  const auto whole = read(capture).frames;
  ASSERT_EQ(whole.size(), record_ends.size());
  const TemporaryFolder folder;
  for (std::size_t cut = 0; cut < capture.size(); ++cut) {
    // Exactly so many bytes, so that a sanitizer sees any read beyond them; and from a file as well.
    const Bytes part(capture.begin(), capture.begin() + static_cast<std::ptrdiff_t>(cut));
    const Outcome outcome = read(part);
    const auto expected = static_cast<std::size_t>(std::ranges::upper_bound(record_ends, cut) - record_ends.begin());
    ASSERT_EQ(outcome.frames, std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(expected)))
        << "cut at " << cut;
    const bool clean = std::ranges::find(clean_ends, cut) != clean_ends.end();
    ASSERT_EQ((outcome.error + outcome.open_error).empty(), clean)
        << "cut at " << cut << ": " << outcome.error << outcome.open_error;

    Outcome from_file;
    const std::string path = folder.write("cut", part);
    if (const auto reader = PcapReader::open(path)) {
      read_all(**reader, from_file);
      EXPECT_EQ(from_file.error.empty(), outcome.error.empty());
    } else {
      EXPECT_FALSE(outcome.open_error.empty());
    }
    ASSERT_EQ(from_file.frames, outcome.frames);
  }
}

TEST_P(ByteOrders, PcapCutAnywhere) {
  auto capture = builder();
  capture.pcap_header(false);
  std::vector<std::size_t> clean{capture.bytes().size()};
  std::vector<std::size_t> ends;
  for (const std::size_t size : {60U, 0U, 71U}) {
    capture.record(1, 2, frame(9, size));
    ends.push_back(capture.bytes().size());
  }
  clean.insert(clean.end(), ends.begin(), ends.end());
  cut_everywhere(capture.bytes(), ends, clean);
}

TEST_P(ByteOrders, PcapngCutAnywhere) {
  auto capture = builder();
  std::vector<std::size_t> ends;
  std::vector<std::size_t> clean;
  const auto block_done = [&](bool packet) {
    clean.push_back(capture.bytes().size());
    if (packet) {
      ends.push_back(capture.bytes().size());
    }
  };
  capture.section();
  block_done(false);
  capture.interface(1, capture.body().option(9, std::array<std::uint8_t, 1>{9}));
  block_done(false);
  capture.enhanced(0, 1, frame(1, 61));
  block_done(true);
  capture.block(0x0bad, capture.body().u32(1));
  block_done(false);
  capture.simple(3, frame(2, 3));
  block_done(true);
  capture.old(0, 1, frame(3, 5));
  block_done(true);
  capture.section();
  block_done(false);
  cut_everywhere(capture.bytes(), ends, clean);
}

TEST(PcapReader, ErrorsOfOpening) {
  struct Case {
    const char* what;
    Bytes bytes;
    std::vector<const char*> said;
  };
  const auto native = [] { return CaptureBuilder(false); };
  const std::vector<Case> cases{
      {"empty", {}, {"x is empty, not a capture"}},
      {"text", {'h', 'e', 'l', 'l', 'o'}, {"x is not a pcap or pcapng capture", "68 65 6c 6c 6f"}},
      {"one byte", {0xd4}, {"is not a pcap or pcapng capture", "it starts with d4"}},
      {"gzip", {0x1f, 0x8b, 8, 0, 0}, {"gunzip it first"}},
      {"zstd", {0x28, 0xb5, 0x2f, 0xfd, 0}, {"unzstd it first"}},
      {"header cut", {0xd4, 0xc3, 0xb2, 0xa1, 2, 0}, {"cut off in its file header: 6 bytes of 24"}},
      {"version", native().pcap_header(false, 1, 3).bytes(), {"pcap version 3"}},
      {"raw IP", native().pcap_header(false, 101).bytes(), {"link type is 101 (raw IP)", "only Ethernet"}},
      {"unknown link", native().pcap_header(false, 250).bytes(), {"link type is 250", "only Ethernet"}},
      {"cooked", native().section().interface(113).bytes(), {"interface 0", "113 (Linux cooked)", "only Ethernet"}},
      {"section version", native().section(2).bytes(), {"pcapng version 2"}},
      {"no byte order",
       native().u32(0x0a0d0d0a).u32(28).u32(7).u32(0).u32(0).u32(0).u32(28).bytes(),
       {"without a byte order", "byte 0"}},
      {"short section",
       native().u32(0x0a0d0d0a).u32(24).u32(0x1a2b3c4d).u32(1).u32(0).u32(0).u32(24).bytes(),
       {"section header of 24 bytes"}},
  };
  for (const auto& [what, bytes, said] : cases) {
    const Outcome outcome = read(bytes);
    for (const char* part : said) {
      EXPECT_THAT(outcome.open_error, HasSubstr(part)) << what;
    }
  }
}

TEST_P(ByteOrders, ErrorsInTheMiddle) {
  struct Case {
    const char* what;
    CaptureBuilder tail;
    const char* said;
  };
  const auto start = [] {
    auto capture = builder();
    capture.section().interface().enhanced(0, 1, frame(1, 60));
    return capture;
  };
  const auto packet = [](std::uint32_t interface, std::uint32_t captured, std::size_t there) {
    return builder().u32(interface).u32(0).u32(0).u32(captured).u32(captured).raw(Bytes(there));
  };
  const std::vector<Case> cases{
      {"block too short", builder().u32(6).u32(8).u32(8), "a block of 8 bytes cannot be"},
      {"block of no multiple of 4", builder().u32(0x0bad).u32(13).u32(0).u32(0), "a block of 13 bytes cannot be"},
      {"packet block without header", builder().block(6, builder().u32(0)), "a packet block of 16 bytes"},
      {"packet block too long", builder().u32(6).u32(0x7ffffff0).u32(0), "none of its kind is longer"},
      {"other block too long", builder().u32(0x0bad).u32(0x7ffffff0).u32(0), "cut off: the record needs 2147483632"},
      {"ends differ", builder().u32(0x0bad).u32(12).u32(16), "begins with length 12 and ends with 16"},
      {"ends of a packet differ", builder().u32(3).u32(16).u32(0).u32(20), "begins with length 16 and ends with 20"},
      {"no such interface", builder().block(6, packet(1, 4, 4)), "a packet of interface 1, and the section has 1"},
      {"lying length", builder().block(6, packet(0, 9, 8)), "a packet of 9 bytes in a block that has room for 8"},
      {"lying huge length", builder().block(6, packet(0, ~0U, 8)), "none is longer than 262144"},
      {"simple packet lies", builder().simple(9, Bytes(8)), "a packet of 9 bytes in a block that has room for 8"},
      {"short interface", builder().block(1, builder().u32(1)), "an interface block of 16 bytes"},
      {"option overruns", builder().interface(1, builder().u16(9).u16(100).u32(0)), "an option runs past the end"},
      {"other link", builder().interface(105), "interface 1 cannot be used: its link type is 105 (802.11)"},
      {"packet before any interface", builder().section().enhanced(0, 1, frame(1, 60)), "the section has 0"},
  };
  for (const auto& [what, tail, said] : cases) {
    auto capture = start();
    const std::size_t good = capture.bytes().size();
    capture.raw(tail.bytes());
    const Outcome outcome = read(capture.bytes());
    EXPECT_EQ(outcome.frames.size(), 1U) << what;
    EXPECT_THAT(outcome.error, HasSubstr(said)) << what;
    EXPECT_THAT(outcome.error, HasSubstr("the 1 packet before it was read")) << what;
    if (std::string_view(what) != "packet before any interface" && std::string_view(what) != "ends differ" &&
        std::string_view(what) != "other block too long") {
      EXPECT_THAT(outcome.error, HasSubstr(fmt::format("x: byte {}:", good))) << what;
    }
  }
  auto capture = builder();
  capture.pcap_header(false).record(1, 1, frame(1, 60)).record(1, 1, frame(1, 60));
  capture.u32(0).u32(0).u32(262'145).u32(262'145).raw(Bytes(300'000));
  const Outcome outcome = read(capture.bytes());
  EXPECT_EQ(outcome.frames.size(), 2U);
  EXPECT_EQ(outcome.error,
            "x: byte 176: a record of 262145 bytes, and none is longer than 262144; the 2 packets before it were read");
}

TEST(PcapReader, LongestRecords) {
  const Bytes longest = frame(7, PcapReader::max_record);
  CaptureBuilder pcap(false);
  pcap.pcap_header(true).record(0, 0, longest).record(0, 0, longest);
  CaptureBuilder blocks(false);
  blocks.section().interface().enhanced(0, 0, longest).block(0x0bad, CaptureBuilder(false).raw(Bytes(3'000'000)));
  blocks.enhanced(0, 0, longest);
  const TemporaryFolder folder;
  for (const auto& capture : {pcap, blocks}) {
    const auto reader = PcapReader::open(folder.write("long", capture.bytes()));
    ASSERT_TRUE(reader);
    Outcome outcome;
    read_all(**reader, outcome);
    EXPECT_EQ(outcome.frames, (std::vector<Frame>{{longest, 0}, {longest, 0}}));
    EXPECT_EQ(outcome.error, "");
  }
}

TEST(PcapReader, Rewinds) {
  const TemporaryFolder folder;
  CaptureBuilder pcap(true);
  pcap.pcap_header(true).record(1, 1, frame(1, 60)).record(2, 2, frame(2, 60));
  CaptureBuilder blocks(true);
  blocks.section().interface().enhanced(0, 5, frame(1, 60)).enhanced(0, 6, frame(2, 60)).u32(1);  // cut off
  for (const auto& capture : {pcap, blocks}) {
    const auto reader = PcapReader::open(folder.write("again", capture.bytes()));
    ASSERT_TRUE(reader);
    Outcome once;
    read_all(**reader, once);
    EXPECT_EQ(once.frames.size(), 2U);
    (*reader)->rewind();
    Outcome again;
    read_all(**reader, again);
    EXPECT_EQ(once.frames, again.frames);
    EXPECT_EQ(once.error, again.error);
  }
}

TEST(PcapReader, FilesThatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THAT(PcapReader::open(folder.file("none")).error().message, HasSubstr("No such file"));
  EXPECT_THAT(PcapReader::open(folder.file("")).error().message, HasSubstr("is a directory"));
  EXPECT_THAT(PcapReader::open("/dev/null").error().message, HasSubstr("not a regular file"));
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(PcapReader::open(fifo).error().message, HasSubstr("not a regular file"));
  const std::string empty = folder.write("empty", {});
  EXPECT_EQ(PcapReader::open(empty).error().message, empty + " is empty, not a capture; is whoever writes it done?");
  if (geteuid() != 0) {
    const std::string secret = folder.write("secret", {1});
    ASSERT_EQ(chmod(secret.c_str(), 0), 0);
    EXPECT_THAT(PcapReader::open(secret).error().message, HasSubstr("Permission denied; give yourself the right"));
  }
}

TEST(PcapReader, AnyBytes) {
  Random random(9);
  CaptureBuilder pcap(false);
  pcap.pcap_header(false).record(1, 1, frame(1, 60)).record(1, 1, frame(1, 60));
  CaptureBuilder blocks(true);
  blocks.section().interface(1, CaptureBuilder(true).option(9, std::array<std::uint8_t, 1>{6}));
  blocks.enhanced(0, 1, frame(1, 61)).simple(8, frame(1, 8)).old(0, 1, frame(1, 9)).section();
  for (const auto& capture : {pcap.bytes(), blocks.bytes()}) {
    for (int i = 0; i < 20'000; ++i) {
      Bytes broken = capture;
      for (unsigned n = 1 + random.below(4); n > 0; --n) {
        broken[random.below(static_cast<std::uint32_t>(broken.size()))] = static_cast<std::uint8_t>(random());
      }
      const Outcome outcome = read(broken);
      EXPECT_LE(outcome.frames.size(), 8U);
    }
  }
}

}  // namespace
}  // namespace weir
