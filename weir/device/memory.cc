#include <weir/device/memory.h>

#include <algorithm>
#include <atomic>

#include <weir/base/hash.h>
#include <weir/base/spin_lock.h>
#include <weir/device/frame_digest.h>
#include <weir/device/internal/digest_lanes.h>
#include <weir/device/internal/memory_config.h>
#include <weir/device/internal/pacer.h>

namespace weir {

using device_internal::Generator;
using device_internal::MemoryConfig;
using device_internal::Pacer;

DeviceKind memory_kind() {
  return {
      .name = "memory",
      .help = "a generator and sink of frames; without options a sink only",
      .argument = "",
      .options =
          {
              {"flows", "number of flows, 1 to 16777216 (1)"},
              {"order", "of the flows: random, zipf or sequential (random)"},
              {"skew", "exponent of order=zipf, 0.01 to 10 (1.0)"},
              {"size",
               "bytes of a frame without its check sequence, 60 to 9000, or imix: 64, 570 and 1518 bytes 7:4:1 "
               "(64, or what the headers take)"},
              {"proto", "udp or tcp (udp)"},
              {"ip", "4 or 6 (4)"},
              {"vlan", "identifier of a tag, 1 to 4094 (none)"},
              {"src", "source address of flow 0 (10.0.0.0 or 2001:db8::)"},
              {"dst", "destination address of flow 0 (10.1.0.0 or 2001:db8:0:1::)"},
              {"src_mac", "source Ethernet address (02:00:00:00:00:01)"},
              {"dst_mac", "destination Ethernet address (02:00:00:00:00:02)"},
              {"src_port", "source port of flow 0 (1024)"},
              {"dst_port", "destination port of flow 0 (80)"},
              {"vary",
               "what depends on the flow: src, dst, ports, macs (the source's), joined by '+', or all: the first three "
               "(all)"},
              {"headers",
               "fixed, or random: every packet has other headers, of changing protocols; size is 64 to 2944 (fixed)"},
              {"rate", "packets per second of all queues, up to 1000000000; 0: as fast as they are asked for (0)"},
              {"count", "packets in all; 0: endless (0)"},
              {"queue", "packets that can wait for each worker, 1 to 1048576; with a rate (1024)"},
              {"record", "keeps the bytes of so many sent frames, for tests, 1 to 1000000 (none)"},
          },
      .example = "memory:flows=65536,order=zipf,size=64,rate=1000000",
      .make = MemoryDevice::make,
  };
}

struct alignas(64) MemoryDevice::Source {
  std::optional<Generator> generator;  // absent: nothing is generated
  Pacer pacer{0, 0};                   // if there is a rate
  std::uint64_t remaining = 0;         // if there is none
  Nanoseconds stamp = 0;               // if there is none: the clock as it was read last
  unsigned calls_to_stamp = 0;
  std::atomic<bool> exhausted{true};  // nothing more will be generated
  OwnedCounter lost;

  std::atomic<bool> has_injected{false};
  mutable SpinLock lock;  // guards injected
  struct Injected {
    std::vector<std::uint8_t> frame;
    Nanoseconds at;
  };
  std::deque<Injected> injected;
};

struct alignas(64) MemoryDevice::Sink {
  OwnedCounter packets;
  OwnedCounter bytes;
  OwnedCounter digest;
};

MemoryDevice::MemoryDevice(const MemoryConfig& config) : config_(std::make_unique<MemoryConfig>(config)) {}

MemoryDevice::~MemoryDevice() = default;

Result<std::unique_ptr<Device>> MemoryDevice::make(const DeviceSpec& spec) {
  auto config = MemoryConfig::parse(spec);
  if (!config) {
    return std::unexpected(config.error());
  }
  return std::unique_ptr<Device>(new MemoryDevice(*config));
}

Result<> MemoryDevice::open(const DeviceContext& context) {
  clock_ = &context.clock;
  capture_clock_ = context.capture_clock;
  // Reading the system's clock waits for all instructions before it: 2 ns a packet when done for every batch.
  stamp_every_ = dynamic_cast<const SystemClock*>(clock_) != nullptr ? 8 : 1;
  const std::uint32_t flows = config_->generator.random_headers ? context.workers : config_->generator.flows;
  const unsigned queues = config_->generates ? std::min(context.workers, flows) : 1;
  traits_ = {.queues = queues,
             .symmetric = true,
             .finite = !config_->generates || config_->count != 0,
             .waits = config_->rate == 0};
  for (unsigned queue = 0; queue < queues; ++queue) {
    Source& source = *sources_.emplace_back(std::make_unique<Source>());
    if (!config_->generates) {
      continue;
    }
    const std::uint64_t count =
        config_->count == 0 ? Pacer::endless : config_->count / queues + (queue < config_->count % queues ? 1 : 0);
    source.generator.emplace(config_->generator, queue, queues, (flows - queue - 1) / queues + 1,
                             hash_value(queue, context.seed));
    source.remaining = count;
    source.pacer = Pacer(config_->rate, config_->queue, count, queue, queues);
    source.exhausted.store(count == 0, std::memory_order_relaxed);
  }
  for (unsigned worker = 0; worker < context.workers; ++worker) {
    sinks_.push_back(std::make_unique<Sink>());
  }
  return {};
}

void MemoryDevice::inject(std::vector<std::uint8_t> frame, unsigned queue, Nanoseconds at) {
  Source& source = *sources_[queue];
  const std::lock_guard guard(source.lock);
  source.injected.push_back({std::move(frame), at});
  source.has_injected.store(true, std::memory_order_release);
}

std::size_t MemoryDevice::receive_injected(Source& source, std::span<Packet*> out, PacketCache& frames) {
  Nanoseconds now = clock_->now();
  const std::lock_guard guard(source.lock);
  std::size_t done = 0;
  while (done < out.size() && !source.injected.empty()) {
    Packet* packet = frames.allocate(source.injected.front().frame);
    if (packet == nullptr) {
      break;
    }
    if (capture_clock_ != nullptr && source.injected.front().at > now) {
      now = source.injected.front().at;
      capture_clock_->set(now);
    }
    packet->timestamp = now;
    out[done++] = packet;
    source.injected.pop_front();
  }
  source.has_injected.store(!source.injected.empty(), std::memory_order_release);
  return done;
}

std::size_t MemoryDevice::receive(unsigned queue, std::span<Packet*> out, PacketCache& frames) {
  if (queue >= sources_.size()) {
    return 0;
  }
  Source& source = *sources_[queue];
  if (source.has_injected.load(std::memory_order_acquire)) [[unlikely]] {
    return receive_injected(source, out, frames);
  }
  if (source.exhausted.load(std::memory_order_relaxed)) {
    return 0;
  }
  if (config_->rate == 0) {
    if (source.calls_to_stamp-- == 0) {
      source.stamp = clock_->now();
      source.calls_to_stamp = stamp_every_ - 1;
    }
    const Nanoseconds now = source.stamp;
    const std::size_t wanted = std::min<std::uint64_t>(out.size(), source.remaining);
    const std::size_t made = source.generator->generate(out.first(wanted), frames, now);
    if (config_->count != 0) {
      source.remaining -= made;
      source.exhausted.store(source.remaining == 0, std::memory_order_relaxed);
    }
    return made;
  }
  const Nanoseconds now = clock_->now();
  const std::size_t wanted = std::min<std::uint64_t>(out.size(), source.pacer.waiting(now));
  const std::size_t made = source.generator->generate(out.first(wanted), frames, now);
  source.pacer.take(made);
  source.lost.add(source.pacer.lost() - source.lost.get());
  source.exhausted.store(source.pacer.done(), std::memory_order_relaxed);
  return made;
}

std::size_t MemoryDevice::transmit(unsigned queue, std::span<Packet*> packets, PacketCache& frames) {
  std::uint64_t digest = 0;
  std::uint64_t bytes = 0;
  if (config_->record != 0) [[unlikely]] {
    for (const Packet* packet : packets) {
      record(*packet);
    }
  }
  for (const Packet* packet : packets) {
    digest +=
        packet->next == nullptr ? device_internal::digest_bytes(packet->data, packet->segment) : frame_digest(*packet);
    bytes += packet->length;
  }
  frames.free_many(packets);
  Sink& sink = *sinks_[queue];
  sink.packets.add(packets.size());
  sink.bytes.add(bytes);
  sink.digest.add(digest);
  return packets.size();
}

void MemoryDevice::record(const Packet& packet) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(packet.length);
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    bytes.insert(bytes.end(), segment->data, segment->data + segment->segment);
  }
  const std::lock_guard guard(recorded_lock_);
  if (recorded_.size() == config_->record) {
    recorded_.pop_front();
  }
  recorded_.push_back(std::move(bytes));
}

bool MemoryDevice::finished(unsigned queue) const {
  return queue >= sources_.size() || (!sources_[queue]->has_injected.load(std::memory_order_acquire) &&
                                      sources_[queue]->exhausted.load(std::memory_order_relaxed));
}

DeviceCounters MemoryDevice::counters() const {
  DeviceCounters counters;
  for (const auto& source : sources_) {
    counters.lost += source->lost.get();
  }
  for (const auto& sink : sinks_) {
    counters.digest += sink->digest.get();
  }
  return counters;
}

std::uint64_t MemoryDevice::packets() const {
  std::uint64_t sum = 0;
  for (const auto& sink : sinks_) {
    sum += sink->packets.get();
  }
  return sum;
}

std::uint64_t MemoryDevice::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& sink : sinks_) {
    sum += sink->bytes.get();
  }
  return sum;
}

std::vector<std::vector<std::uint8_t>> MemoryDevice::recorded() const {
  const std::lock_guard guard(recorded_lock_);
  return {recorded_.begin(), recorded_.end()};
}

}  // namespace weir
