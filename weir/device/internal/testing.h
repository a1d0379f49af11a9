#pragma once
// What the tests of devices share.

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <weir/device/device_spec.h>
#include <weir/packet/frame_pool.h>

namespace weir::device_testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_of(const Packet& packet) {
  Bytes bytes;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    bytes.insert(bytes.end(), segment->data, segment->data + segment->segment);
  }
  return bytes;
}

/// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file(name);
  }
  [[nodiscard]] Bytes read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

/// A device with all that it needs to run.
class Bench {
 public:
  explicit Bench(const std::string& spec, unsigned workers = 1, std::uint32_t frames = 1024)
      : pool(*FramePool::create(frames)), cache(std::make_unique<PacketCache>(*pool)) {
    auto made = make_device(spec);
    EXPECT_TRUE(made) << made.error().message;
    device = std::move(*made);
    workers_ = workers;
  }

  Result<> open(bool capture = false) { return device->open({*pool, clock, capture ? &clock : nullptr, workers_, 1}); }
  /// For specs that cannot fail.
  Bench& opened(bool capture = false) {
    const auto result = open(capture);
    EXPECT_TRUE(result) << result.error().message;
    return *this;
  }

  std::size_t receive(std::size_t most, unsigned queue = 0) {
    packets.resize(most);
    packets.resize(device->receive(queue, packets, *cache));
    return packets.size();
  }
  std::size_t transmit(unsigned queue = 0) { return device->transmit(queue, packets, *cache); }
  void drop() {
    cache->free_many(packets);
    packets.clear();
  }
  /// Receives up to `most` frames and frees them.
  std::vector<Bytes> take(std::size_t most, unsigned queue = 0) {
    receive(most, queue);
    std::vector<Bytes> frames;
    frames.reserve(packets.size());
    for (const Packet* packet : packets) {
      frames.push_back(bytes_of(*packet));
    }
    drop();
    return frames;
  }

  std::unique_ptr<FramePool> pool;
  std::unique_ptr<PacketCache> cache;
  ManualClock clock;
  std::unique_ptr<Device> device;
  std::vector<Packet*> packets;

 private:
  unsigned workers_ = 1;
};

}  // namespace weir::device_testing
