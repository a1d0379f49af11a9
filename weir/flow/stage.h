#pragma once
// The two kinds of stages that a graph is made of.

#include <concepts>
#include <functional>
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

/// Packets on their way through a packet stage. Every packet goes on to output 0 unless the stage says otherwise.
class Batch {
 public:
  Batch(std::span<Packet*> packets, State& state, unsigned worker)
      : packets_(packets), fates_(packets.size()), state_(state), worker_(worker) {}

  [[nodiscard]] std::size_t size() const { return packets_.size(); }
  /// Valid until the stage returns.
  Packet& operator[](std::size_t i) { return *packets_[i]; }

  /// Number of the worker that runs the stage, below max_workers: an index for what is kept per worker.
  [[nodiscard]] unsigned worker() const { return worker_; }

  void drop(std::size_t i, const DropReason& reason) { fates_[i] = {true, state_.reason(reason)}; }
  /// Packet `i` leaves by output `output` of the stage.
  void send(std::size_t i, std::uint16_t output) { fates_[i] = {false, output}; }

  struct Fate {
    bool dropped = false;
    std::uint16_t number = 0;  ///< reason or output
  };
  /// For the engine.
  [[nodiscard]] Fate fate(std::size_t i) const { return fates_[i]; }

 private:
  std::span<Packet*> packets_;
  std::vector<Fate> fates_;
  State& state_;
  unsigned worker_;
};

/// Touches every packet. Several workers may call `process` at once, each with packets of its own.
class PacketStage {
 public:
  virtual ~PacketStage() = default;
  virtual void process(Batch& batch) = 0;
  /// Outputs, each of which must be connected.
  [[nodiscard]] virtual unsigned outputs() const { return 1; }
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
