#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <weir/base/counter.h>

namespace weir {

/// The most workers of one node.
inline constexpr unsigned max_workers = 64;

/// Packets and bytes that passed a `flow.count`. Each worker adds to its own line; reading sums them.
class Counter {
 public:
  explicit Counter(std::string name) : name_(std::move(name)), cells_(max_workers) {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// By worker `worker` alone.
  void add(unsigned worker, std::uint32_t bytes) {
    cells_[worker].packets.add();
    cells_[worker].bytes.add(bytes);
  }
  [[nodiscard]] std::uint64_t packets() const {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells_) {
      sum += cell.packets.get();
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const Cell& cell : cells_) {
      sum += cell.bytes.get();
    }
    return sum;
  }

 private:
  struct alignas(64) Cell {
    OwnedCounter packets;
    OwnedCounter bytes;
  };
  std::string name_;
  std::vector<Cell> cells_;
};

}  // namespace weir
