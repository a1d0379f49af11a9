"""The service vswitch between local hosts and another node: the kernel's own VXLAN device with hosts behind a bridge."""

import os
import subprocess
import sys

from xdp_network import Running, TCP_CLIENT, TCP_SERVER, network, until  # one of them is a fixture

# On a machine that does much else, a decision that is interrupted would count as a long one.
NODE = """
weir: 1
decision_budget: unlimited
ports:
  pod-a: {device: "xdp:pod0", labels: {net: blue}}
  pod-c: {device: "xdp:pod1", labels: {net: red}}
  up:    {device: "xdp:up0", role: uplink, addresses: [192.0.2.1/24], mac: 02:00:00:00:aa:01}
services:
  vswitch:
    networks:
      100: {selector: {net: blue}, vteps: [%s]}
      200: {selector: {net: red}, vteps: [192.0.2.2]}
control: %s
"""


class Switched(Running):
    """alice (network 100) and carol (200) on the node; bob and dave, with the same addresses, behind a kernel VTEP."""

    def __init__(self, network, folder, vteps="192.0.2.2"):
        self.network = network
        self.folder = folder
        for name in ("node", "alice", "carol", "remote"):
            network.space(name)
        for number, (host, port) in enumerate([("alice", "pod0"), ("carol", "pod1")]):
            network.pair("node", port, host, "eth0", address=f"02:00:00:00:00:0{number + 1}")
            self.address(host, "eth0", 1)
            network.on(host, "ip", "link", "set", "eth0", "mtu", "1450")
        network.pair("node", "up0", "remote", "eth0", address="02:00:00:00:bb:02")
        network.on("remote", "ip", "address", "add", "192.0.2.2/24", "dev", "eth0")
        for vni in (100, 200):
            network.on("remote", "ip", "link", "add", f"vx{vni}", "type", "vxlan", "id", vni, "local", "192.0.2.2",
                       "remote", "192.0.2.1", "dstport", "4789", "dev", "eth0")
            space = f"host{vni}"
            network.space(space)
            network.on("remote", "ip", "link", "set", f"vx{vni}", "netns", network.path(space))
            network.on(space, "ip", "link", "set", f"vx{vni}", "address", f"02:00:00:00:00:{vni // 10:02x}")
            network.on(space, "ip", "link", "set", f"vx{vni}", "up")
            self.address(space, f"vx{vni}", 2)
        self.control = folder / "control"
        self.write(vteps)
        self.log_path = folder / "weir.log"
        with open(self.log_path, "w") as log:
            self.process = network.start_weir("node", "run", folder / "node.yaml", "--json", stdout=subprocess.PIPE,
                                              stderr=log, text=True)
        for port in ("pod0", "pod1", "up0"):
            until(lambda: f"{port} is up" in self.log() or self.process.poll() is not None, self.log())

    def address(self, host, interface, number):
        self.network.on(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0",
                        "net.ipv6.conf.default.disable_ipv6=0", f"net.ipv6.conf.{interface}.disable_ipv6=0")
        self.network.on(host, "ip", "address", "add", f"10.0.0.{number}/24", "dev", interface)
        self.network.on(host, "ip", "-6", "address", "add", f"fd00::{number}/64", "dev", interface, "nodad")

    def write(self, vteps):
        (self.folder / "node.yaml").write_text(NODE % (vteps, self.control))


def test_hosts_reach_those_behind_the_kernels_vtep(network, tmp_path):
    switched = Switched(network, tmp_path)
    for here, there in (("alice", "host100"), ("carol", "host200")):
        switched.reaches(here, "10.0.0.2")
        switched.reaches(there, "10.0.0.1")
        switched.reaches(here, "-6", "fd00::2")
        switched.reaches(there, "-6", "fd00::1")
        # Exactly what fits, both ways: 1450 bytes of IP.
        switched.reaches(here, "-M", "do", "-s", str(1450 - 28), "10.0.0.2")
        switched.reaches(there, "-M", "do", "-s", str(1450 - 28), "10.0.0.1")
    drops = switched.stop()
    assert not {"stage_error", "unknown_vtep", "unknown_vni", "too_big", "mac_fixed"} & drops.keys(), drops


def test_tcp_both_ways(network, tmp_path):
    switched = Switched(network, tmp_path)
    for server, client, address in (("host100", "alice", "10.0.0.2"), ("carol", "host200", "10.0.0.1")):
        process = network.start(server, sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        assert network.on(client, sys.executable, "-c", TCP_CLIENT, address, 1 << 20).stdout == "the same\n"
    switched.stop()


def test_senders_of_what_does_not_fit_are_told(network, tmp_path):
    switched = Switched(network, tmp_path)
    switched.reaches("alice", "10.0.0.2")
    network.on("alice", "ip", "link", "set", "eth0", "mtu", "1500")
    assert "mtu = 1450" in switched.ping("alice", "-M", "do", "-s", "1472", "10.0.0.2").stdout
    switched.reaches("alice", "-s", "1472", "10.0.0.2")  # in fragments
    assert switched.stop()["too_big"] == 1


def test_a_node_that_is_no_longer_configured_is_not_heard(network, tmp_path):
    switched = Switched(network, tmp_path)
    switched.reaches("alice", "10.0.0.2")
    switched.write("192.0.2.77")
    network.on("node", os.environ["WEIR"], "apply", tmp_path / "node.yaml", "--control", switched.control)
    assert switched.ping("host100", "-W", "1", "10.0.0.1").returncode != 0
    switched.reaches("carol", "10.0.0.2")
    switched.write("192.0.2.2")
    network.on("node", os.environ["WEIR"], "apply", tmp_path / "node.yaml", "--control", switched.control)
    switched.reaches("alice", "10.0.0.2")
    assert switched.stop()["unknown_vtep"] >= 1
