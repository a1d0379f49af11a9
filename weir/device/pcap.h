#pragma once
// pcap: a capture file in, a capture file out.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <weir/base/counter.h>
#include <weir/device/device.h>
#include <weir/device/device_spec.h>
#include <weir/device/pcap_reader.h>
#include <weir/device/pcap_writer.h>

namespace weir {

namespace device_internal {
class Pacer;
}

/// The kind `pcap`, with all its options.
DeviceKind pcap_kind();

/// Receives, on queue 0, the frames of a pcap or pcapng file; what is sent goes to another file, or is only freed.
/// "pcap:in.pcap" reads, "pcap:,out=x.pcap" writes, "pcap:in.pcap,out=x.pcap" does both.
///
/// Time: if it is given a capture clock it moves that clock to the time of the last packet of each batch, and stamps
/// packets with capture times; never back, even where the file does. A file that is read again goes on after its end by
/// the mean distance of its packets. Without a capture clock packets bear the time of the node's clock. `rate=` paces
/// by the node's clock; where that is the capture clock, by the system's.
///
/// A file that is damaged in the middle gives the packets before; then the device is finished,
/// DeviceCounters::bad_input is 1, and `flush` tells what is wrong and where. A file that cannot be written to its end
/// holds what fitted; from then on `transmit` takes nothing and `flush` tells why.
class PcapDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> make(const DeviceSpec& spec);
  ~PcapDevice() override;

  Result<> open(const DeviceContext& context) override;
  [[nodiscard]] DeviceTraits traits() const override;
  std::size_t receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) override;
  std::size_t transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) override;
  [[nodiscard]] bool finished(unsigned queue) const override;
  [[nodiscard]] std::optional<Nanoseconds> next_time(unsigned queue) override;
  Result<> flush() override;
  /// `lost` are records longer than all frames of the pool together.
  [[nodiscard]] DeviceCounters counters() const override;

 private:
  struct Config {
    std::string in;
    std::string out;
    std::uint64_t loop = 1;  // times; 0: for ever
    std::uint64_t rate = 0;  // packets per second; 0: no such rate
    bool capture_rate = false;
    std::uint32_t snaplen = PcapWriter::max_snaplen;
  };

  explicit PcapDevice(Config config);
  bool load_record();
  void finish();
  [[nodiscard]] Nanoseconds record_time() const { return std::max(record_->time + shift_, delivered_time_); }

  Config config_;
  const Clock* clock_ = nullptr;
  const Clock* pace_clock_ = nullptr;
  ManualClock* capture_clock_ = nullptr;
  SystemClock system_clock_;
  std::uint64_t wall_offset_ = 0;  // from the node's clock to the time since 1970

  // Of the receiving thread.
  std::unique_ptr<PcapReader> reader_;
  const PcapReader::Record* record_ = nullptr;  // read, and not delivered yet
  std::uint64_t passes_ = 0;
  std::unique_ptr<device_internal::Pacer> pacer_;
  std::optional<Nanoseconds> pace_start_;
  Nanoseconds first_time_ = 0;      // of this pass, in the file
  Nanoseconds last_time_ = 0;       // of this pass, in the file, the latest
  Nanoseconds shift_ = 0;           // added to the file's times in this pass
  Nanoseconds delivered_time_ = 0;  // of the last packet delivered
  Nanoseconds capture_start_ = 0;   // of the very first packet

  std::atomic<bool> finished_{true};
  OwnedCounter lost_;
  OwnedCounter bad_input_;

  std::mutex lock_;  // guards what follows
  std::unique_ptr<PcapWriter> writer_;
  std::optional<Error> read_error_;
};

}  // namespace weir
