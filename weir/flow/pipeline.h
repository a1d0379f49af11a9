#pragma once
// A validated graph, as engines run it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/flow/delivery.h>
#include <weir/flow/stage.h>

namespace weir {

struct Pipeline {
  static constexpr std::uint8_t nowhere = Deliveries::nowhere;
  /// Stages of one graph.
  static constexpr std::size_t stage_limit = 250;

  struct Node {
    std::string name;
    const FlowStage* flow = nullptr;  ///< one of the two
    PacketStage* packet = nullptr;
    std::vector<std::uint8_t> outputs;  ///< stage behind each output, or `nowhere`
  };

  std::vector<Node> stages;
  std::vector<std::uint8_t> entry;  ///< by port number: the stage its packets enter, or `nowhere`
  bool delivers = false;            ///< ports may have a delivery side (Deliveries)

  [[nodiscard]] std::uint8_t entry_of(PortId port) const {
    return port.number < entry.size() ? entry[port.number] : nowhere;
  }
};

}  // namespace weir
