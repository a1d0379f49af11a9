#pragma once
// What readers of the kinds of policies share.

#include <weir/base/config.h>
#include <weir/service/firewall/policy.h>
#include <weir/service/firewall/read_policies.h>

namespace weir {

/// A policy while it is read: its key is there.
struct PolicyDraft {
  Policy policy;
  std::array<std::vector<std::string>, 2> rule_places;
};

// Each reads an object's `spec`, which is there, into the draft.

void read_network_policy(const Config& spec, PolicyDraft& draft, Names& names, Errors& errors);
/// Of both admin kinds.
void read_admin_policy(const Config& spec, PolicyDraft& draft, Names& names, Errors& errors);

/// A prefix such as 10.0.0.0/8; bits beyond its length are passed over, as Kubernetes does.
IpPrefix read_block(const Config& config, Errors& errors);
/// A port's number.
std::uint16_t read_port_number(const Config& config, Errors& errors);

}  // namespace weir
