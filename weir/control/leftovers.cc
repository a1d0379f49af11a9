#include <weir/control/leftovers.h>

#include <weir/control/control_socket.h>
#include <weir/device/offload_record.h>

namespace weir {

Leftovers Leftovers::find() { return {left_offloads(), left_control_sockets()}; }

Repair repair_leftovers() {
  UndoneOffloads undone = undo_left_offloads();
  Repair repair{std::move(undone.done), std::move(undone.failed)};
  for (const auto& path : left_control_sockets()) {
    if (const auto removed = remove_left_socket(path)) {
      repair.done.push_back(
          fmt::format("the control socket {}, left by a node that was killed, is removed", path.string()));
    } else {
      repair.failed.push_back(removed.error().message);
    }
  }
  return repair;
}

}  // namespace weir
