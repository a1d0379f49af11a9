"""BFD sessions with BIRD, and the router's next hops that follow them."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from xdp_network import network, summary_of, until  # one of them is a fixture

pytestmark = pytest.mark.skipif(shutil.which("bird") is None, reason="needs bird (make setup-peers)")

NODE = """
weir: 1
workers: {count: 2}  # packets of a session may be heard by another worker than its own
ports:
  left: {device: "xdp:left0", addresses: [10.1.0.1/24]}
  one:  {device: "xdp:one0", addresses: [10.2.0.1/24, "fd00:2::1/64"]}
  two:  {device: "xdp:two0", addresses: [10.3.0.1/24]}
services:
  router:
    bfd: {interval: %s, multiplier: 3}
    routes:
      10.9.0.0/24: {via: [10.2.0.10, 10.3.0.10]}
      "fd00:9::/64": {via: "fd00:2::10", bfd: %s}
control: %s
"""

BIRD = """
router id %s;
protocol device {}
protocol bfd {
  interface "eth0" { interval 300 ms; multiplier 3; };
  neighbor %s dev "eth0" local %s;
  %s
}
"""


class Bird:
    """A peer with BIRD, by its link to a port of the node's."""

    def __init__(self, network, folder, name, number, v6=False):
        self.network, self.name = network, name
        self.address, self.node = f"10.{number}.0.10", f"10.{number}.0.1"
        self.config, self.socket = folder / f"{name}.conf", folder / f"{name}.ctl"
        also = f'neighbor fd00:{number}::1 dev "eth0" local fd00:{number}::10;' if v6 else ""
        self.config.write_text(BIRD % (self.address, self.node, self.address, also))
        self.start()

    def start(self):
        self.process = self.network.start(self.name, "bird", "-f", "-c", self.config, "-s", self.socket,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def session(self, node=None):
        """What `birdc show bfd sessions` says of the session with the node: its columns."""
        shown = subprocess.run(["birdc", "-s", self.socket, "show", "bfd", "sessions"], capture_output=True, text=True,
                               timeout=10).stdout
        return next((line.split() for line in shown.splitlines() if line.split()[:1] == [node or self.node]), [])

    def state(self, node=None):
        return (self.session(node) + [""] * 3)[2]


class Watched:
    """alice -- node -- one and two, both of which have 10.9.0.1 and BIRD."""

    def __init__(self, network, folder):
        self.network, self.folder, self.control = network, folder, folder / "control"
        for name in ("node", "alice", "one", "two"):
            network.space(name)
        network.on("one", "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.default.disable_ipv6=0")
        for number, (host, port) in enumerate([("alice", "left0"), ("one", "one0"), ("two", "two0")], 1):
            network.pair("node", port, host, "eth0", address=f"02:00:00:00:00:0{number}")
            network.on(host, "ip", "address", "add", f"10.{number}.0.10/24", "dev", "eth0")
            network.on(host, "ip", "route", "add", "default", "via", f"10.{number}.0.1")
            network.on(host, "ip", "link", "set", "lo", "up")
        network.on("one", "ip", "-6", "address", "add", "fd00:2::10/64", "dev", "eth0", "nodad")
        for host in ("one", "two"):
            network.on(host, "ip", "address", "add", "10.9.0.1/32", "dev", "lo")
        self.birds = {"one": Bird(network, folder, "one", 2, v6=True), "two": Bird(network, folder, "two", 3)}
        self.write("300ms")
        self.log_path = folder / "weir.log"
        with open(self.log_path, "w") as log:
            self.process = network.start_weir("node", "run", folder / "node.yaml", "--json", stdout=subprocess.PIPE,
                                              stderr=log, text=True)

    def write(self, interval, v6="true"):
        (self.folder / "node.yaml").write_text(NODE % (interval, v6, self.control))

    def log(self):
        return self.log_path.read_text()

    def weir(self, *arguments):
        return self.network.on("node", os.environ["WEIR"], *arguments, "--control", self.control)

    def paths(self):
        services = json.loads(self.weir("show", "services", "--json").stdout)["services"]
        state = next(each["state"] for each in services if each["name"] == "router")
        return {path["address"]: path for path in state["paths"]}

    def is_up(self, name, address=None):
        """In both views."""
        bird = self.birds[name]
        path = self.paths()[address or bird.address]
        return path["up"] and "bfd" in path and path["bfd"]["state"] == path["bfd"]["remote_state"] == "up" and \
            bird.state("fd00:2::1" if address else None) == "Up"

    def all_up(self):
        until(lambda: self.control.exists() or self.process.poll() is not None, self.log())
        for name in self.birds:
            until(lambda n=name: self.is_up(n), f"the session with {name} is up: {self.log()}")

    def is_down(self, name, diagnostic):
        path = self.paths()[self.birds[name].address]
        return not path["up"] and path["bfd"]["state"] == "down" and path["bfd"]["diagnostic"] == diagnostic

    def all_flows_pass(self, flows=16):
        """Pings to 10.9.0.1 are answered, from so many sources."""
        for flow in range(flows):
            ping = self.network.on("alice", "ping", "-n", "-c", "1", "-W", "5", "-I", f"10.1.0.{100 + flow}", "10.9.0.1",
                                   check=False)
            assert ping.returncode == 0, f"flow {flow}: {ping.stdout}{ping.stderr}{self.paths()}{self.log()}"

    def stop(self):
        summary = summary_of(self.process, self.log)
        return {drop["reason"]: drop["packets"] for drop in summary["drops"]}


@pytest.fixture
def watched(network, tmp_path):
    made = Watched(network, tmp_path)
    for flow in range(16):
        network.on("alice", "ip", "address", "add", f"10.1.0.{100 + flow}/24", "dev", "eth0")
    made.all_up()
    return made


def test_sessions_come_up_in_both_families(watched):
    until(lambda: watched.is_up("one", "fd00:2::10"), "the session over IPv6 is up")
    watched.all_flows_pass()
    session = watched.paths()["10.2.0.10"]["bfd"]
    assert session["transmit_interval_ms"] == 300 and session["detection_time_ms"] == 900 and session["flaps"] == 0
    metrics = watched.network.on("node", "curl", "-s", "--unix-socket", watched.control,
                                 "http://localhost/metrics").stdout
    assert 'weir_router_bfd_sessions_up{node="node"} 3' in metrics
    drops = watched.stop()
    # Peers may have spoken before there were sessions.
    assert not {"bfd_malformed", "bfd_not_adjacent", "host_bad_checksum", "stage_error"} & drops.keys(), drops


def test_a_peer_that_is_killed_is_left_and_returns(watched):
    bird = watched.birds["one"]
    bird.kill()
    until(lambda: watched.is_down("one", "detection_expired"), "its silence is noticed")
    watched.network.on("one", "ip", "address", "del", "10.9.0.1/32", "dev", "lo")  # it answers no more, had it any
    watched.all_flows_pass()
    assert watched.birds["two"].state() == "Up"
    watched.network.on("one", "ip", "address", "add", "10.9.0.1/32", "dev", "lo")
    bird.start()
    until(lambda: watched.is_up("one"), "the session is up again")
    assert watched.paths()["10.2.0.10"]["bfd"]["flaps"] == 1
    watched.all_flows_pass()
    assert "the path to 10.2.0.10 over one is down" in watched.log()
    watched.stop()


def test_a_cut_link_is_left_and_returns(watched):
    watched.network.on("two", "ip", "link", "set", "eth0", "down")
    until(lambda: watched.is_down("two", "path_down"), "the cut is noticed")
    watched.all_flows_pass()
    until(lambda: watched.birds["two"].state() != "Up", "at the other end, too")
    watched.network.on("two", "ip", "link", "set", "eth0", "up")
    watched.network.on("two", "ip", "route", "add", "default", "via", "10.3.0.1")
    until(lambda: watched.is_up("two"), "the session is up again")
    watched.all_flows_pass()
    watched.stop()


def test_settings_change_while_it_runs(watched):
    watched.write("500ms", v6="false")
    watched.weir("apply", watched.folder / "node.yaml")
    until(lambda: watched.paths()["10.2.0.10"]["bfd"]["transmit_interval_ms"] == 500, "both have agreed")
    until(lambda: watched.birds["one"].state("fd00:2::1") != "Up", "the session that is not wanted has ended")
    assert "fd00:2::10" not in watched.paths()
    for name in watched.birds:
        assert watched.is_up(name)
        assert watched.paths()[watched.birds[name].address]["bfd"]["flaps"] == 0
    watched.stop()
