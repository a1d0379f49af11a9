#pragma once
// The two kinds of stages that a graph is made of.

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/flow/flow.h>
#include <weir/packet/packet.h>

namespace weir {

/// Decides per flow. `decide` runs for the first packet of a flow and whenever what it depended on has changed; it may
/// be called by several workers at once and changes state only through the flow.
class FlowStage {
 public:
  virtual ~FlowStage() = default;
  [[nodiscard]] virtual Verdict decide(Flow& flow) const = 0;
};

/// A stage from a function `Verdict(Flow&)`.
template <std::invocable<Flow&> F>
class FunctionStage final : public FlowStage {
 public:
  explicit FunctionStage(F function) : decide_(std::move(function)) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override { return decide_(flow); }

 private:
  F decide_;
};

/// A packet that a stage keeps: a number that means something to that stage on that worker only.
struct KeptPacket {
  std::uint32_t number = 0;
};

/// What one stage keeps on one worker. For engines; a stage sees it through its Batch.
class KeptPackets {
 public:
  explicit KeptPackets(unsigned limit) : slots_(limit), free_(limit) { std::iota(free_.rbegin(), free_.rend(), 0U); }

  [[nodiscard]] std::size_t size() const { return slots_.size() - free_.size(); }
  std::optional<KeptPacket> put(Packet* packet) {
    if (free_.empty()) {
      return std::nullopt;
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    slots_[number] = packet;
    return KeptPacket{number};
  }
  /// nullptr if it is not kept.
  [[nodiscard]] Packet* get(KeptPacket kept) const {
    return kept.number < slots_.size() ? slots_[kept.number] : nullptr;
  }
  Packet* take(KeptPacket kept) {
    Packet* packet = get(kept);
    if (packet != nullptr) {
      slots_[kept.number] = nullptr;
      free_.push_back(kept.number);
    }
    return packet;
  }
  /// Calls take(Packet*) for each, which takes it over.
  template <class Take>
  void take_all(Take take_over) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != nullptr) {
        take_over(take({i}));
      }
    }
  }

 private:
  std::vector<Packet*> slots_;
  std::vector<std::uint32_t> free_;
};

/// Packets on their way through a packet stage. Every packet goes on to output 0 unless the stage says otherwise.
class Batch {
 public:
  /// The most packets of one batch.
  static constexpr std::size_t limit = 256;

  [[nodiscard]] std::size_t size() const { return packets_.size(); }
  /// Parsed: its layout and offsets are right. Valid until the stage returns.
  Packet& operator[](std::size_t i) { return *packets_[i]; }

  /// Number of the worker that runs the stage, below max_workers: an index for what is kept per worker.
  [[nodiscard]] unsigned worker() const { return worker_; }
  /// By the node's clock.
  [[nodiscard]] Nanoseconds now() const { return now_; }

  void drop(std::size_t i, const DropReason& reason) { decide(i, {Fate::Kind::drop, state_.reason(reason)}); }
  /// Packet `i` leaves by output `output` of the stage.
  void send(std::size_t i, std::uint16_t output) { decide(i, {Fate::Kind::send, output}); }

  // ---- Keeping packets back, for stages with a keep_limit ----

  /// Packet `i` stays with the stage until that hands it back or drops it, in this call or a later one on this worker.
  /// Nothing, and no change, if the stage keeps its limit (or this packet) already.
  std::optional<KeptPacket> keep(std::size_t i) {
    if (fates_[i].kind == Fate::Kind::keep) {
      return std::nullopt;
    }
    const auto kept = kept_.put(packets_[i]);
    if (kept) {
      fates_[i] = {Fate::Kind::keep, 0};
    }
    return kept;
  }
  /// nullptr if it is not kept any more.
  Packet* kept(KeptPacket kept) { return kept_.get(kept); }
  /// It leaves by `output`, after the packets of this batch and those handed back before. False if it is not kept.
  bool hand_back(KeptPacket kept, std::uint16_t output = 0) { return end(kept, {Fate::Kind::send, output}); }
  bool drop(KeptPacket kept, const DropReason& reason) { return end(kept, {Fate::Kind::drop, state_.reason(reason)}); }
  /// Whether this is the last call: nothing more will come. What the stage still keeps is dropped (kept_at_end).
  [[nodiscard]] bool last() const { return last_; }

  // ---- For the engine ----

  struct Fate {
    enum class Kind : std::uint8_t { send, drop, keep };
    Kind kind;
    std::uint16_t number;  ///< output or reason
  };
  struct Ended {
    Packet* packet;
    Fate fate;
  };
  /// `ended` gets the packets that were kept and are no more.
  Batch(std::span<Packet*> packets, State& state, unsigned worker, Nanoseconds now, KeptPackets& kept,
        std::vector<Ended>& ended, bool last = false)
      : packets_(packets), state_(state), worker_(worker), now_(now), kept_(kept), ended_(ended), last_(last) {
    std::fill_n(fates_.begin(), packets.size(), Fate{Fate::Kind::send, 0});
  }
  [[nodiscard]] Fate fate(std::size_t i) const { return fates_[i]; }

 private:
  void decide(std::size_t i, Fate fate) {
    if (fates_[i].kind != Fate::Kind::keep) {  // else it is no longer of this batch
      fates_[i] = fate;
    }
  }
  bool end(KeptPacket kept, Fate fate) {
    Packet* packet = kept_.take(kept);
    if (packet != nullptr) {
      ended_.push_back({packet, fate});
    }
    return packet != nullptr;
  }

  std::span<Packet*> packets_;
  std::array<Fate, limit> fates_;  // the first size()
  State& state_;
  unsigned worker_;
  Nanoseconds now_;
  KeptPackets& kept_;
  std::vector<Ended>& ended_;
  bool last_;
};

/// Touches every packet. Several workers may call `process` at once, each with packets of its own.
class PacketStage {
 public:
  virtual ~PacketStage() = default;
  virtual void process(Batch& batch) = 0;
  /// Outputs, each of which must be connected.
  [[nodiscard]] virtual unsigned outputs() const { return 1; }
  /// The most packets that it keeps back at a time, on each worker. While it keeps any, `process` is also called
  /// between batches, with no packets, so that it can hand back those whose time has come. Frames are not unlimited: a
  /// node has 16,384 unless told otherwise.
  [[nodiscard]] virtual unsigned keep_limit() const { return 0; }
};

/// A stage's state that each worker has one of, so that packet stages need no lock.
template <class T>
class PerWorker {
 public:
  PerWorker() : values_(max_workers) {}
  T& operator[](unsigned worker) { return values_[worker].value; }

 private:
  struct alignas(64) Padded {
    T value{};
  };
  std::vector<Padded> values_;
};

}  // namespace weir
