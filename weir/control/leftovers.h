#pragma once
// What nodes that were killed have left on a machine. XDP programs, sockets and new tap interfaces go with their
// process; offload settings and the control socket's file stay.

#include <filesystem>
#include <string>
#include <vector>

namespace weir {

struct Leftovers {
  std::vector<std::string> offloads;           ///< a line each
  std::vector<std::filesystem::path> sockets;  ///< control sockets

  /// Those of this machine that this user can see. Changes nothing.
  static Leftovers find();
};

/// What was done about them, a line each, and what could not be.
struct Repair {
  std::vector<std::string> done;
  std::vector<std::string> failed;
};

/// Undoes what `Leftovers::find` would find now; nothing of nodes that run is touched. Any thread.
Repair repair_leftovers();

}  // namespace weir
