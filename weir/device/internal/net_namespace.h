#pragma once
// Network namespaces other than one's own: finding them, and working in them.

#include <cstdint>
#include <functional>

#include <weir/base/descriptor.h>
#include <weir/base/error.h>

namespace weir::device_internal {

/// What tells a network namespace from all others that exist at the same time (namespaces(7)). A number may be used
/// again after the namespace has ended.
struct NamespaceId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const NamespaceId&) const = default;
};

/// That of the namespace `descriptor` stands for.
NamespaceId namespace_id(int descriptor);

/// The calling thread's own; no descriptor if /proc is not there.
Descriptor own_namespace();

/// The first namespace that `is_it` says yes to, among the calling thread's own, those with a name (/run/netns) and
/// those that a process is in, as far as this process may see them; no descriptor if there is none.
Descriptor find_namespace(const std::function<bool(int descriptor)>& is_it);

/// Runs `work` in the namespace: on a thread made for it, or on the caller's if that is there already. An error if this
/// process may not go there.
Result<> in_namespace(int descriptor, const std::function<Result<>()>& work);

}  // namespace weir::device_internal
