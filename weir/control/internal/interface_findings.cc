#include <weir/control/internal/interface_findings.h>

#include <algorithm>
#include <charconv>

#include <fmt/ranges.h>

namespace weir {

namespace {

// As the port has it (device/xdp.h): the fewest entries of a ring, and its share of the pool.
constexpr std::uint64_t smallest_ring = 64;
constexpr std::uint64_t share_of_pool = 4;

class InterfaceExamination {
 public:
  InterfaceExamination(const NodeFile::PortEntry& port, const InterfaceState& state, const NodeOptions& options)
      : port_(port), state_(state), options_(options), name_(port.device.argument) {}

  std::vector<Finding> run() {
    program();
    queues();
    offloads();
    if (state_.far_end) {
      far_end(*state_.far_end);
    }
    return std::move(findings_);
  }

 private:
  void add(Finding::Kind kind, std::string found, std::string remedy) {
    findings_.push_back({kind, fmt::format("port '{}'", port_.name), std::move(found), std::move(remedy)});
  }
  [[nodiscard]] std::string option(const char* key) const {
    const auto place = port_.device.options.find(key);
    return place == port_.device.options.end() ? std::string() : place->second;
  }

  void program() {
    if (state_.xdp_program == 0) {
      return;
    }
    const bool held = !state_.xdp_holder.empty();
    add(Finding::Kind::problem,
        fmt::format("{} is used by XDP program {}{}{}", name_, state_.xdp_program, held ? " of " : "",
                    state_.xdp_holder),
        held ? "end that process, or use another interface"
             : fmt::format("end what attached it, or detach it: ip link set dev {} xdp off", name_));
  }

  void queues() {
    std::uint64_t ring = smallest_ring;
    const std::string wanted = option("ring");
    std::from_chars(wanted.data(), wanted.data() + wanted.size(), ring);
    const std::uint64_t needed = std::max(ring, smallest_ring) * state_.receive_queues * share_of_pool;
    if (needed > options_.frames) {
      add(Finding::Kind::problem,
          fmt::format("{} has {} queues, which need {} frames; the node has {}", name_, state_.receive_queues, needed,
                      options_.frames),
          fmt::format("frames: {}, or fewer queues: ethtool -L {} combined 1", needed, name_));
    } else if (state_.receive_queues < options_.workers) {
      add(Finding::Kind::advice,
          fmt::format("{} has {} queue(s) for {} workers, so packets pass from one worker to another", name_,
                      state_.receive_queues, options_.workers),
          fmt::format("ethtool -L {} combined {}, where the driver can", name_, options_.workers));
    }
  }

  void offloads() {
    if (!state_.offloads_fixed.empty()) {
      add(Finding::Kind::problem, fmt::format("{}: {}", name_, state_.offloads_fixed),
          "use another interface: frames would arrive without their VLAN tags");
    } else if (!state_.offloads.empty()) {
      add(Finding::Kind::good,
          fmt::format("{}: set while the port is open: {}", name_, fmt::join(state_.offloads, ", ")), {});
    }
    if (state_.receive_offload) {
      add(Finding::Kind::advice,
          fmt::format("{} merges received segments (LRO), with which drivers take no XDP", name_),
          fmt::format("ethtool -K {} lro off", name_));
    }
  }

  void far_end(const FarEndState& end) {
    const std::string far = end.name.empty() ? std::string("its far end") : "its far end " + end.name;
    if (!end.unreachable.empty()) {
      if (option("far_end").empty()) {
        add(Finding::Kind::problem, fmt::format("{}: offloads of {} cannot be set: {}", name_, far, end.unreachable),
            fmt::format("run there: {} ; then write far_end=prepared", end.command));
      }
    } else if (!end.offloads.empty()) {
      add(Finding::Kind::good,
          fmt::format("{}: set at {} while the port is open: {}", name_, far, fmt::join(end.offloads, ", ")), {});
    }
    if (end.mtu != 0 && end.mtu != state_.mtu) {
      add(Finding::Kind::advice, fmt::format("{} has MTU {}, and {} {}", name_, state_.mtu, far, end.mtu),
          fmt::format("frames longer than {} are lost: give both one MTU", std::min(end.mtu, state_.mtu)));
    }
  }

  const NodeFile::PortEntry& port_;
  const InterfaceState& state_;
  const NodeOptions& options_;
  const std::string& name_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> interface_findings(const NodeFile::PortEntry& port, const InterfaceState& state,
                                        const NodeOptions& options) {
  return InterfaceExamination(port, state, options).run();
}

}  // namespace weir
