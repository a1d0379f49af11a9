#pragma once
// Answers ARP requests and neighbour solicitations for hosts elsewhere in the network, so that they need not be flooded
// (RFC 826; RFC 4861, section 7.2.4).

#include <weir/flow/stage.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// Gets ARP and neighbour discovery. A question of a local host about one that is known, and elsewhere, becomes the
/// answer, in its own frame (output 0). What is about the network's gateway goes to that (output 2). The rest goes on
/// (output 1): questions about what is not known, whether an address is taken, solicitations that are not valid or do
/// not say their sender's Ethernet address. Who advertises an address that is another station's is dropped.
class AnswerStage final : public PacketStage {
 public:
  static constexpr std::uint16_t answered = 0;
  static constexpr std::uint16_t unanswered = 1;
  static constexpr std::uint16_t about_gateway = 2;

  explicit AnswerStage(const SwitchTables& tables) : tables_(tables) {}
  void process(Batch& batch) override;
  [[nodiscard]] unsigned outputs() const override { return 3; }

 private:
  void process(Batch& batch, std::size_t i);
  [[nodiscard]] bool answers_for(const Packet& packet, Vni vni, const Binding& binding) const;

  SwitchTables tables_;
};

}  // namespace weir::vswitch_internal
