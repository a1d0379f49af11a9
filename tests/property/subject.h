#pragma once
// One instance under test: state, graph and executors of one kind, driven step by step.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "random_program.h"
#include "traffic.h"

#include <weir/engine/core/core_executor.h>
#include <weir/engine/reference/reference_executor.h>

namespace weir::property {

enum class Kind : std::uint8_t { cached, uncached, reference };

struct SubjectOptions {
  Kind kind = Kind::cached;
  std::uint32_t rule_cache = 256;
  std::size_t masks = RuleCache::mask_limit;
  Nanoseconds idle_timeout = 10'000'000'000;
  unsigned workers = 1;
  std::uint64_t seed = 1;
};

/// What can be compared between instances.
struct Observed {
  std::vector<std::vector<std::vector<std::uint8_t>>> out;  ///< by port, since the last look
  std::map<std::string, std::uint64_t> drops;
  std::vector<std::uint64_t> counters;
  std::uint64_t cloned = 0;
  std::uint64_t originated = 0;
  std::uint64_t consumed = 0;
  std::uint64_t waiting = 0;

  bool operator==(const Observed&) const = default;
  [[nodiscard]] std::string difference(const Observed& other) const;
};

class Subject {
 public:
  static constexpr unsigned ports = 4;  ///< port 3 is down; numbers beyond do not exist

  Subject(const SubjectOptions& options, std::vector<Program> programs);
  ~Subject();

  void process(unsigned worker, PortId port, const std::vector<Frame>& frames, Nanoseconds now);
  /// What a worker does after each batch. Packets handed back by the packet stage are looked up here.
  void idle(unsigned worker, Nanoseconds now);
  void apply(Update& update, Nanoseconds now);
  /// One packet; `update` takes effect when it has been decided, before a rule for it is installed.
  void process_during(unsigned worker, PortId port, const std::vector<Frame>& frames, Update& update, Nanoseconds now);

  [[nodiscard]] World& world() { return world_; }
  [[nodiscard]] State& state() { return *state_; }
  /// Outputs since the last call, and all counts.
  Observed observe();
  /// What a worker does when nothing more will come.
  void finish(Nanoseconds now);
  /// in + cloned + originated = out + dropped + consumed + held (I4).
  [[nodiscard]] bool accounted() const;
  /// What the tables hold, in a fixed order.
  [[nodiscard]] std::vector<std::pair<PairKey, std::uint32_t>> table_contents() const;
  [[nodiscard]] std::vector<std::pair<NeighbourKey, MacAddress>> neighbours() const;
  [[nodiscard]] std::uint64_t hits() const;
  [[nodiscard]] std::size_t masks() const;

 private:
  struct Worker {
    explicit Worker(FramePool& pool) : frames(pool) {}
    PacketCache frames;
    Outputs outputs;
    WorkerStats stats;
    std::unique_ptr<Executor> executor;
    CoreExecutor* core = nullptr;
  };

  void take_outputs(Worker& worker);

  Epochs epochs_;
  std::unique_ptr<State> state_;
  World world_;
  std::vector<Program> programs_;
  std::vector<std::unique_ptr<ProgramStage>> program_stages_;
  Scrambler scrambler_;
  Scrambler delivery_scrambler_;
  Pipeline pipeline_;
  PortTable port_table_;
  std::unique_ptr<FramePool> pool_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Epochs::Reader& reader_;
  std::vector<std::vector<std::vector<std::uint8_t>>> out_;
  std::uint64_t in_count_ = 0;
  std::uint64_t out_count_ = 0;
};

}  // namespace weir::property
