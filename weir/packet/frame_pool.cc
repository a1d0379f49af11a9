#include <weir/packet/frame_pool.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 0x0004U
#endif

namespace weir {

namespace {

constexpr std::size_t huge_page = 2U << 20U;

// Maps `bytes` of a fresh memfd; nullptr (and no descriptor) if that cannot be had.
std::uint8_t* map(std::size_t bytes, unsigned flags, int& descriptor) {
  descriptor = memfd_create("weir-frames", MFD_CLOEXEC | flags);
  if (descriptor < 0) {
    return nullptr;
  }
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) {
      return static_cast<std::uint8_t*>(memory);
    }
  }
  const int reason = errno;
  close(descriptor);
  errno = reason;
  descriptor = -1;
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<FramePool>> FramePool::create(std::uint32_t frames) {
  if (frames < 64 || frames > (1U << 20U)) {
    return error("a pool of {} frames cannot be made; give 64 to 1048576", frames);
  }
  std::unique_ptr<FramePool> pool(new FramePool);
  const std::size_t bytes = (std::size_t{frames} * buffer_bytes + huge_page - 1) / huge_page * huge_page;
  Memory& memory = pool->memory_;
  std::uint8_t* start = map(bytes, MFD_HUGETLB, memory.descriptor);
  memory.huge_pages = start != nullptr;
  if (start == nullptr) {
    start = map(bytes, 0, memory.descriptor);
  }
  if (start == nullptr) {
    return error("no memory for {} frames ({} MiB): {}; use fewer frames or raise the memory limit", frames,
                 bytes >> 20U, std::strerror(errno));
  }
  memory.bytes = {start, bytes};
  pool->frames_ = frames;
  pool->packets_ = static_cast<Packet*>(::operator new(sizeof(Packet) * frames, std::align_val_t{64}));
  pool->free_.reserve(frames);
  for (std::uint32_t i = frames; i-- > 0;) {
    pool->free_.push_back(new (&pool->packets_[i]) Packet{});
  }
  return pool;
}

FramePool::~FramePool() {
  if (packets_ != nullptr) {
    ::operator delete(packets_, std::align_val_t{64});
  }
  if (memory_.bytes.data() != nullptr) {
    munmap(memory_.bytes.data(), memory_.bytes.size());
    close(memory_.descriptor);
  }
}

std::size_t FramePool::take(std::span<Packet*> out) {
  const std::lock_guard guard(lock_);
  const std::size_t count = std::min(out.size(), free_.size());
  std::copy(free_.end() - static_cast<std::ptrdiff_t>(count), free_.end(), out.begin());
  free_.resize(free_.size() - count);
  return count;
}

void FramePool::give_back(std::span<Packet* const> packets) {
  const std::lock_guard guard(lock_);
  free_.insert(free_.end(), packets.begin(), packets.end());
}

std::size_t FramePool::available() const {
  const std::lock_guard guard(lock_);
  return free_.size();
}

bool PacketCache::refill() {
  count_ = pool_.take(std::span(free_).first(bulk));
  if (count_ == 0) {
    exhausted_.add();
  }
  return count_ != 0;
}

void PacketCache::flush() {
  // The oldest go: the newest are the ones still in the processor's cache.
  pool_.give_back(std::span(free_).first(bulk));
  std::copy(free_.begin() + bulk, free_.end(), free_.begin());
  count_ -= bulk;
}

Packet* PacketCache::allocate(std::span<const std::uint8_t> bytes) {
  Packet* first = nullptr;
  Packet** link = &first;
  std::size_t done = 0;
  do {
    Packet* segment = allocate();
    if (segment == nullptr) {
      free(first);
      return nullptr;
    }
    const std::size_t part = std::min<std::size_t>(bytes.size() - done, FramePool::segment_bytes);
    if (part != 0) {
      std::memcpy(segment->data, bytes.data() + done, part);
    }
    segment->segment = static_cast<std::uint16_t>(part);
    segment->length = static_cast<std::uint32_t>(part);
    done += part;
    *link = segment;
    link = &segment->next;
  } while (done < bytes.size());
  first->length = static_cast<std::uint32_t>(bytes.size());
  return first;
}

Packet* PacketCache::clone(const Packet& packet) {
  Packet* copy = allocate();
  if (copy == nullptr) {
    return nullptr;
  }
  const unsigned own = std::min<unsigned>(packet.segment, 2 * Packet::header_bytes);
  std::memcpy(copy->data, packet.data, own);
  copy->segment = static_cast<std::uint16_t>(own);
  copy->length = packet.length;
  copy->timestamp = packet.timestamp;
  copy->ingress = packet.ingress;
  copy->vni = packet.vni;
  copy->layout = packet.layout;
  copy->payload = packet.payload;
  copy->l3 = packet.l3;
  copy->l4 = packet.l4;
  copy->stage = packet.stage;
  copy->tunnel = packet.tunnel;
  copy->vlan = packet.vlan;
  copy->offload = packet.offload;

  // The rest, segment by segment, by reference to the buffer it lies in.
  Packet** link = &copy->next;
  unsigned skip = own;
  for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
    if (segment->segment > skip) {
      Packet* shared = allocate();
      if (shared == nullptr) {
        free(copy);
        return nullptr;
      }
      shared->owner = segment->owner != 0 ? segment->owner : 1 + pool_.index(*segment);
      pool_.packet(shared->owner - 1).references.fetch_add(1, std::memory_order_relaxed);
      shared->data = segment->data + skip;
      shared->segment = static_cast<std::uint16_t>(segment->segment - skip);
      shared->length = shared->segment;
      *link = shared;
      link = &shared->next;
    }
    skip = 0;
  }
  return copy;
}

bool PacketCache::pull_up(Packet& packet, unsigned bytes) {
  if (packet.segment >= bytes) {
    return true;
  }
  if (packet.length < bytes || packet.owner != 0) {
    return false;
  }
  const std::uint8_t* end = pool_.buffer(pool_.index(packet)) + FramePool::buffer_bytes;
  if (packet.data + bytes > end) {
    return false;
  }
  while (packet.segment < bytes) {
    Packet* next = packet.next;
    const unsigned part = std::min<unsigned>(bytes - packet.segment, next->segment);
    std::memcpy(packet.data + packet.segment, next->data, part);
    packet.segment = static_cast<std::uint16_t>(packet.segment + part);
    next->data += part;
    next->segment = static_cast<std::uint16_t>(next->segment - part);
    if (next->segment == 0) {
      packet.next = next->next;
      next->next = nullptr;
      free(next);
    }
  }
  return true;
}

}  // namespace weir
