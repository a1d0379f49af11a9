#include <weir/device/internal/xdp_program.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

namespace weir::device_internal {

namespace {

// What a process that has just ended held is given free with a delay: so long it is waited for.
constexpr int tries = 50;
constexpr auto between_tries = std::chrono::milliseconds(10);

/// A link between program and interface, with errno if there is none.
Descriptor link_up(int program, unsigned index, unsigned flags) {
  bpf_link_create_opts options{};
  options.sz = sizeof options;
  options.flags = flags;
  for (int i = 1;; ++i) {
    const int link = bpf_link_create(program, static_cast<int>(index), BPF_XDP, &options);
    if (link >= 0 || (errno != EBUSY && errno != EEXIST) || i == tries) {
      return Descriptor(link >= 0 ? link : -1);
    }
    std::this_thread::sleep_for(between_tries);
  }
}

std::unexpected<Error> not_attached(const Link& link, int reason) {
  if (reason == EBUSY || reason == EEXIST) {
    std::string number;
    if (auto netlink = Netlink::open()) {
      if (const auto now = netlink->link(link.index); now && *now && (*now)->xdp_program != 0) {
        number = fmt::format(" (number {})", (*now)->xdp_program);
      }
    }
    return error(
        "{0} is used by another XDP program{1}; end the process that attached it, or detach it: "
        "ip link set dev {0} xdp off",
        link.name, number);
  }
  return error("no XDP program can be attached to {}: {}", link.name, std::strerror(reason));
}

}  // namespace

void XdpProgram::Close::operator()(bpf_object* object) const { bpf_object__close(object); }

XdpProgram::XdpProgram(XdpProgram&& other) noexcept = default;

XdpProgram::~XdpProgram() = default;

Result<XdpProgram> XdpProgram::load(const Link& link, unsigned queues, bool frags) {
  XdpProgram made;
  made.frags_ = frags;
  made.object_.reset(bpf_object__open_mem(xdp_port_object.data(), xdp_port_object.size(), nullptr));
  bpf_object* object = made.object_.get();
  if (object == nullptr) {
    return error("the XDP program of ports cannot be read: {}", std::strerror(errno));
  }
  bpf_program* program = bpf_object__find_program_by_name(object, frags ? "weir_port_frags" : "weir_port");
  bpf_program__set_autoload(bpf_object__find_program_by_name(object, frags ? "weir_port" : "weir_port_frags"), false);
  bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "sockets"), queues);
  if (bpf_object__load(object) != 0) {
    const int reason = errno;
    return error("the XDP program of {} cannot be loaded: {}{}", link.name, std::strerror(reason),
                 reason == EPERM ? "; give CAP_BPF and CAP_NET_ADMIN, or run as root" : "");
  }
  made.program_ = bpf_program__fd(program);
  made.sockets_ = bpf_object__find_map_fd_by_name(object, "sockets");
  made.unclaimed_ = bpf_object__find_map_fd_by_name(object, "unclaimed");
  return made;
}

Result<XdpProgram> XdpProgram::attach(const Link& link, unsigned queues, XdpMode mode) {
  libbpf_set_print(nullptr);  // what fails is told by errors, not on standard error
  std::string why_generic;
  int reason = 0;
  const auto attempt = [&](bool native, bool frags) -> Result<XdpProgram> {
    auto program = load(link, queues, frags);
    if (!program) {
      return program;
    }
    program->link_ = link_up(program->program_, link.index, native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
    reason = program->link_ ? 0 : errno;
    program->native_ = native;
    program->why_generic_ = native ? "" : why_generic;
    return program;
  };
  std::vector<bool> modes;
  if (mode != XdpMode::generic) {
    modes.push_back(true);
  }
  if (mode != XdpMode::native) {
    modes.push_back(false);
  }
  for (const bool native : modes) {
    for (const bool frags : {true, false}) {
      auto program = attempt(native, frags);
      if (!program && !frags) {
        return program;
      }
      if (program && program->link_) {
        return program;
      }
      if (reason == EBUSY || reason == EEXIST) {
        return not_attached(link, reason);
      }
    }
    why_generic = std::strerror(reason);
  }
  if (mode == XdpMode::native) {
    return error("{} takes no XDP program in its driver: {}; leave out mode=native", link.name, std::strerror(reason));
  }
  return not_attached(link, reason);
}

Result<> XdpProgram::claim(unsigned queue, int socket) {
  if (bpf_map_update_elem(sockets_, &queue, &socket, BPF_ANY) != 0) {
    return error("queue {} cannot be claimed: {}", queue, std::strerror(errno));
  }
  return {};
}

std::uint64_t XdpProgram::unclaimed() const {
  const int cpus = libbpf_num_possible_cpus();
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(std::max(cpus, 1)));
  const std::uint32_t key = 0;
  std::uint64_t sum = 0;
  if (cpus > 0 && bpf_map_lookup_elem(unclaimed_, &key, counts.data()) == 0) {
    for (const std::uint64_t count : counts) {
      sum += count;
    }
  }
  return sum;
}

}  // namespace weir::device_internal
