#pragma once
// All policies and endpoints, and which are about which: changed by what differs, so that a change costs what it
// touches.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/service/firewall/decide.h>
#include <weir/service/firewall/endpoint.h>
#include <weir/service/firewall/read_policies.h>

namespace weir {

/// The control side's picture. A change is drafted, which changes nothing, and then committed. One thread.
class PolicyModel {
 public:
  struct Endpoint {
    std::shared_ptr<const EndpointEntry> entry;  ///< the same object while it says the same
    IdentityPtr identity;
    PolicyListPtr policies;
  };

  /// What is to become different.
  struct Change {
    std::vector<ReadPolicy> policies{};    ///< added, or in place of those of the same keys
    std::vector<PolicyKey> removed{};      ///< those that are not there are passed over
    std::optional<Endpoints> endpoints{};  ///< in place of all
  };

  /// A change with all that follows from it. Holds until the model is changed.
  struct Draft {
    std::vector<ReadPolicy> policies;  ///< as asked for; those that say the same as before included, for their places
    std::vector<PolicyPtr> gone;       ///< removed or replaced
    std::vector<PolicyPtr> fresh;      ///< added or in place
    /// Those that differ in any way, as they will be; nothing: removed.
    std::map<EndpointKey, std::optional<Endpoint>> endpoints;

    /// Whether what is decided stays as it is.
    [[nodiscard]] bool empty() const { return gone.empty() && fresh.empty() && endpoints.empty(); }
  };

  explicit PolicyModel(Names& names) : names_(names) {}

  [[nodiscard]] Draft draft(Change change) const;
  void commit(Draft draft);

  [[nodiscard]] const std::map<PolicyKey, ReadPolicy>& policies() const { return policies_; }
  [[nodiscard]] const std::map<EndpointKey, Endpoint>& endpoints() const { return endpoints_; }
  /// nullptr if there is none.
  [[nodiscard]] const Endpoint* find(const EndpointKey& key) const;
  [[nodiscard]] const Endpoint* find(const IpAddress& address) const;

 private:
  class Lists;

  /// Calls visit(key, endpoint) for those that the policy is about.
  template <class Visit>
  void for_each_selected(const Policy& policy, Visit visit) const;
  [[nodiscard]] PolicyList list_for(const Identity& identity, const Draft& draft) const;
  void replace_endpoints(const Endpoints& wanted, Draft& draft, Lists& lists) const;
  void edit_lists(Draft& draft, Lists& lists) const;

  Names& names_;
  std::map<PolicyKey, ReadPolicy> policies_;
  std::set<PolicyPtr> everywhere_;                                // those of no namespace
  std::unordered_map<NameId, std::set<PolicyPtr>> by_namespace_;  // the others
  std::map<EndpointKey, Endpoint> endpoints_;
  std::map<IpAddress, EndpointKey> by_address_;
};

}  // namespace weir
