#pragma once
// Answers ARP requests and neighbour solicitations for hosts elsewhere in the network, so that they need not be flooded
// (RFC 826; RFC 4861, section 7.2.4).

#include <map>

#include <weir/base/published.h>
#include <weir/flow/stage.h>
#include <weir/service/vswitch/switch_tables.h>

namespace weir::vswitch_internal {

/// The Ethernet addresses that are configured for IP addresses, and which network a question is asked in.
struct Bindings {
  std::map<AttachKey, Vni> attachments;
  std::map<VtepKey, MacAddress> macs;  ///< by network and IP address
};

/// Turns a question whose answer is configured into the answer (output 0), in its own frame. Others go on (output 1):
/// those that ask for what is not known, that look whether an address is taken, and solicitations that are not valid or
/// do not say their sender's Ethernet address.
class AnswerStage final : public PacketStage {
 public:
  explicit AnswerStage(Epochs& epochs) : bindings_(epochs, {}) {}
  void process(Batch& batch) override;
  [[nodiscard]] unsigned outputs() const override { return 2; }

  void set(Bindings bindings) { bindings_.publish(std::move(bindings)); }

 private:
  Published<Bindings> bindings_;
};

}  // namespace weir::vswitch_internal
