#pragma once
// The model as state that decisions read.

#include <deque>
#include <map>
#include <vector>

#include <weir/flow/update.h>
#include <weir/runtime/node.h>
#include <weir/service/firewall/firewall_stage.h>
#include <weir/service/firewall/policy_model.h>
#include <weir/service/service_context.h>

namespace weir {

/// Holds a slot for each endpoint, and the tables that lead to it. One thread.
class FirewallState {
 public:
  /// `addresses`: the most that endpoints have together.
  FirewallState(State& state, std::uint32_t addresses);

  [[nodiscard]] FirewallTables tables() const { return {addresses_, ports_}; }

  /// Records what makes the state what the drafted model is: only what differs, endpoint by endpoint. What was recorded
  /// counts once `update` was done.
  void record(const PolicyModel& model, const PolicyModel::Draft& draft, Update& update);
  /// Records who is behind each port, for `model` with the draft, after `record`. Those that are not there yet have no
  /// valid number and are passed over.
  void record_ports(const PolicyModel& model, const PolicyModel::Draft& draft, std::span<const ServicePort> ports,
                    bool check_sources, Update& update);

 private:
  struct Plan {
    std::map<EndpointKey, const EndpointSlot*> added;
    std::vector<EndpointKey> removed;
  };

  const EndpointSlot* new_slot();
  void record_addresses(const PolicyModel& model, const PolicyModel::Draft& draft, const Plan& plan, Update& update);
  [[nodiscard]] const EndpointSlot* slot_of(const EndpointKey& key, const Plan& plan) const;

  State& state_;
  Table<IpAddress, EndpointHandle>& addresses_;
  std::vector<Versioned<PortGuard>*> ports_;  ///< by number
  Versioned<std::uint64_t>& policy_changes_;  ///< for previews: nobody reads it
  Versioned<std::uint64_t>& endpoint_changes_;
  std::uint64_t changes_ = 0;
  std::deque<EndpointSlot> slots_;
  std::vector<const EndpointSlot*> free_;
  std::map<EndpointKey, const EndpointSlot*> used_;
  std::shared_ptr<Plan> plan_;  ///< of the latest `record`
};

}  // namespace weir
