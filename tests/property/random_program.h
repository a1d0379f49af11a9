#pragma once
// Decision programs made at random: trees of reads, look-ups, rewrites and verdicts over a small world of state.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <weir/base/random.h>
#include <weir/flow/stage.h>
#include <weir/flow/update.h>

namespace weir::property {

/// A table's key: two fields, each hashed to a number or absent.
struct PairKey {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const PairKey&) const = default;
  auto operator<=>(const PairKey&) const = default;
};

/// The state that programs use.
struct World {
  explicit World(State& state);

  static constexpr unsigned kinds = 2;  ///< objects of each kind
  static constexpr unsigned stages = 9;
  /// From this one on, they are on delivery sides of ports, but may also be sent packets by those before.
  static constexpr unsigned first_delivery = 6;

  State& state;
  std::vector<Table<PairKey, std::uint32_t>*> tables;
  std::vector<Prefixes<NextHops>*> prefixes;
  std::vector<Classifier<std::uint32_t>*> classifiers;
  std::vector<Versioned<std::uint32_t>*> versioned;
  std::vector<Group*> groups;
  std::vector<Meter*> meters;
  std::vector<Counter*> counters;
  std::vector<const void*> stage_addresses;  ///< FlowStage or PacketStage
  std::vector<bool> stage_is_flow;
  /// Called once, when a program has reached a final verdict: a control update at the worst moment. Not where delivery
  /// may follow in another pass, or this is one: whether the first is decided or not, the next must find the same
  /// state.
  mutable std::function<void()> when_decided;
};

enum class Step : std::uint8_t {
  read,
  below,
  equals,
  multicast,
  inside,
  has,
  flags,
  ingress,
  egress,
  table,
  prefix,
  classify,
  version,
  learn,
  decrement_ttl,
  fits,
  set,
  push_vlan,
  pop_vlan,
  count,
  meter,
  mirror,
  every_packet,
  encapsulate,
  decapsulate,
  neighbour,
  pick,
  path_up,
  connection,
  output,
  flood,
  select,
  select_hops,
  drop,
  reject,
  next,
  to,
  to_host,
  resolve,
};

/// Which child of a node follows depends on what the step finds.
struct ProgramNode {
  Step step;
  FieldId field{};
  FieldId field2{};
  std::uint32_t number = 0;
  std::uint32_t child[2] = {0, 0};
};

struct Program {
  std::vector<ProgramNode> nodes;  ///< the first is the root
  [[nodiscard]] std::string to_string() const;
};

/// `stage`: the program's place; it sends packets only to later ones.
Program random_program(Random& random, unsigned stage);

/// Runs a program.
class ProgramStage final : public FlowStage {
 public:
  ProgramStage(const World& world, const Program& program) : world_(world), program_(program) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override;

 private:
  Verdict run(Flow& flow, bool& another_pass) const;

  const World& world_;
  const Program& program_;
};

/// Drops some packets, changes others, keeps a few back, and splits the rest over two outputs, by their bytes.
class Scrambler final : public PacketStage {
 public:
  void process(Batch& batch) override;
  [[nodiscard]] unsigned outputs() const override { return 2; }
  [[nodiscard]] unsigned keep_limit() const override { return 3; }

 private:
  struct Kept {
    std::deque<KeptPacket> packets;
    unsigned idle_calls = 0;
  };
  PerWorker<Kept> kept_;
};

}  // namespace weir::property
