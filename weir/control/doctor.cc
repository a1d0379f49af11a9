#include <weir/control/doctor.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/base/nearest.h>
#include <weir/control/internal/interface_findings.h>
#include <weir/control/privileges.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

namespace weir {

namespace {

constexpr std::uint64_t frame_bytes = FramePool::buffer_bytes;

std::uint64_t number_in(const std::optional<std::string>& text) {
  std::uint64_t number = 0;
  for (const char c : text.value_or("")) {
    if (c < '0' || c > '9') {
      break;
    }
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

// One examination: each function looks at one subject.
class Examination {
 public:
  Examination(const Machine& machine, const NodeFile* file) : machine_(machine), file_(file) {
    for (const auto& port : file != nullptr ? std::span(file->ports) : std::span<const NodeFile::PortEntry>()) {
      ports_of_[port.device.kind].push_back(&port);
    }
  }

  std::vector<Finding> run() {
    kernel();
    tap();
    xdp();
    privileges();
    locked_memory();
    interfaces();
    mtus();
    control();
    huge_pages();
    processors();
    governors();
    clock_source();
    leftovers();
    return std::move(findings_);
  }

 private:
  // Without a file, everything is of interest, and nothing is a problem: nobody asked for it.
  [[nodiscard]] bool wanted(const char* kind) const { return file_ == nullptr || ports_of_.contains(kind); }
  [[nodiscard]] Finding::Kind if_wanted() const {
    return file_ == nullptr ? Finding::Kind::advice : Finding::Kind::problem;
  }
  [[nodiscard]] bool needs_interfaces() const { return wanted("tap") || wanted("xdp"); }

  void good(std::string subject, std::string found) {
    findings_.push_back({Finding::Kind::good, std::move(subject), std::move(found), {}});
  }
  void add(Finding::Kind kind, std::string subject, std::string found, std::string remedy) {
    findings_.push_back({kind, std::move(subject), std::move(found), std::move(remedy)});
  }

  void kernel() {
    const std::string release = machine_.read("proc/sys/kernel/osrelease").value_or("unknown");
    const std::uint64_t major = number_in(release);
    const std::size_t dot = release.find('.');
    const std::uint64_t minor = dot == std::string::npos ? 0 : number_in(release.substr(dot + 1));
    const auto at_least = [&](std::uint64_t a, std::uint64_t b) { return major > a || (major == a && minor >= b); };
    if (!at_least(5, 15)) {
      add(Finding::Kind::advice, "kernel", release, "Weir is tested on 5.15 and later");
    } else if (wanted("xdp") && !at_least(6, 6)) {
      add(Finding::Kind::advice, "kernel", fmt::format("{}: xdp: ports take no frames of several buffers", release),
          "6.6 or later, if an MTU is larger than 3,500 bytes");
    } else {
      good("kernel", release);
    }
  }

  void tap() {
    if (!wanted("tap")) {
      return;
    }
    if (std::filesystem::exists(machine_.root / "dev/net/tun")) {
      good("tap devices", "/dev/net/tun is there");
    } else {
      add(if_wanted(), "tap devices", "there is no /dev/net/tun", "modprobe tun");
    }
  }

  void xdp() {
    if (!wanted("xdp")) {
      return;
    }
    if (machine_.af_xdp) {
      good("AF_XDP", "the kernel has it");
    } else {
      add(if_wanted(), "AF_XDP", "the kernel makes no such sockets",
          "boot a kernel with CONFIG_XDP_SOCKETS, or use tap: ports");
    }
    if (machine_.read("proc/sys/net/core/bpf_jit_enable").value_or("1") == "0") {
      add(Finding::Kind::advice, "BPF compiler", "off: programs are interpreted", "sysctl net.core.bpf_jit_enable=1");
    }
  }

  void privileges() {
    if (!needs_interfaces()) {
      return;
    }
    std::vector<std::string> missing;
    for (const Privilege& needed : interface_privileges()) {
      const bool has = machine_.capabilities.has(needed.number) ||
                       // Before CAP_BPF there was CAP_SYS_ADMIN, which still includes it.
                       (needed.number == CAP_BPF && machine_.capabilities.has(CAP_SYS_ADMIN));
      const bool tap_needs = needed.number == CAP_NET_ADMIN;
      if (!has && needed.number != CAP_IPC_LOCK && (tap_needs || wanted("xdp"))) {
        missing.emplace_back(needed.name);
      }
    }
    if (missing.empty()) {
      good("privileges", "enough for network interfaces");
    } else {
      add(if_wanted(), "privileges", fmt::format("without {}", fmt::join(missing, ", ")), "run as root");
    }
  }

  void locked_memory() {
    if (!wanted("xdp")) {
      return;
    }
    // The frames are locked once for each port.
    const std::uint64_t ports = file_ != nullptr ? ports_of_.at("xdp").size() : 1;
    const std::uint64_t needed =
        (file_ != nullptr ? file_->options.frames : NodeOptions().frames) * frame_bytes * ports;
    if (machine_.capabilities.has(CAP_IPC_LOCK) || machine_.locked_memory >= needed) {
      good("locked memory", fmt::format("enough for {} MiB of frames", needed >> 20U));
    } else {
      add(if_wanted(), "locked memory",
          fmt::format("{} KiB may be locked, and the frames take {} MiB (all of them for each xdp: port)",
                      machine_.locked_memory >> 10U, needed >> 20U),
          "ulimit -l unlimited, LimitMEMLOCK=infinity in a systemd unit, or fewer frames");
    }
  }

  void interfaces() {
    if (file_ == nullptr || !ports_of_.contains("xdp")) {
      return;
    }
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(machine_.root / "sys/class/net", ignored)) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    for (const NodeFile::PortEntry* port : ports_of_.at("xdp")) {
      const std::string subject = fmt::format("port '{}'", port->name);
      const std::string& name = port->device.argument;
      if (std::ranges::find(names, name) == names.end()) {
        const std::vector<std::string_view> views(names.begin(), names.end());
        add(Finding::Kind::problem, subject,
            fmt::format("there is no interface '{}'{}", name, did_you_mean(name, views)),
            fmt::format("make it, or name one of: {}", fmt::join(names, ", ")));
        continue;
      }
      const std::string state = machine_.read("sys/class/net/" + name + "/operstate").value_or("unknown");
      if (state == "down") {
        add(Finding::Kind::advice, subject, fmt::format("{} is down", name), fmt::format("ip link set {} up", name));
      } else {
        good(subject, fmt::format("{} is there", name));
      }
      if (!machine_.interface) {
        continue;
      }
      if (const auto looked = machine_.interface(name); looked && *looked) {
        std::ranges::move(interface_findings(*port, **looked, file_->options), std::back_inserter(findings_));
      }
    }
  }

  // Only one node may have a control socket.
  void control() {
    if (file_ == nullptr || file_->control == "off" || !machine_.socket ||
        (file_->control.empty() && file_->options.name == NodeOptions().name)) {
      return;  // of nodes without a name, each gets a socket of its own
    }
    const std::filesystem::path path =
        file_->control.empty() ? control_path(file_->options.name) : std::filesystem::path(file_->control);
    if (machine_.socket(path) == SocketState::running) {
      add(Finding::Kind::problem, "control socket", fmt::format("{}: a running node has it", path.string()),
          "end that node, or give this one another name (node: NAME)");
    }
  }

  // A frame that one port takes must fit the others.
  void mtus() {
    std::map<std::uint64_t, std::vector<std::string>> ports;
    for (const char* kind : {"tap", "xdp"}) {
      for (const NodeFile::PortEntry* port :
           ports_of_.contains(kind) ? ports_of_.at(kind) : std::vector<const NodeFile::PortEntry*>()) {
        const auto option = port->device.options.find("mtu");
        const auto read = machine_.read("sys/class/net/" + port->device.argument + "/mtu");
        const std::uint64_t mtu = option != port->device.options.end() ? number_in(option->second)
                                  : read                               ? number_in(read)
                                                                       : 1500;
        ports[mtu].push_back(port->name);
      }
    }
    if (ports.size() < 2) {
      return;
    }
    std::vector<std::string> texts;
    for (const auto& [mtu, names] : ports) {
      texts.push_back(fmt::format("{} at {}", mtu, fmt::join(names, ", ")));
    }
    add(Finding::Kind::advice, "MTU", fmt::format("differs: {}", fmt::join(texts, "; ")),
        "larger packets cannot leave by the smaller ports; set one MTU with 'ip link set NAME mtu N'");
  }

  void huge_pages() {
    const std::uint64_t free = number_in(machine_.read("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"));
    const std::uint64_t needed =
        ((file_ != nullptr ? file_->options.frames : NodeOptions().frames) * frame_bytes + (2U << 20U) - 1) >> 21U;
    if (free >= needed) {
      good("huge pages", fmt::format("{} are free; the frames take {}", free, needed));
    } else {
      add(Finding::Kind::advice, "huge pages", fmt::format("{} are free; the frames would take {}", free, needed),
          fmt::format("sysctl vm.nr_hugepages={} saves look-ups of addresses", needed));
    }
    const std::string transparent = machine_.read("sys/kernel/mm/transparent_hugepage/enabled").value_or("");
    if (transparent.find("[never]") != std::string::npos) {
      add(Finding::Kind::advice, "transparent huge pages", "never: the rule cache gets none",
          "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    }
  }

  void processors() {
    const unsigned workers = file_ != nullptr ? file_->options.workers : 1;
    if (workers > machine_.processors) {
      add(Finding::Kind::advice, "processors",
          fmt::format("{} for {} workers: they run unpinned and wait for each other", machine_.processors, workers),
          fmt::format("workers: {{count: {}}}", machine_.processors));
      return;
    }
    if (machine_.read("sys/devices/system/cpu/isolated").value_or("").empty()) {
      add(Finding::Kind::advice, "processors",
          fmt::format("{}, none isolated: other programs interrupt the workers", machine_.processors),
          "boot with isolcpus=..., and give the node those with taskset, where latency matters");
    } else {
      good("processors", fmt::format("{} for {} workers, some isolated", machine_.processors, workers));
    }
  }

  void governors() {
    std::set<std::string> governors;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(machine_.root / "sys/devices/system/cpu", ignored)) {
      if (const auto governor = machine_.read("sys/devices/system/cpu/" + entry.path().filename().string() +
                                              "/cpufreq/scaling_governor")) {
        governors.insert(*governor);
      }
    }
    if (governors.empty() || governors == std::set<std::string>{"performance"}) {
      good("clock rate", governors.empty() ? "not managed by this kernel" : "performance");
    } else {
      add(Finding::Kind::advice, "clock rate", fmt::format("managed by {}", fmt::join(governors, ", ")),
          "cpupower frequency-set -g performance");
    }
  }

  void clock_source() {
    const std::string source =
        machine_.read("sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("unknown");
    if (source == "tsc" || source == "kvm-clock" || source == "arch_sys_counter" ||
        source.starts_with("hyperv_clocksource_tsc")) {
      good("clock", source);
    } else {
      add(Finding::Kind::advice, "clock", fmt::format("{}: each look at it is a system call", source),
          "boot with clocksource=tsc, if the processor's is stable");
    }
  }

  void leftovers() {
    const char* const remedy = "weir doctor --repair";
    for (const std::string& line : machine_.left.offloads) {
      add(Finding::Kind::advice, "left behind", line, remedy);
    }
    for (const auto& path : machine_.left.sockets) {
      add(Finding::Kind::advice, "left behind",
          fmt::format("the control socket {} of a node that was killed", path.string()), remedy);
    }
    if (machine_.left.offloads.empty() && machine_.left.sockets.empty()) {
      good("left behind", "nothing, by nodes that were killed");
    }
  }

  const Machine& machine_;
  const NodeFile* file_;
  std::map<std::string, std::vector<const NodeFile::PortEntry*>> ports_of_;  // by kind of device
  std::vector<Finding> findings_;
};

}  // namespace

Machine Machine::here() {
  Machine machine;
  const int socket = ::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  machine.af_xdp = socket >= 0 || errno != EAFNOSUPPORT;
  if (socket >= 0) {
    close(socket);
  }
  if (const auto status = machine.read("proc/self/status")) {
    const std::size_t at = status->find("CapEff:");
    machine.capabilities =
        Capabilities(at == std::string::npos ? 0 : std::strtoull(status->c_str() + at + 7, nullptr, 16));
  }
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  machine.locked_memory = limit.rlim_cur;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    machine.processors = static_cast<unsigned>(CPU_COUNT(&allowed));
  }
  machine.left = Leftovers::find();
  machine.interface = look_at_interface;
  machine.socket = control_socket_state;
  return machine;
}

std::optional<std::string> Machine::read(std::string_view path) const {
  std::ifstream file(root / path);
  if (!file) {
    return std::nullopt;
  }
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) {
    return std::nullopt;
  }
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text;
}

std::vector<Finding> examine(const Machine& machine, const NodeFile* file) { return Examination(machine, file).run(); }

}  // namespace weir
