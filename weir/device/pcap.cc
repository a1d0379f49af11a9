#include <weir/device/pcap.h>

#include <algorithm>
#include <limits>

#include <time.h>

#include <weir/device/internal/option_reader.h>
#include <weir/device/internal/pacer.h>

namespace weir {

using device_internal::OptionReader;
using device_internal::Pacer;

DeviceKind pcap_kind() {
  return {
      .name = "pcap",
      .help = "reads and writes capture files",
      .argument = "file to read, pcap or pcapng; empty to write only",
      .options =
          {
              {"out", "file to write, pcap with nanoseconds; what is sent is only counted without (none)"},
              {"loop", "how often the file is read; 0: for ever (1)"},
              {"rate", "packets per second, 1 to 1000000000, or capture: as they were captured (as fast as asked)"},
              {"snaplen", "bytes of each frame that are written, 1 to 262144 (262144)"},
          },
      .example = "pcap:in.pcap,out=out.pcap,loop=1",
      .make = PcapDevice::make,
  };
}

PcapDevice::PcapDevice(Config config) : config_(std::move(config)) {}

PcapDevice::~PcapDevice() = default;

Result<std::unique_ptr<Device>> PcapDevice::make(const DeviceSpec& spec) {
  Config config;
  config.in = spec.argument;
  OptionReader read(spec);
  read.text("out", config.out);
  read.number("loop", config.loop);
  std::string rate;
  read.text("rate", rate);
  config.capture_rate = rate == "capture";
  if (!config.capture_rate) {
    read.number("rate", config.rate, 1, 1'000'000'000);
  }
  read.number("snaplen", config.snaplen, 1, PcapWriter::max_snaplen);
  if (config.in.empty()) {
    for (const char* key : {"loop", "rate"}) {
      if (read.has(key)) {
        read.fail(key, "is about a file to read, and there is none; write pcap:in.pcap,...");
      }
    }
  }
  if (config.out.empty() && read.has("snaplen")) {
    read.fail("snaplen", "is about a file to write, and there is none; give out= too");
  }
  if (const auto result = read.result(); !result) {
    return std::unexpected(result.error());
  }
  if (config.in.empty() && config.out.empty()) {
    return error("neither a file to read nor one to write; write pcap:in.pcap or pcap:,out=out.pcap");
  }
  return std::unique_ptr<Device>(new PcapDevice(std::move(config)));
}

Result<> PcapDevice::open(const DeviceContext& context) {
  std::unique_ptr<PcapReader> reader;
  if (!config_.in.empty()) {
    auto opened = PcapReader::open(config_.in);
    if (!opened) {
      return std::unexpected(opened.error());
    }
    reader = std::move(*opened);
  }
  if (!config_.out.empty()) {
    auto created = PcapWriter::create(config_.out, config_.snaplen, config_.in);
    if (!created) {
      return std::unexpected(created.error());
    }
    writer_ = std::move(*created);
  }
  reader_ = std::move(reader);
  finished_.store(reader_ == nullptr, std::memory_order_release);
  clock_ = &context.clock;
  capture_clock_ = context.capture_clock;
  pace_clock_ = clock_ == capture_clock_ ? &system_clock_ : clock_;
  if (config_.rate != 0) {
    pacer_ = std::make_unique<Pacer>(config_.rate, Pacer::endless);
  }
  if (dynamic_cast<const SystemClock*>(clock_) != nullptr) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    wall_offset_ = static_cast<Nanoseconds>(now.tv_sec) * 1'000'000'000U + static_cast<Nanoseconds>(now.tv_nsec) -
                   SystemClock::read();
  }
  return {};
}

DeviceTraits PcapDevice::traits() const {
  return {.queues = 1, .symmetric = true, .finite = config_.in.empty() || config_.loop != 0, .waits = true};
}

void PcapDevice::finish() {
  if (reader_->error()) {
    const std::lock_guard guard(lock_);
    read_error_ = reader_->error();
    bad_input_.add();
  }
  finished_.store(true, std::memory_order_release);
}

// Makes `record_` the next one; false at the end of everything.
bool PcapDevice::load_record() {
  while (record_ == nullptr) {
    record_ = reader_->next();
    if (record_ == nullptr) {
      const std::uint64_t records = reader_->records();
      if (reader_->error() || records == 0 || ++passes_ == config_.loop) {
        finish();
        return false;
      }
      const Nanoseconds mean = records == 1 ? 1000 : (last_time_ - first_time_) / (records - 1);
      const Nanoseconds end = last_time_ + shift_;
      reader_->rewind();
      shift_ = end + std::max<Nanoseconds>(mean, 1) - first_time_;
    } else if (reader_->records() == 1) {
      first_time_ = last_time_ = record_->time;
      if (passes_ == 0) {
        capture_start_ = record_->time;
      }
    } else {
      last_time_ = std::max(last_time_, record_->time);
    }
  }
  return true;
}

std::size_t PcapDevice::receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) {
  if (queue != 0 || finished_.load(std::memory_order_relaxed)) {
    return 0;
  }
  std::size_t most = out.size();
  Nanoseconds elapsed = std::numeric_limits<Nanoseconds>::max();
  if (pacer_ != nullptr) {
    most = std::min<std::uint64_t>(most, pacer_->waiting(pace_clock_->now()));
  } else if (config_.capture_rate) {
    const Nanoseconds now = pace_clock_->now();
    elapsed = now - pace_start_.value_or(now);
    pace_start_ = now - elapsed;
  }
  const Nanoseconds arrival = capture_clock_ == nullptr ? clock_->now() : 0;
  std::size_t done = 0;
  while (done < most && load_record()) {
    const Nanoseconds time = record_time();
    if (config_.capture_rate && time > capture_start_ && time - capture_start_ > elapsed) {
      break;
    }
    if (record_->bytes.size() > std::uint64_t{frames.pool().frames()} * FramePool::segment_bytes) [[unlikely]] {
      lost_.add();
      record_ = nullptr;
      continue;
    }
    Packet* packet = frames.allocate(record_->bytes);
    if (packet == nullptr) {
      break;  // the record waits for frames
    }
    record_ = nullptr;
    delivered_time_ = time;
    packet->timestamp = capture_clock_ == nullptr ? arrival : time;
    out[done++] = packet;
  }
  if (pacer_ != nullptr) {
    pacer_->take(done);
  }
  if (capture_clock_ != nullptr && done != 0) {
    capture_clock_->set(delivered_time_);
  }
  return done;
}

std::optional<Nanoseconds> PcapDevice::next_time(unsigned queue) {
  if (finished(queue) || !load_record()) {
    return std::nullopt;
  }
  return record_time();
}

std::size_t PcapDevice::transmit(unsigned /*queue*/, std::span<Packet*> packets, PacketCache& frames) {
  std::size_t done = packets.size();
  if (!config_.out.empty()) {
    const std::lock_guard guard(lock_);
    const auto refused = std::ranges::find_if_not(
        packets, [&](const Packet* packet) { return writer_->write(*packet, packet->timestamp + wall_offset_); });
    done = static_cast<std::size_t>(refused - packets.begin());
  }
  frames.free_many(packets.first(done));
  return done;
}

bool PcapDevice::finished(unsigned queue) const { return queue != 0 || finished_.load(std::memory_order_acquire); }

Result<> PcapDevice::flush() {
  const std::lock_guard guard(lock_);
  std::string message;
  if (writer_ != nullptr) {
    if (const auto result = writer_->flush(); !result) {
      message = result.error().message;
    }
  }
  if (read_error_) {
    message += (message.empty() ? "" : "\n") + read_error_->message;
  }
  if (!message.empty()) {
    return std::unexpected(Error{message});
  }
  return {};
}

DeviceCounters PcapDevice::counters() const { return {.lost = lost_.get(), .bad_input = bad_input_.get()}; }

}  // namespace weir
