#include <weir/engine/packet_stages.h>

#include <algorithm>
#include <utility>

#include <weir/packet/pull_up.h>

namespace weir {

PacketStages::PacketStages(const ExecutorContext& context) : context_(context) {
  for (const Pipeline::Node& node : context.pipeline.stages) {
    kept_.emplace_back(node.packet != nullptr ? node.packet->keep_limit() : 0);
  }
}

PacketStages::~PacketStages() {
  for (KeptPackets& kept : kept_) {
    kept.take_all([this](Packet* packet) { context_.frames.free(packet); });
  }
  for (Packet* packet : back_) {
    context_.frames.free(packet);
  }
}

bool PacketStages::run(std::span<Packet*> wave, std::span<Packet*> next, Nanoseconds now) {
  bool any = false;
  std::array<Packet*, Batch::limit> packets;
  std::array<std::uint8_t, Batch::limit> places;
  for (std::size_t stage = 0; stage < kept_.size(); ++stage) {
    if (context_.pipeline.stages[stage].packet == nullptr) {
      continue;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < wave.size(); ++i) {
      if (wave[i] != nullptr && wave[i]->stage == stage) {
        packets[count] = std::exchange(wave[i], nullptr);
        places[count++] = static_cast<std::uint8_t>(i);
      }
    }
    if (count != 0) {
      any |= process(stage, std::span(packets).first(count), next, places, now, false);
    }
  }
  return any;
}

void PacketStages::call(Nanoseconds now, bool last) {
  for (std::size_t stage = 0; stage < kept_.size(); ++stage) {
    if (kept_[stage].size() != 0) {
      process(stage, {}, {}, {}, now, last);
      if (last) {
        kept_[stage].take_all([this](Packet* packet) { drop(packet, drop::kept_at_end); });
        count_kept();
      }
    }
  }
}

std::size_t PacketStages::take_back(std::span<Packet*> out) {
  const std::size_t count = std::min(out.size(), back_.size());
  const auto end = back_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(back_.begin(), end, out.begin());
  back_.erase(back_.begin(), end);
  return count;
}

bool PacketStages::process(std::size_t stage, std::span<Packet*> packets, std::span<Packet*> next,
                           std::span<const std::uint8_t> places, Nanoseconds now, bool last) {
  for (Packet* packet : packets) {
    Key key;
    pull_up_and_parse(context_.frames, *packet, key);
  }
  Batch batch(packets, context_.state, context_.worker, now, kept_[stage], ended_, last);
  context_.pipeline.stages[stage].packet->process(batch);
  context_.stats.stages[stage].processed.add(packets.size());
  bool any = false;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Batch::Fate fate = batch.fate(i);
    if (fate.kind != Batch::Fate::Kind::keep && go_on(stage, packets[i], fate)) {
      next[places[i]] = packets[i];
      any = true;
    }
  }
  for (const Batch::Ended& ended : ended_) {
    if (go_on(stage, ended.packet, ended.fate)) {
      back_.push_back(ended.packet);
    }
  }
  ended_.clear();
  count_kept();
  return any;
}

bool PacketStages::go_on(std::size_t stage, Packet* packet, Batch::Fate fate) {
  const std::vector<std::uint8_t>& outputs = context_.pipeline.stages[stage].outputs;
  if (fate.kind == Batch::Fate::Kind::drop) {
    drop(packet, fate.number);
    return false;
  }
  if (fate.number >= outputs.size() || outputs[fate.number] == Pipeline::nowhere) {
    drop(packet, drop::unconnected);
    return false;
  }
  packet->stage = outputs[fate.number];
  return true;
}

void PacketStages::drop(Packet* packet, ReasonId reason) {
  context_.stats.drop(reason);
  context_.frames.free(packet);
}

void PacketStages::count_kept() {
  std::size_t kept = 0;
  for (const KeptPackets& stage : kept_) {
    kept += stage.size();
  }
  context_.stats.kept.set(kept);
}

}  // namespace weir
