"""What a running node keeps of root's privileges, and that it is enough."""

import os
import pathlib
import subprocess

import pytest
from xdp_network import Weir, network, switched, until  # two of them are fixtures

NUMBERS = {"net_admin": 12, "net_raw": 13, "ipc_lock": 14, "sys_ptrace": 19, "sys_admin": 21, "bpf": 39}
INTERFACES = ("net_admin", "net_raw", "ipc_lock", "bpf")
VETH = INTERFACES + ("sys_admin", "sys_ptrace")


def bits(names):
    return sum(1 << NUMBERS[name] for name in names)


def threads(process):
    """{thread's name: {"CapEff": number, ...}}"""
    found = {}
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        found[fields["Name"]] = {name: int(fields[name], 16) for name in
                                 ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs")}
    return found


def expect_only(weir, names):
    until(lambda: {"weir", "weir-0", "weir-1", "weir-control"} <= threads(weir.process).keys(), "it has all its threads")
    for name, sets in threads(weir.process).items():
        assert sets == {"CapInh": 0, "CapPrm": bits(names), "CapEff": bits(names), "CapBnd": 0, "CapAmb": 0,
                        "NoNewPrivs": 1}, name


TWO = "workers: {count: 2}\ncontrol: /run/weir/node.sock\n"


def test_every_thread_keeps_only_what_ports_need(network, tmp_path):
    network.space("switch")
    add = ["ip", "link", "add", "br0", "type", "bridge"]
    network.on("switch", *add)
    network.on("switch", "ip", "link", "set", "br0", "up")
    weir = Weir(network, "switch", tmp_path, {"a": "xdp:br0", "b": "tap:tap0"}, TWO)
    weir.said("xdp:br0: generic mode")
    expect_only(weir, INTERFACES)
    # It is enough for an interface that returns.
    network.on("switch", "ip", "link", "del", "br0")
    weir.said("xdp:br0 has disappeared")
    network.on("switch", *add)
    network.on("switch", "ip", "link", "set", "br0", "up")
    weir.said("xdp:br0: generic mode", times=2)
    assert "stays closed" not in weir.log()
    weir.stop()
    assert "xdp" not in network.link("switch", "br0")


def test_a_veth_whose_far_end_is_elsewhere_returns(network, switched):
    weir = switched(more=TWO).up()
    expect_only(weir, VETH)
    before = network.offloads("alice", "eth0")
    network.on("switch", "ip", "link", "del", "port-bob")
    weir.said("xdp:port-bob has disappeared")
    switched.connect("bob")
    weir.said("xdp:port-bob is up", times=2)
    assert network.offloads("bob", "eth0") == before, "its far end is set up as the others are"
    ping = lambda: network.on("alice", "ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0
    until(ping, "ping comes back")
    weir.stop()
    assert network.offloads("bob", "eth0") != before and not network.offload_records()


def test_they_can_be_kept(network, tmp_path):
    network.space("switch")
    file = tmp_path / "node.yaml"
    file.write_text('weir: 1\nports: {a: "tap:tap0"}\nservices: {l2_switch: {}}\n')
    process = network.start_weir("switch", "run", file, "--privileges", "keep")
    until(lambda: "weir-0" in threads(process), "it runs")
    own = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")), 16)
    assert {sets["CapEff"] for sets in threads(process).values()} == {own}


def run_with(network, tmp_path, interface, names):
    """The exit status of a node on the interface that has those capabilities only, and what it said."""
    file = tmp_path / "node.yaml"
    file.write_text(f'weir: 1\nports: {{a: "xdp:{interface}"}}\nservices: {{l2_switch: {{}}}}\n')
    kept = ",".join(["-all", *(f"+{name}" for name in names)])
    process = network.start_weir("switch", "run", file, "--for", "10ms",
                                 before=["setpriv", f"--bounding-set={kept}", "--inh-caps=-all"],
                                 stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("left_out", [None, "net_admin", "net_raw", "bpf"])
def test_each_is_needed(network, tmp_path, left_out):
    network.space("switch")
    network.on("switch", "ip", "link", "add", "br0", "type", "bridge")
    status, errors = run_with(network, tmp_path, "br0", [name for name in INTERFACES if name != left_out])
    assert status == (0 if left_out is None else 1), errors


@pytest.mark.parametrize("left_out", [None, "net_admin", "net_raw", "sys_admin"])
def test_each_is_needed_of_a_veth(network, switched, tmp_path, left_out):
    switched.connect("alice")
    status, errors = run_with(network, tmp_path, "port-alice", [name for name in VETH if name != left_out])
    assert status == (0 if left_out is None else 1), errors


def test_another_user_with_ambient_capabilities(network):
    """As systemd starts a unit with User= and AmbientCapabilities=."""
    network.space("switch")
    network.on("switch", "ip", "link", "add", "br0", "type", "bridge")
    os.chmod(network.state, 0o777)
    file = network.state / "node.yaml"
    file.write_text('weir: 1\nports: {a: "xdp:br0"}\nservices: {l2_switch: {}}\nworkers: {count: 2}\n'
                    f'control: {network.state}/node.sock\n')
    given = ",".join(f"+{name}" for name in INTERFACES)
    process = network.start_weir("switch", "run", file,
                                 before=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                         f"--inh-caps={given}", f"--ambient-caps={given}"])
    names = {"weir", "weir-0", "weir-1", "weir-control"}
    until(lambda: process.poll() is not None or names <= threads(process).keys(), "it has all its threads")
    assert process.poll() is None
    for sets in threads(process).values():
        assert (sets["CapEff"], sets["CapPrm"], sets["CapAmb"], sets["CapInh"], sets["NoNewPrivs"]) == \
            (bits(INTERFACES), bits(INTERFACES), 0, 0, 1)
