#pragma once
// Running packet stages, which is the same in every engine: their code is the application's.

#include <span>
#include <vector>

#include <weir/engine/executor.h>

namespace weir {

/// The packet stages of one worker, and what they keep. One thread.
class PacketStages {
 public:
  explicit PacketStages(const ExecutorContext& context);
  /// Frees what is kept.
  ~PacketStages();
  PacketStages(const PacketStages&) = delete;
  PacketStages& operator=(const PacketStages&) = delete;

  /// Runs each stage that has packets in `wave`, in the order of stages, and takes those packets out. One that goes on
  /// stands at its old place in `next`, its stage set. Whether any does.
  bool run(std::span<Packet*> wave, std::span<Packet*> next, Nanoseconds now);

  /// Calls the stages that keep packets, then `run_handed_back()`, which is to take packets back and run them.
  template <class Run>
  void idle(Nanoseconds now, Run run_handed_back) {
    call(now, false);
    run_handed_back();
  }
  /// The same for the last time: nothing is kept afterwards.
  template <class Run>
  void finish(Nanoseconds now, Run run_handed_back) {
    do {
      call(now, true);
      run_handed_back();
    } while (context_.stats.kept.get() != 0);  // by a stage behind another
  }

  /// Moves packets that stages handed back to `out`, in order, their stage set; returns how many.
  std::size_t take_back(std::span<Packet*> out);

 private:
  void call(Nanoseconds now, bool last);
  bool process(std::size_t stage, std::span<Packet*> packets, std::span<Packet*> next,
               std::span<const std::uint8_t> places, Nanoseconds now, bool last);
  /// Whether the packet goes on; if not, it was dropped.
  bool go_on(std::size_t stage, Packet* packet, Batch::Fate fate);
  void drop(Packet* packet, ReasonId reason);
  void count_kept();

  ExecutorContext context_;
  std::vector<KeptPackets> kept_;  ///< by stage
  std::vector<Batch::Ended> ended_;
  std::vector<Packet*> back_;
};

}  // namespace weir
