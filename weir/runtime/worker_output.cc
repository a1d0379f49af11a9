// What a worker hands to the devices.

#include <weir/packet/edit.h>
#include <weir/packet/segment.h>
#include <weir/runtime/worker.h>

namespace weir {

std::uint64_t Worker::bytes_of(std::span<Packet* const> packets) {
  std::uint64_t bytes = 0;
  for (const Packet* packet : packets) {
    bytes += packet->length;
  }
  return bytes;
}

// The packets as the port's device takes them, in order, until the next call: checksums finished, segments cut where
// the device does not. A segment is a packet of its own to the counters: a clone of the one it replaces.
std::span<Packet*> Worker::finished_for(const Port& port, std::span<Packet*> packets) {
  segments_.clear();
  for (Packet* packet : packets) {
    packet->offload.flags = static_cast<std::uint8_t>(packet->offload.flags & ~Offload::has_ports);
    // No device segments behind a tunnel's headers.
    if (packet->offload.gso_size == 0 || (port.traits.segmentation && (packet->offload.gso_type & gso::tunnel) == 0)) {
      segments_.push_back(packet);
      continue;
    }
    const std::size_t before = segments_.size();
    const Segmented outcome = segment(frames_, *packet, segments_);
    if (outcome == Segmented::done) {
      stats_.cloned.add(segments_.size() - before - 1);
    } else {
      stats_.drop(outcome == Segmented::no_frames ? drop::no_frames : drop::bad_offload);
      frames_.free(packet);
    }
  }
  if (!port.traits.checksums) {
    for (Packet* packet : segments_) {
      edit::finish_checksum(*packet);
    }
  }
  return segments_;
}

void Worker::send() {
  outputs_.flush([this](PortId id, std::span<Packet*> packets) {
    Port& port = *shared_.ports[id.number];
    std::uint64_t bytes = 0;
    unsigned unfinished = 0;
    for (const Packet* packet : packets) {
      bytes += packet->length;
      unfinished |= packet->offload.flags | packet->offload.gso_size;
    }
    if (unfinished != 0) [[unlikely]] {
      packets = finished_for(port, packets);
      bytes = bytes_of(packets);
    }
    const std::size_t sent = port.device->transmit(number_, packets, frames_);
    for (Packet* packet : packets.subspan(sent)) {
      bytes -= packet->length;
      stats_.drop(drop::output_full);
      frames_.free(packet);
    }
    PortCounters& counters = port.counters[number_];
    counters.out_packets.add(sent);
    counters.out_bytes.add(bytes);
  });
}

}  // namespace weir
