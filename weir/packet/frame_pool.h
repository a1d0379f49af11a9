#pragma once
// Where frames live: memfd-backed buffers, their metadata lines, and the per-worker caches that recycle them last-in
// first-out, so that the frames in use stay in the processor's cache.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <weir/base/counter.h>
#include <weir/base/error.h>
#include <weir/base/spin_lock.h>
#include <weir/packet/packet.h>

namespace weir {

/// All frames of one node, in one shared-memory segment that others (a NIC, a peer process, a GPU) can map or register.
/// Buffers are 4 KiB; a longer frame is a chain of them.
class FramePool {
 public:
  static constexpr std::uint32_t buffer_bytes = 4096;
  /// Room in front of a received frame for headers to be pushed.
  static constexpr std::uint32_t headroom = 192;
  /// The most that one buffer holds of a frame. What is left out shifts the start of frames by up to 15 cache lines,
  /// so that the headers of a batch do not all fall into the same set of the L1 cache.
  static constexpr std::uint32_t segment_bytes = buffer_bytes - headroom - 15 * 64;

  /// What a device needs to register the memory. Valid until the pool is destroyed.
  struct Memory {
    std::span<std::uint8_t> bytes;
    int descriptor;   ///< memfd, owned by the pool
    bool huge_pages;  ///< whether it stands on huge pages
  };

  /// `frames`: how many, 64 to 1,048,576. Uses huge pages when the system has free ones; fails when there is no memory.
  static Result<std::unique_ptr<FramePool>> create(std::uint32_t frames);
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] std::uint32_t frames() const { return frames_; }

  /// The packet whose own buffer has number `index`.
  [[nodiscard]] Packet& packet(std::uint32_t index) { return packets_[index]; }
  [[nodiscard]] std::uint32_t index(const Packet& packet) const {
    return static_cast<std::uint32_t>(&packet - packets_);
  }
  [[nodiscard]] std::uint8_t* buffer(std::uint32_t index) {
    return memory_.bytes.data() + std::size_t{index} * buffer_bytes;
  }

  /// Moves up to out.size() free frames to `out`; returns how many. Any thread.
  std::size_t take(std::span<Packet*> out);
  /// Any thread.
  void give_back(std::span<Packet* const> packets);
  /// Frames that are in no cache and not in use. Any thread.
  [[nodiscard]] std::size_t available() const;

 private:
  FramePool() = default;

  Memory memory_{};
  Packet* packets_ = nullptr;
  std::uint32_t frames_ = 0;
  mutable SpinLock lock_;  // guards free_
  std::vector<Packet*> free_;
};

/// One thread's frames. Not thread-safe; frames may be freed to another cache of the same pool than they came from.
class PacketCache {
 public:
  explicit PacketCache(FramePool& pool) : pool_(pool) {}
  ~PacketCache() { pool_.give_back(std::span(free_).first(count_)); }
  PacketCache(const PacketCache&) = delete;
  PacketCache& operator=(const PacketCache&) = delete;

  [[nodiscard]] FramePool& pool() { return pool_; }

  /// An empty packet with headroom, or nullptr when the pool has none left (counted in `exhausted`).
  Packet* allocate() {
    if (count_ == 0 && !refill()) [[unlikely]] {
      return nullptr;
    }
    Packet* packet = free_[--count_];
    reset(*packet);
    return packet;
  }

  /// A packet that holds `bytes` (as a chain if need be), or nullptr.
  Packet* allocate(std::span<const std::uint8_t> bytes);

  /// Frees a packet and the rest of its chain; buffers that a copy still uses stay.
  void free(Packet* packet) {
    while (packet != nullptr) {
      Packet* next = packet->next;
      if (packet->owner != 0) [[unlikely]] {
        release_buffer(pool_.packet(packet->owner - 1));
        packet->owner = 0;
      }
      release_buffer(*packet);
      packet = next;
    }
  }

  /// Fills `out` with empty packets as far as there are any; returns how many.
  std::size_t allocate_many(std::span<Packet*> out) {
    std::size_t done = 0;
    while (done < out.size() && (count_ != 0 || refill())) {
      // The count stays in a register: through memory it would cost the latency of a store and a load per packet.
      std::size_t count = count_;
      for (; done < out.size() && count != 0; ++done) {
        out[done] = free_[--count];
        reset(*out[done]);
      }
      count_ = count;
    }
    return done;
  }

  /// As `free`, for each.
  void free_many(std::span<Packet* const> packets) {
    std::size_t count = count_;
    for (Packet* packet : packets) {
      if (packet->next == nullptr && packet->owner == 0 && count != capacity &&
          packet->references.load(std::memory_order_acquire) == 1) [[likely]] {
        free_[count++] = packet;
      } else {
        count_ = count;
        free(packet);
        count = count_;
      }
    }
    count_ = count;
  }

  /// A copy that owns its headers and shares the payload beyond them, or nullptr when frames ran out. Decapsulation
  /// moves the first Packet::header_bytes further in; those of the packet inside are not shared either.
  Packet* clone(const Packet& packet);

  /// Makes the first `bytes` bytes of the frame contiguous in its first segment; false if the frame is shorter, they do
  /// not fit, or the first segment is full. `bytes` <= Packet::header_bytes.
  bool pull_up(Packet& packet, unsigned bytes);

  /// `bytes` more in front of the frame, uninitialised; nullptr if there is not so much headroom.
  std::uint8_t* push_front(Packet& packet, unsigned bytes) {
    const std::uint8_t* start = pool_.buffer(pool_.index(packet));
    if (packet.owner != 0 || packet.data - start < static_cast<std::ptrdiff_t>(bytes)) [[unlikely]] {
      return nullptr;
    }
    packet.data -= bytes;
    packet.length += bytes;
    packet.segment = static_cast<std::uint16_t>(packet.segment + bytes);
    return packet.data;
  }

  /// Takes `bytes` off the front of the frame; they must lie in the first segment.
  static void pop_front(Packet& packet, unsigned bytes) {
    packet.data += bytes;
    packet.length -= bytes;
    packet.segment = static_cast<std::uint16_t>(packet.segment - bytes);
  }

  /// Times that no frame could be had.
  [[nodiscard]] std::uint64_t exhausted() const { return exhausted_.get(); }

 private:
  static constexpr std::size_t capacity = 512;
  static constexpr std::size_t bulk = 128;

  void reset(Packet& packet) {
    const std::uint32_t index = pool_.index(packet);
    packet.data = pool_.buffer(index) + FramePool::headroom + std::size_t{index % 16} * 64;
    packet.references.store(1, std::memory_order_relaxed);
    // All the rest, in the order it lies in memory, so that the compiler writes it as a few wide words.
    packet.next = nullptr;
    packet.timestamp = 0;
    packet.length = 0;
    packet.segment = 0;
    packet.ingress = 0;
    packet.owner = 0;
    packet.vni = 0;
    packet.layout = {};
    packet.payload = 0;
    packet.l3 = 0;
    packet.l4 = 0;
    packet.stage = 0;
    packet.tunnel = 0;
    packet.waits = 0;
    packet.vlan = 0;
    packet.offload = {};
    packet.egress = 0;
  }

  void release_buffer(Packet& packet) {
    if (packet.references.load(std::memory_order_acquire) != 1 &&
        packet.references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    if (count_ == capacity) [[unlikely]] {
      flush();
    }
    free_[count_++] = &packet;
  }

  bool refill();
  void flush();

  FramePool& pool_;
  std::size_t count_ = 0;
  std::array<Packet*, capacity> free_;  // the first count_; an array, as what can grow is not inlined
  OwnedCounter exhausted_;
};

}  // namespace weir
