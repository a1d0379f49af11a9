#include <weir/control/doctor.h>

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir {
namespace {

using ::testing::HasSubstr;

// A machine as it should be, in a folder that goes with the test.
class DoctorTest : public ::testing::Test {
 protected:
  DoctorTest() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-doctor-XXXXXX").string();
    machine_.root = mkdtemp(name.data());
    machine_.capabilities = Capabilities(~std::uint64_t{0});
    machine_.locked_memory = ~std::uint64_t{0};
    machine_.processors = 4;
    write("proc/sys/kernel/osrelease", "6.18.0");
    write("proc/sys/net/core/bpf_jit_enable", "1");
    write("dev/net/tun", "");
    write("sys/class/net/eth0/operstate", "up");
    write("sys/class/net/eth0/mtu", "1500");
    write("sys/class/net/eth1/operstate", "up");
    write("sys/class/net/eth1/mtu", "1500");
    write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "64");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    write("sys/devices/system/cpu/isolated", "2-3");
    write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
    file_.options.workers = 2;
  }
  ~DoctorTest() override { std::filesystem::remove_all(machine_.root); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((machine_.root / path).parent_path());
    std::ofstream(machine_.root / path) << text << "\n";
  }
  void port(const std::string& device) {
    NodeFile::PortEntry entry;
    entry.name = "p" + std::to_string(file_.ports.size());
    entry.device.kind = device.substr(0, device.find(':'));
    entry.device.argument = device.substr(device.find(':') + 1);
    file_.ports.push_back(entry);
  }
  // The finding about `subject`, or one without words.
  Finding about(const std::string& subject, bool with_file = true) {
    for (const Finding& finding : examine(machine_, with_file ? &file_ : nullptr)) {
      if (finding.subject == subject) {
        return finding;
      }
    }
    return {};
  }
  void expect_all_good() {
    for (const Finding& finding : examine(machine_, &file_)) {
      EXPECT_EQ(finding.kind, Finding::Kind::good) << finding.subject << ": " << finding.found;
    }
  }

  Machine machine_;
  NodeFile file_;
};

TEST_F(DoctorTest, FindsNothingOnAGoodMachine) {
  port("tap:tap0");
  port("xdp:eth0");
  expect_all_good();
}

struct Fault {
  const char* description;
  void (*make)(Machine&);
  const char* path;  // or what to write where
  const char* text;
  const char* subject;
  Finding::Kind kind;
  const char* remedy;
};

TEST_F(DoctorTest, NamesEachFaultAndItsRemedy) {
  port("tap:tap0");
  port("xdp:eth0");
  using Kind = Finding::Kind;
  const auto nothing = [](Machine&) {};
  for (const Fault& c : std::initializer_list<Fault>{
           {"an old kernel", nothing, "proc/sys/kernel/osrelease", "5.4.0", "kernel", Kind::advice, "5.15"},
           {"one without frames of several buffers", nothing, "proc/sys/kernel/osrelease", "6.1.0-18-amd64", "kernel",
            Kind::advice, "6.6 or later"},
           {"no AF_XDP", [](Machine& m) { m.af_xdp = false; }, "", "", "AF_XDP", Kind::problem, "CONFIG_XDP_SOCKETS"},
           {"no compiler", nothing, "proc/sys/net/core/bpf_jit_enable", "0", "BPF compiler", Kind::advice, "=1"},
           {"no privileges", [](Machine& m) { m.capabilities = {}; }, "", "", "privileges", Kind::problem, "as root"},
           {"little memory",
            [](Machine& m) {
              m.capabilities = m.capabilities & Capabilities(~(std::uint64_t{1} << 14U));
              m.locked_memory = 8 << 20U;
            },
            "", "", "locked memory", Kind::problem, "ulimit -l"},
           {"an interface that is down", nothing, "sys/class/net/eth0/operstate", "down", "port 'p1'", Kind::advice,
            "ip link set eth0 up"},
           {"two MTUs", nothing, "sys/class/net/eth0/mtu", "9000", "MTU", Kind::advice, "one MTU"},
           {"no huge pages", nothing, "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0", "huge pages",
            Kind::advice, "vm.nr_hugepages=32"},
           {"no transparent ones", nothing, "sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]",
            "transparent huge pages", Kind::advice, "madvise"},
           {"one processor", [](Machine& m) { m.processors = 1; }, "", "", "processors", Kind::advice, "count: 1"},
           {"none isolated", nothing, "sys/devices/system/cpu/isolated", "", "processors", Kind::advice, "isolcpus"},
           {"saving power", nothing, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave", "clock rate",
            Kind::advice, "performance"},
           {"a slow clock", nothing, "sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet", "clock",
            Kind::advice, "clocksource=tsc"}}) {
    SCOPED_TRACE(c.description);
    const Machine before = machine_;
    std::string old;
    c.make(machine_);
    if (c.path[0] != 0) {
      old = *machine_.read(c.path);
      write(c.path, c.text);
    }
    const Finding finding = about(c.subject);
    EXPECT_EQ(finding.kind, c.kind) << finding.found;
    EXPECT_THAT(finding.remedy, HasSubstr(c.remedy));
    machine_ = before;
    if (c.path[0] != 0) {
      write(c.path, old);
    }
  }
  expect_all_good();
}

TEST_F(DoctorTest, AnInterfaceThatIsNotThereHasANeighbour) {
  port("xdp:eht0");
  const Finding finding = about("port 'p0'");
  EXPECT_EQ(finding.kind, Finding::Kind::problem);
  EXPECT_THAT(finding.found, HasSubstr("did you mean 'eth0'"));
  EXPECT_THAT(finding.remedy, HasSubstr("eth0, eth1"));
}

TEST_F(DoctorTest, WhatAFileDoesNotUseIsNoProblem) {
  machine_.af_xdp = false;
  machine_.capabilities = {};
  std::filesystem::remove(machine_.root / "dev/net/tun");
  port("memory:");
  for (const Finding& finding : examine(machine_, &file_)) {
    EXPECT_NE(finding.kind, Finding::Kind::problem) << finding.subject;
  }
  for (const Finding& finding : examine(machine_, nullptr)) {
    EXPECT_NE(finding.kind, Finding::Kind::problem) << finding.subject;
  }
  EXPECT_EQ(about("tap devices", false).kind, Finding::Kind::advice);
}

// What is said of port p0 on eth0 when the interface is as `state` has it.
class DoctorInterfaceTest : public DoctorTest {
 protected:
  DoctorInterfaceTest() {
    port("xdp:eth0");
    state_.mtu = 1500;
    machine_.interface = [this](const std::string&) { return std::optional(state_); };
  }
  // The finding with `words`, or one without any.
  Finding saying(const std::string& words) {
    for (const Finding& finding : examine(machine_, &file_)) {
      if (finding.found.find(words) != std::string::npos) {
        EXPECT_EQ(finding.subject, "port 'p0'");
        return finding;
      }
    }
    return {};
  }

  InterfaceState state_;
};

TEST_F(DoctorInterfaceTest, SaysWhatIsInTheWay) {
  using Kind = Finding::Kind;
  struct Case {
    const char* description;
    void (*make)(InterfaceState&, NodeFile&);
    const char* words;
    Kind kind;
    const char* remedy;
  };
  const auto veth = [](const char* unreachable, unsigned mtu) {
    return FarEndState{"vb0", mtu, unreachable, {"tx-checksum-ipv4 off"}, "ethtool -K vb0 tx off"};
  };
  state_.receive_queues = 2;
  expect_all_good();
  for (const Case& c : std::initializer_list<Case>{
           {"a program of a process",
            [](InterfaceState& s, NodeFile&) { s.xdp_program = 7, s.xdp_holder = "weir (process 12)"; },
            "used by XDP program 7 of weir (process 12)", Kind::problem, "end that process"},
           {"a program of nobody", [](InterfaceState& s, NodeFile&) { s.xdp_program = 7; }, "used by XDP program 7",
            Kind::problem, "ip link set dev eth0 xdp off"},
           {"more queues than there are frames for", [](InterfaceState& s, NodeFile&) { s.receive_queues = 65; },
            "65 queues, which need 16640 frames; the node has 16384", Kind::problem, "frames: 16640"},
           {"a ring that is too long for them",
            [](InterfaceState&, NodeFile& f) { f.ports[0].device.options["ring"] = "4096"; },
            "2 queues, which need 32768 frames", Kind::problem, "frames: 32768"},
           {"fewer queues than workers", [](InterfaceState& s, NodeFile&) { s.receive_queues = 1; },
            "1 queue(s) for 2 workers", Kind::advice, "ethtool -L eth0 combined 2"},
           {"tags that are always taken off", [](InterfaceState& s, NodeFile&) { s.offloads_fixed = "fixed on"; },
            "eth0: fixed on", Kind::problem, "another interface"},
           {"LRO", [](InterfaceState& s, NodeFile&) { s.receive_offload = true; }, "(LRO)", Kind::advice, "lro off"},
       }) {
    SCOPED_TRACE(c.description);
    const InterfaceState before = state_;
    const NodeFile file_before = file_;
    c.make(state_, file_);
    const Finding finding = saying(c.words);
    EXPECT_EQ(finding.kind, c.kind) << finding.found;
    EXPECT_THAT(finding.remedy, HasSubstr(c.remedy));
    state_ = before;
    file_ = file_before;
  }
  state_.far_end = veth("no way there", 1500);
  EXPECT_EQ(saying("offloads of its far end vb0 cannot be set: no way there").kind, Kind::problem);
  EXPECT_THAT(saying("no way there").remedy, HasSubstr("ethtool -K vb0 tx off ; then write far_end=prepared"));
  file_.ports[0].device.options["far_end"] = "prepared";
  expect_all_good();
  state_.far_end = veth("", 9000);
  EXPECT_EQ(saying("set at its far end vb0 while the port is open: tx-checksum-ipv4 off").kind, Kind::good);
  EXPECT_EQ(saying("eth0 has MTU 1500, and its far end vb0 9000").kind, Kind::advice);
}

TEST_F(DoctorTest, NamesWhatWasLeft) {
  machine_.left = {{"offload settings of vb0 were left changed"}, {"/run/weir/edge.sock"}};
  std::vector<std::string> found;
  for (const Finding& finding : examine(machine_, nullptr)) {
    if (finding.subject == "left behind") {
      EXPECT_EQ(finding.kind, Finding::Kind::advice);
      EXPECT_EQ(finding.remedy, "weir doctor --repair");
      found.push_back(finding.found);
    }
  }
  EXPECT_THAT(found, ::testing::ElementsAre(HasSubstr("of vb0 were left"), HasSubstr("/run/weir/edge.sock")));
}

TEST_F(DoctorTest, ASocketThatARunningNodeHasIsAProblem) {
  SocketState state = SocketState::running;
  machine_.socket = [&](const std::filesystem::path& path) {
    EXPECT_EQ(path.filename(), "edge.sock");
    return state;
  };
  EXPECT_EQ(about("control socket").subject, "") << "nodes without a name have one each";
  file_.options.name = "edge";
  EXPECT_EQ(about("control socket").kind, Finding::Kind::problem);
  state = SocketState::left;
  EXPECT_EQ(about("control socket").subject, "");
}

TEST(Doctor, LooksAtThisMachine) {
  const Machine machine = Machine::here();
  EXPECT_GE(machine.processors, 1U);
  EXPECT_TRUE(machine.read("proc/self/status"));
  EXPECT_FALSE(machine.read("proc/self/not-there"));
  EXPECT_FALSE(examine(machine, nullptr).empty());
}

}  // namespace
}  // namespace weir
