#pragma once
// What a port changed in the offload settings of an interface, kept in a file until it is undone: settings do not go by
// themselves when a process is killed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/base/error.h>
#include <weir/packet/address.h>

namespace weir {

/// Where an interface is found.
struct InterfacePlace {
  std::uint64_t namespace_device = 0;  ///< what its network namespace is known by (namespaces(7))
  std::uint64_t namespace_inode = 0;
  unsigned index = 0;  ///< its number there

  bool operator==(const InterfacePlace&) const = default;
};

/// One interface, and its settings as they were found.
struct OffloadRecord {
  InterfacePlace place;
  std::optional<InterfacePlace>
      via;           ///< of a veth's far end: the end that is a port. The far end may be moved meanwhile.
  MacAddress mac;    ///< it is the same interface if it still has this address,
  std::string name;  ///< or this name and leads to `via`
  std::vector<std::pair<std::string, bool>> before;

  [[nodiscard]] std::string to_text() const;
  static Result<OffloadRecord> parse(std::string_view text);

  bool operator==(const OffloadRecord&) const = default;

  /// Where records lie. What is there does not outlive the machine's run, as the settings do not.
  static constexpr const char* default_folder = "/run/weir/offloads";
};

/// Makes the settings what they were. False if the interface is not there any more: then there is nothing to undo. It
/// is looked for in all network namespaces that this process can see and enter.
Result<bool> restore(const OffloadRecord& record);

/// What was made of the records that were left; a line each.
struct UndoneOffloads {
  std::vector<std::string> done;
  std::vector<std::string> failed;  ///< their records stay
};

/// Undoes what processes that are no more have left changed, and removes their records. Records of processes that still
/// run are left alone. Ports do this when they open; needs CAP_NET_ADMIN. Any thread.
UndoneOffloads undo_left_offloads(const std::string& folder = OffloadRecord::default_folder);

/// What `undo_left_offloads` would undo, a line for each interface. Changes nothing. Any thread.
std::vector<std::string> left_offloads(const std::string& folder = OffloadRecord::default_folder);

}  // namespace weir
